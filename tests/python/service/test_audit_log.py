"""The audit log: who changes it is seen, and a full disk or a crash breaks no chain."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest

from privet.errors import Misuse
from privet.service.audit_log import FIRST, AuditLog, check


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log of four lines, by two processes."""
    for numbers in ((0, 1), (2, 3)):
        log = AuditLog(tmp_path / "audit.log")
        for number in numbers:
            log.write("asked", number=number)
        log.close()
    return tmp_path / "audit.log"


ATTACKS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "change": lambda lines: [lines[0], lines[1].replace(b": 1,", b": 7,"), *lines[2:]],
    "remove": lambda lines: [lines[0], *lines[2:]],
    "begin later": lambda lines: lines[1:],
    "swap": lambda lines: [lines[1], lines[0], *lines[2:]],
    "insert": lambda lines: [lines[0], lines[0], *lines[1:]],
}


def test_a_whole_chain_is_found_whole(path: Path) -> None:
    verdict = check(path)
    assert (verdict.lines, verdict.problems) == (4, [])
    assert [json.loads(line)["number"] for line in path.read_text().splitlines()] == [0, 1, 2, 3]
    assert path.stat().st_mode & 0o077 == 0
    assert check(path, verdict.head).problems == []


@pytest.mark.parametrize("attack", ATTACKS)
def test_who_changes_lines_is_seen(attack: str, path: Path) -> None:
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(ATTACKS[attack](lines)) + b"\n")
    assert check(path).problems


def test_lines_cut_off_are_seen_by_who_kept_the_head(path: Path) -> None:
    head = check(path).head
    path.write_bytes(b"\n".join(path.read_bytes().splitlines()[:2]) + b"\n")
    assert check(path).problems == []  # the control: the chain alone does not tell
    assert "missing" in check(path, head).problems[0]


def test_a_crash_amid_a_line_leaves_one_damaged_line(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"time": 1')
    log = AuditLog(path)
    log.write("asked", number=4)
    verdict = check(path)
    assert (verdict.lines, len(verdict.problems)) == (6, 1)
    assert "line 5" in verdict.problems[0]
    assert verdict.head == log.head


def test_lines_wait_while_the_disk_is_full(path: Path) -> None:
    log = AuditLog(path)
    write = os.write
    with mock.patch("os.write", side_effect=OSError(errno.ENOSPC, "full")):
        log.write("asked", number=4)
    with mock.patch("os.write", side_effect=lambda file, line: write(file, line[:5])):
        log.write("asked", number=5)
    assert (log.waiting, check(path).lines) == (2, 4)
    log.catch_up()
    assert (log.waiting, check(path).lines, check(path).problems) == (0, 6, [])


def test_a_file_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(Misuse, match="cannot be opened"):
        AuditLog(tmp_path / "absent" / "audit.log")
    assert AuditLog(tmp_path / "new.log").head == FIRST


def test_a_second_writer_is_refused(path: Path) -> None:
    log = AuditLog(path)
    with pytest.raises(Misuse, match="another service writes"):
        AuditLog(path)
    log.write("asked", number=4)
    log.close()
    second = AuditLog(path)
    second.close()
    assert (check(path).lines, check(path).problems) == (5, [])


def test_a_client_that_is_refused_again_and_again_writes_little(tmp_path: Path) -> None:
    with mock.patch("privet.logs.time.monotonic") as clock:
        clock.return_value = 0.0
        log = AuditLog(tmp_path / "audit.log")
        for _ in range(1000):
            log.refused("a", '{"suite": "fss"}', "no dealer")
        log.refused("b", '{"suite": "fss"}', "no dealer")
        clock.return_value = 61.0
        log.refused("a", '{"suite": "fss"}', "no dealer")
        log.close()
    lines = map(json.loads, (tmp_path / "audit.log").read_bytes().splitlines())
    counts = [(line["client"], line["mode"]["suite"], line["times"]) for line in lines]
    assert counts == [("a", "fss", 1), ("b", "fss", 1), ("a", "fss", 1000)]
    assert check(tmp_path / "audit.log").problems == []


def test_no_more_clients_are_remembered_than_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("privet.service.audit_log.MOST_REFUSED", 2)
    log = AuditLog(tmp_path / "audit.log")
    for client in ("a", "b", "c", "c", "a"):
        log.refused(client, "{}", "no")
    log.close()
    assert check(tmp_path / "audit.log").lines == 4
