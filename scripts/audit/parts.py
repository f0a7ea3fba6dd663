"""The parts of the audit. A check is what was tried, whether it passed, and what was printed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from ..mutation.tests import target
from . import attacks

ROOT = Path(__file__).resolve().parents[2]
CARGO = os.environ.get("CARGO", "cargo")
PYTHON = [sys.executable, "-m"]
TRIPLE = "x86_64-unknown-linux-gnu"
UNSAFE = ("prg", "ring", "bfv", "paillier", "linear")
"""Crates with a folder `arch`, where the unsafe code is."""

Check = tuple[str, bool, str]


@dataclass(frozen=True)
class Effort:
    """How hard to look; `fuzz_minutes` are each decoder's, and `runs` are timed."""

    short: bool
    fuzz_minutes: float
    runs: int
    seed: int


def call(name: str, command: list[str], folder: str = ".", **environment: str) -> Check:
    """Runs a command, which passes if it exits with 0."""
    process = subprocess.run(
        command,
        cwd=ROOT / folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return name, process.returncode == 0, process.stdout + process.stderr


def known_attacks(effort: Effort) -> Iterator[Check]:
    """The list of attacks; in the short form only its names, since `make test` runs the tests."""
    entries = attacks.load()
    wrong = list(attacks.faults(entries, ROOT))
    yield f"{len(entries)} attacks name tests and controls", not wrong, "\n".join(wrong)
    if not effort.short and not wrong:
        yield from attacks.run(
            [name for attack in entries for name in attack.tests + attack.controls], ROOT
        )


def masks(effort: Effort) -> Iterator[Check]:
    """Every mask removed, one at a time."""
    if not effort.short:
        yield call("masks removed one at a time", [*PYTHON, "scripts.mutation"])


def transcripts(effort: Effort) -> Iterator[Check]:
    """Transcripts that tests cannot tell from random ones, beside leaks that they find."""
    if effort.short:
        return
    for crate, name in (
        ("suites", "privacy"),
        ("gmw", "privacy"),
        ("ot", "secrecy"),
        ("shark", "privacy"),
    ):
        words = ["test", "--release", "--locked", *target(crate, "whole"), name]
        yield call(f"transcripts: {crate}", [CARGO, *words])


def decoders(effort: Effort) -> Iterator[Check]:
    """Decoders of bytes from a peer: corpus and mutations, then LLVM's fuzzer and Go's.

    In the short form nothing, since `make test` runs the corpus.
    """
    if effort.short:
        return
    rounds = "20000"
    corpus = [CARGO, "test", "--release", "--locked", "-p", "privet-audit"]
    yield call(f"corpus and {rounds} mutations", corpus, PRIVET_FUZZ_ROUNDS=rounds)
    yield from _fuzz(effort)
    for folder, name in _go_fuzzers():
        seconds = f"{max(1, round(60 * effort.fuzz_minutes))}s"
        words = ["go", "test", "-run", "^$", "-fuzz", f"^{name}$", "-fuzztime", seconds, "."]
        yield call(f"fuzz {folder} {name}", words, folder)


def models(effort: Effort) -> Iterator[Check]:
    """Mutated ONNX files through the compiler; in the short form nothing, `make test` runs some."""
    if not effort.short:
        words = [*PYTHON, "scripts.audit.models", str(effort.seed), "20000"]
        yield call("20000 mutated ONNX files", words)


def _fuzz(effort: Effort) -> Iterator[Check]:
    """LLVM's fuzzer without a nightly compiler: its coverage is an ordinary option of rustc."""
    flags = (
        "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 "
        "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters "
        "-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares "
        "-Cdebug-assertions=on -Coverflow-checks=on -Ccodegen-units=1 --cfg fuzzing"
    )
    target = ROOT / "target" / "fuzz"
    build = ["build", "--release", "--locked", "-p", "privet-audit", "--features", "libfuzzer"]
    build += ["--bin", "fuzz", "--target", TRIPLE]
    outcome = call(
        "build the fuzzer", [CARGO, *build], RUSTFLAGS=flags, CARGO_TARGET_DIR=str(target)
    )
    yield outcome
    if not outcome[1]:
        return
    corpus = ROOT / "crates" / "audit" / "corpus"
    for folder in sorted(corpus.iterdir()):
        inputs = target / "found" / folder.name
        inputs.mkdir(parents=True, exist_ok=True)
        limits = [
            "-malloc_limit_mb=512",
            "-rss_limit_mb=2048",
            "-timeout=10",
            f"-seed={effort.seed}",
        ]
        seconds = f"-max_total_time={max(1, round(60 * effort.fuzz_minutes))}"
        command = [str(target / TRIPLE / "release" / "fuzz"), str(inputs), str(folder)]
        command += [seconds, f"-artifact_prefix={inputs}-", *limits]
        yield call(f"fuzz {folder.name}", command, PRIVET_DECODER=folder.name)


def _go_fuzzers() -> Iterator[tuple[str, str]]:
    for source in sorted((ROOT / "ckks").rglob("*_test.go")):
        for line in source.read_text().splitlines():
            if line.startswith("func Fuzz"):
                yield str(source.parent.relative_to(ROOT)), line.split("(")[0].removeprefix("func ")


def _programs() -> Check:
    """Builds what the two checks below run.

    It selects the packages that `make test` does: another selection has other features of
    dependencies, and everything would be compiled again.
    """
    words = ["test", "--workspace", "--exclude", "privet-kernels"]
    return call("build", [CARGO, *words, "--profile", "release", "--locked", "--no-run"])


def _program(name: str) -> str:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return str(target / "release" / name)


def timing(effort: Effort) -> Iterator[Check]:
    """Whether the time of code on secrets depends on them, here and in portable code."""
    outcome = _programs()
    if not outcome[1]:
        yield outcome
        return
    runs = "500" if effort.short else str(effort.runs)
    yield call(f"times of {runs} runs", [_program("timing"), runs])
    if not effort.short:
        command = [_program("timing"), runs]
        yield call(f"times of {runs} runs, portable code", command, PRIVET_PORTABLE="1")


def branches(effort: Effort) -> Iterator[Check]:
    """Branches and addresses that depend on secrets, by valgrind, which knows no AVX-512."""
    if platform.machine() != "x86_64" or shutil.which("valgrind") is None:
        yield "branches: NOT RUN, there is no valgrind for this machine", True, ""
        return
    outcome = _programs()
    if not outcome[1]:
        yield outcome
        return
    command = ["valgrind", "--quiet", _program("branches")]
    yield call("branches, portable code", command, PRIVET_PORTABLE="1")
    if not effort.short:
        yield call("branches, code of this machine", command)


def memory(effort: Effort) -> Iterator[Check]:
    """Tests of crates with unsafe code under AddressSanitizer, which ships with the compiler."""
    if effort.short or platform.machine() != "x86_64":
        return
    target = str(ROOT / "target" / "sanitizer")
    for crate in UNSAFE:
        words = ["test", "--release", "--locked", "-p", f"privet-{crate}", "--target", TRIPLE]
        sanitized = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=address"}
        yield call(
            f"AddressSanitizer: {crate}",
            [CARGO, *words, "--lib", "--tests"],
            CARGO_TARGET_DIR=target,
            **sanitized,
        )


def kills(effort: Effort) -> Iterator[Check]:
    """Parties and workers killed at any moment, and the store after a loss of power."""
    if not effort.short:
        power = [CARGO, "test", "--release", "--locked", "-p", "privet-runtime", "power"]
        yield call("losses of power", power, PRIVET_POWER_LOSSES="1000")
        yield call("kills", [*PYTHON, "pytest", "-q", "-m", "slow or not slow", "tests/kills"])


PARTS: dict[str, Callable[[Effort], Iterator[Check]]] = {
    "attacks": known_attacks,
    "masks": masks,
    "models": models,
    "transcripts": transcripts,
    "decoders": decoders,
    "timing": timing,
    "branches": branches,
    "memory": memory,
    "kills": kills,
}
"""By name, in the order in which they run."""
