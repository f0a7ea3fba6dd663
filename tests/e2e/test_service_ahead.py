"""A client that lets the service make material ahead: its later requests need not wait for any."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.e2e.gateways import IMAGES, assert_right
from tests.e2e.services import put_digits, serving
from tests.e2e.test_commands import key_folder

from privet.gateway import ServiceClient
from privet.runtime import Credentials, MaterialStore

__all__ = ["key_folder"]

SEVEN = IMAGES[:1]


def test_material_made_ahead_is_used(key_folder: Path, tmp_path: Path) -> None:
    put_digits(tmp_path / "repository")
    state = tmp_path / "client"
    options = ("--policy", "ahead+fcfs", "--ahead", "100MB")

    async def ask(address: str) -> None:
        credentials = Credentials.from_directory(key_folder, "client")
        async with (
            ServiceClient(f"https://{address}", credentials, state=state, offers=True) as client,
            asyncio.timeout(60),
        ):
            # Somebody who asks again and again is expected to go on so.
            for _ in range(3):
                assert_right((await client.infer("digits", [SEVEN])).outputs["logits"], SEVEN)
            while not (ready := {entry.id for entry in MaterialStore(state).entries()}):
                await asyncio.sleep(0.05)
            result = await client.infer("digits", [SEVEN])
            assert_right(result.outputs["logits"], SEVEN)
            assert result.material in ready

    with serving(tmp_path, key_folder, *options) as scene:
        asyncio.run(ask(scene.address))
