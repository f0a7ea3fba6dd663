"""The audit log: who changes it is seen, and a full disk or a crash breaks no chain."""

from __future__ import annotations

import errno
import hashlib
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


@pytest.fixture
def cut(path: Path) -> Path:
    """That log after two crashes amid a line, the second amid the line about the first, and after
    one between a line and its end."""
    for rest in (b'{"time": 1, "event": "asked", "number": 99', b'{"time": 2, "event"'):
        with path.open("ab") as file:
            file.write(rest)
        if rest.endswith(b"99"):
            path.write_bytes(path.read_bytes() + b"\n")
    log = AuditLog(path)
    log.write("asked", number=4)
    log.close()
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    log = AuditLog(path)
    log.write("asked", number=5)
    log.close()
    return path


def test_a_log_goes_on_over_lines_that_crashes_cut_short(cut: Path) -> None:
    verdict = check(cut)
    assert (verdict.lines, verdict.cut, verdict.problems) == (9, 2, [])
    lines = cut.read_bytes().splitlines()
    assert json.loads(lines[6])["event"] == "cut short"
    assert check(cut, hashlib.sha256(lines[4]).hexdigest()).problems == []
    assert verdict.head == AuditLog(cut).head


def test_a_cut_line_is_wrong_until_the_service_says_so(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b'{"time": 1')
    verdict = check(path)
    assert (verdict.lines, verdict.cut, len(verdict.problems)) == (5, 0, 1)
    assert "line 5" in verdict.problems[0]


CUT_ATTACKS: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "change the record before": lambda lines: [
        *lines[:3],
        lines[3].replace(b": 3,", b": 7,"),
        *lines[4:],
    ],
    "remove the record before": lambda lines: [*lines[:3], *lines[4:]],
    "change what was cut": lambda lines: [*lines[:4], lines[4].replace(b"9", b"8"), *lines[5:]],
    "remove what was cut": lambda lines: [*lines[:4], *lines[5:]],
    "cut more": lambda lines: [*lines[:3], lines[3][:20], *lines[4:]],
    "put something in": lambda lines: [*lines[:5], b"{", *lines[5:]],
    "cut elsewhere": lambda lines: [lines[0], lines[1][:20], *lines[2:]],
    "remove the word of it": lambda lines: [*lines[:6], *lines[7:]],
}


@pytest.mark.parametrize("attack", CUT_ATTACKS)
def test_a_crash_hides_no_change(attack: str, cut: Path) -> None:
    lines = cut.read_bytes().splitlines()
    changed = CUT_ATTACKS[attack](lines)
    assert changed != lines
    cut.write_bytes(b"\n".join(changed) + b"\n")
    assert check(cut).problems


def test_without_the_hash_of_the_last_record_a_crash_would_hide_its_change(path: Path) -> None:
    """The control: a record that covers the cut line alone does not tell what came before it."""
    with path.open("ab") as file:
        file.write(b"{")
    AuditLog(path).write("asked")
    lines = path.read_bytes().splitlines()
    assert json.loads(lines[5])["previous"] == hashlib.sha256(b"{").hexdigest()
    lines[3] = lines[3].replace(b": 3,", b": 7,")
    forged = json.loads(lines[5]) | {"last": hashlib.sha256(lines[3]).hexdigest()}
    before = check(path).problems
    path.write_bytes(b"\n".join(lines) + b"\n")
    assert (before, bool(check(path).problems)) == ([], True)
    lines[5] = json.dumps(forged).encode()
    path.write_bytes(b"\n".join(lines[:6]) + b"\n")
    assert check(path).problems == []


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
