"""A model that changes while it is served: jobs for what was run to their end, nothing is mixed."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.e2e.caller import ServiceCaller
from tests.e2e.services import put_digits
from tests.e2e.test_commands import DIGITS
from tests.python.service_control.actors import Scene, eventually, scene

from privet.compiler.compile import compile
from privet.service.repository import ModelConfig
from privet.service.repository.files import Source


@pytest.fixture
def second(tmp_path: Path) -> Path:
    """Another program of the same name."""
    compile(DIGITS, input_range=(0, 1), name="digits", bits=41).save(tmp_path / "second")
    return tmp_path / "second"


async def until_program(testbed: Scene, name: str) -> None:
    """Waits until a model is another program than the one with that hash."""
    async with asyncio.timeout(10):
        while True:
            version = testbed.service.repository.version("digits")
            if version is not None and version.program.program_hash != name:
                return
            await asyncio.sleep(0.02)


def test_a_change_gives_up_what_was_prepared_and_ends_what_was_asked(
    folder: Path, key_folder: Path, program: Path, second: Path
) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):

            async def build(source: Source, config: ModelConfig) -> Path:
                return second if config.bits == 41 else program

            testbed.service.repository._build = build
            notice = await caller.notify("digits")
            testbed.executor.finish(
                (await testbed.executor.granted("prepare")).job, material="a" * 32
            )
            unwanted = await caller.request("digits")
            job = await testbed.executor.granted("prepare")
            testbed.executor.finish(job.job, material="b" * 32)
            infer = await testbed.executor.granted("infer")
            first = job.grant.program

            put_digits(folder / "repository", config="input_range = [0, 1]\nbits = 41\n")
            await until_program(testbed, first)
            reply = await caller.good("GET", f"/v2/jobs/{notice}")
            assert (reply["state"], reply["outcome"]) == ("ended", "cancelled")
            assert "changed" in reply["reason"]
            await eventually(lambda: testbed.executor.discarded == ["a" * 32])
            assert testbed.executor.withdrawn == []
            testbed.executor.finish(infer.job)
            async with asyncio.timeout(10):
                while testbed.executor.withdrawn != [first]:
                    await asyncio.sleep(0.02)
            reply = await caller.good("GET", f"/v2/jobs/{unwanted}")
            assert reply["outcome"] == "done"

            await caller.request("digits")
            assert (await testbed.executor.granted("prepare")).grant.program != first
            status, answer = await caller.call(
                "POST", "/v2/models/digits/requests", {"notice": notice}
            )
            assert (status, answer["reason"]) == (409, "cancelled notice")

    asyncio.run(main())


def test_measurements_of_a_version_serve_its_next_program(
    folder: Path, key_folder: Path, program: Path, second: Path
) -> None:
    async def main() -> None:
        async with (
            scene(folder, key_folder, program) as testbed,
            ServiceCaller(testbed.address, key_folder, folder / "c") as caller,
        ):

            async def build(source: Source, config: ModelConfig) -> Path:
                return second if config.bits == 41 else program

            testbed.service.repository._build = build
            await caller.request("digits")
            job = await testbed.executor.granted("prepare")
            testbed.executor.finish(job.job, seconds=123.0)
            await testbed.executor.granted("infer")
            put_digits(folder / "repository", config="input_range = [0, 1]\nbits = 41\n")
            await until_program(testbed, job.grant.program)
            await caller.request("digits")
            rows = [row for row in testbed.service.profiles.rows() if row["phase"] == "pre"]
            assert [row["seconds"] for row in rows] == [123.0, 123.0]

    asyncio.run(main())


def test_a_program_that_another_model_has_is_offered_on(
    folder: Path, key_folder: Path, program: Path
) -> None:
    async def main() -> None:
        async with scene(folder, key_folder, program) as testbed:
            repository = testbed.service.repository
            put_digits(folder / "repository", name="same")
            await eventually(lambda: repository.version("same") is not None)
            versions = [repository.version(name) for name in ("digits", "same")]
            (shared,) = {
                version.program.program_hash for version in versions if version is not None
            }
            shutil.rmtree(folder / "repository" / "digits")
            await eventually(lambda: repository.version("digits") is None)
            async with ServiceCaller(testbed.address, key_folder, folder / "c") as caller:
                await caller.request("same")
                assert (await testbed.executor.granted("prepare")).grant.program == shared
                assert testbed.executor.withdrawn == []
                shutil.rmtree(folder / "repository" / "same")
                await eventually(lambda: repository.version("same") is None)
                testbed.executor.finish(
                    (await testbed.executor.granted("prepare")).job, material="a" * 32
                )
                testbed.executor.finish((await testbed.executor.granted("infer")).job)
                await eventually(lambda: testbed.executor.withdrawn == [shared])

    asyncio.run(main())
