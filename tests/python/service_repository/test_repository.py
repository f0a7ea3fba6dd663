"""The repository follows its folder: versions come, change, break and go."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

import numpy as np
import pytest
from tests.e2e.services import put_digits
from tests.e2e.test_commands import DIGITS

from privet.compiler.compile import compile
from privet.errors import InputError, Misuse, ModelError, PrivetError
from privet.service.repository import (
    Builder,
    ModelConfig,
    ModelFolders,
    Repository,
    Version,
    VersionRow,
    repository,
)
from privet.service.repository.files import Source
from privet.service.repository.offering import fulfilling
from privet.suites import Stream


class Stage:
    """A repository over a real compiler; `offered` and `retired` are versions by name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "repository"
        self.offered: list[Version] = []
        self.retired: list[Version] = []
        self.refuse: str | None = None
        self.builds = 0
        self.errors: list[PrivetError] = []
        self._builder = Builder(folder / "programs")
        self.repository = Repository(
            ModelFolders(self.folder), self._build, self._offer, self._retire, dealer=False
        )

    async def _build(self, source: Source, config: ModelConfig) -> Path:
        self.builds += 1
        try:
            return await self._builder(source, config)
        except PrivetError as error:
            self.errors.append(error)
            raise

    async def _offer(self, version: Version) -> None:
        if self.refuse is not None:
            raise ModelError(self.refuse)
        self.offered.append(version)

    async def _retire(self, version: Version) -> None:
        self.retired.append(version)

    def row(self, model: str = "digits", version: int | None = 1) -> VersionRow:
        """A line of the table."""
        (row,) = [
            entry
            for entry in self.repository.rows()
            if (entry.model, entry.version) == (model, version)
        ]
        return row


Act = Callable[[Stage], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Act], None]:
    """Runs a test's coroutine on a repository with the digits network."""
    put_digits(tmp_path / "repository")

    def run(act: Act) -> None:
        async def main() -> None:
            await act(Stage(tmp_path))

        asyncio.run(main())

    return run


def touch_config(stage: Stage, text: str) -> None:
    """Writes a new configuration of the digits network."""
    (stage.folder / "digits" / "config.toml").write_text(text)


def test_a_version_is_compiled_once_and_offered(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        assert await stage.repository.refresh()
        assert not await stage.repository.refresh()
        assert stage.builds == len(stage.offered) == 1
        version = stage.repository.version("digits")
        assert version is not None
        program = version.program.program_hash
        assert stage.row() == VersionRow("digits", 1, ("gmw",), True, None, program, "random")
        assert version is stage.repository.version("digits", 1)
        assert version is not None
        assert version.program.model == "digits"
        assert stage.repository.version("digits", 2) is None
        # Another process with the same files has the same program.
        other = Stage(stage.folder.parent)
        await other.repository.refresh()
        assert other.offered[0].program.program_hash == version.program.program_hash

    play(act)


def test_the_newest_version_takes_over(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        await stage.repository.refresh()
        put_digits(stage.folder, version=10, config="input_range = [0, 1]\nbits = 40\n")
        await stage.repository.refresh()
        assert [version.number for version in stage.repository.versions("digits")] == [10]
        assert [version.number for version in stage.retired] == [1]

    play(act)


def test_several_versions_at_once(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        put_digits(stage.folder, version=2, config='input_range = [0, 1]\nversions = "all"\n')
        await stage.repository.refresh()
        assert [version.number for version in stage.repository.versions("digits")] == [1, 2]
        touch_config(stage, "input_range = [0, 1]\nversions = [1]\n")
        await stage.repository.refresh()
        assert [version.number for version in stage.repository.versions("digits")] == [1]
        assert [version.number for version in stage.retired] == [2]

    play(act)


def test_a_broken_change_keeps_what_was_and_is_mended(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        await stage.repository.refresh()
        version = stage.repository.version("digits")
        (stage.folder / "digits" / "1" / "model.onnx").write_bytes(b"no model")
        assert await stage.repository.refresh()
        row = stage.row()
        assert row.ready
        assert row.error is not None
        assert stage.repository.version("digits") is version
        builds = stage.builds
        assert not await stage.repository.refresh()
        assert stage.builds == builds
        shutil.copy(DIGITS, stage.folder / "digits" / "1" / "model.onnx")
        assert await stage.repository.refresh()
        assert stage.row().error is None
        assert stage.retired == []

    play(act)


def test_a_broken_configuration_keeps_what_was(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        await stage.repository.refresh()
        touch_config(stage, "bitz = 1\n")
        assert await stage.repository.refresh()
        row = stage.row()
        assert (row.ready, "bitz" in (row.error or "")) == (True, True)

    play(act)


def test_a_version_that_executors_refuse_is_tried_again(
    play: Callable[[Act], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "RETRY_SECONDS", 0.0)

    async def act(stage: Stage) -> None:
        stage.refuse = "there is no machine"
        await stage.repository.refresh()
        assert stage.row() == VersionRow("digits", 1, (), False, "there is no machine")
        assert stage.repository.models() == []
        stage.refuse = None
        assert await stage.repository.refresh()
        assert (stage.row().suites, stage.row().ready, stage.row().error) == (("gmw",), True, None)

    play(act)


def test_limits_change_without_a_new_program(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        await stage.repository.refresh()
        touch_config(stage, "input_range = [0, 1]\n[limits]\nqueued = 3\n")
        await stage.repository.refresh()
        version = stage.repository.version("digits")
        assert version is not None
        assert version.config.limits.queued == 3
        assert stage.builds == 1
        touch_config(stage, "input_range = [0, 1]\nbits = 41\n")
        await stage.repository.refresh()
        assert stage.builds == 2
        assert len(stage.retired) == 1

    play(act)


def test_a_model_goes_with_its_folder(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        await stage.repository.refresh()
        shutil.rmtree(stage.folder / "digits")
        assert await stage.repository.refresh()
        assert stage.repository.rows() == []
        assert len(stage.retired) == 1
        shutil.rmtree(stage.folder)
        with pytest.raises(Misuse, match="cannot be read"):
            await stage.repository.refresh()

    play(act)


def test_calibration_is_found_and_matters(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        touch_config(stage, 'calibration = "samples.npy"\n')
        await stage.repository.refresh()
        assert "samples.npy is missing" in (stage.row(version=None).error or "")
        samples = stage.folder / "digits" / "samples.npy"
        np.save(samples, np.random.default_rng(1).uniform(size=(4, 1, 8, 8)))
        await stage.repository.refresh()
        first = stage.offered[-1].program.program_hash
        np.save(samples, 3 * np.ones((4, 1, 8, 8)))
        await stage.repository.refresh()
        assert stage.offered[-1].program.program_hash != first

    play(act)


def test_an_error_of_the_compiler_keeps_its_class(play: Callable[[Act], None]) -> None:
    """`privet serve` ended with the exit code of an unfit model where samples were unfit."""

    async def act(stage: Stage) -> None:
        touch_config(stage, 'calibration = "samples.npy"\n')
        np.save(stage.folder / "digits" / "samples.npy", np.zeros((4, 5)))
        await stage.repository.refresh()
        (error,) = stage.errors
        assert isinstance(error, InputError)
        assert "has a sample of shape [5]" in str(error)
        touch_config(stage, "input_range = [0, 1]\nbits = 20\nscale = 15\n")
        await stage.repository.refresh()
        assert type(stage.errors[-1]) is ModelError
        assert "ring" in str(stage.errors[-1])

    play(act)


def test_a_suite_that_cannot_be_served_is_an_error_if_it_was_named(
    play: Callable[[Act], None],
) -> None:
    async def act(stage: Stage) -> None:
        touch_config(stage, 'input_range = [0, 1]\nsuites = ["gmw", "fss"]\n')
        await stage.repository.refresh()
        assert "--dealer" in (stage.row().error or "")

    play(act)


@pytest.mark.parametrize("name", ["bad name", "_x", "ü", "x" * 65])
def test_a_name_that_fits_no_address_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "repository" / name / "1").mkdir(parents=True)
    stage = Stage(tmp_path)
    asyncio.run(stage.repository.refresh())
    assert "cannot be a model's name" in (stage.row(name, None).error or "")


def test_choices_are_filled_up_and_checked(play: Callable[[Act], None]) -> None:
    async def act(stage: Stage) -> None:
        touch_config(stage, 'input_range = [0, 1]\nrounds = ["log", "linear"]\n')
        await stage.repository.refresh()
        version = stage.repository.version("digits")
        assert version is not None
        assert version.ask({}).suite.facts()["rounds"] == "log"
        assert version.ask({"rounds": "linear"}).label != version.ask({}).label
        for wish, words in (
            ({"suite": "fss"}, "does not serve suite fss; it serves gmw"),
            ({"security": "malicious"}, "does not serve security malicious"),
            ({"rounds": "blocks"}, "it serves log, linear"),
            ({"correlations": "dealer"}, "no dealer"),
        ):
            with pytest.raises(Misuse, match=words):
                version.ask(wish)

    play(act)


def test_who_makes_material_and_in_which_field_are_two_words(play: Callable[[Act], None]) -> None:
    """A call of 0.2 said both by one, and means the same."""

    async def act(stage: Stage) -> None:
        touch_config(stage, 'input_range = [0, 1]\nfield = ["prime", "ring"]\nrounds = ["log"]\n')
        await stage.repository.refresh()
        version = stage.repository.version("digits")
        assert version is not None
        for wish, field in (
            ({}, "prime"),
            ({"field": "ring"}, "ring"),
            ({"correlations": "parties", "field": "prime"}, "prime"),
            ({"correlations": "prime"}, "prime"),
            ({"correlations": "parties"}, "ring"),
        ):
            facts = version.ask(wish).facts
            assert (facts["correlations"], facts["field"]) == ("parties", field)

    play(act)


COLLECTIVE = 'suites = ["ckks"]\nscenario = "collective"\nparties = 2\n'


@pytest.mark.go
def test_a_part_that_some_ways_do_not_have_is_wished_of_those_that_do() -> None:
    offers = [Stream(), *(Stream(cipher="paillier", key_bits=bits) for bits in (2048, 3072))]
    assert fulfilling({"key_bits": 3072}, offers) == offers[2:]
    # Who wishes for a cipher that has no choice of it gets that cipher.
    assert fulfilling({"cipher": "bfv", "key_bits": 3072}, offers) == offers[:1]
    with pytest.raises(Misuse, match="does not serve key_bits 1024; it serves 2048, 3072"):
        fulfilling({"cipher": "paillier", "key_bits": 1024}, offers)


def test_a_coordinator_has_the_public_half_alone(
    play: Callable[[Act], None], tmp_path: Path
) -> None:
    model = Path(__file__).parents[3] / "zoo" / "models" / "digits-smooth" / "square.onnx"

    async def act(stage: Stage) -> None:
        home = stage.folder / "shared" / "1"
        home.mkdir(parents=True)
        shutil.copy(model, home / "model.onnx")
        (home.parent / "config.toml").write_text(COLLECTIVE)
        await stage.repository.refresh()
        assert "which stay with member 0" in str(stage.row("shared").error)
        compile(model, bits=50, scale=16, input_range=(0, 1)).save(tmp_path / "owner")
        (home / "model.onnx").unlink()
        shutil.copy(tmp_path / "owner" / "program.json", home)
        await stage.repository.refresh()
        assert stage.row("shared").ready
        version = stage.repository.version("shared")
        assert version is not None
        assert [path.name for path in version.folder.iterdir()] == ["program.json"]
        assert version.partner("privet member 1") == "member 1"
        assert version.partner("privet member 2") is None
        # Whoever takes weights here says so.
        (home.parent / "config.toml").write_text('suites = ["ckks"]\n')
        await stage.repository.refresh()
        assert "takes the weights here" in str(stage.row("shared").error)

    play(act)
