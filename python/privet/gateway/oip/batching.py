"""Requests of several applications for one model, joined into one inference."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from privet.compiler.executor.samples import is_stacked
from privet.compiler.program import Program
from privet.errors import InputError
from privet.gateway.client import encode_portions
from privet.gateway.oip.tensors import Array
from privet.runtime import Result
from privet.runtime.result import take_samples

Tensors = Mapping[str, Array]
Ask = Callable[[Tensors], Awaitable[Result]]
Version = tuple[str, int, str, str]
"""A model's name, the version that is meant, the hash of its program, and the version as named."""

PATIENCE = 10.0
"""A request is held for others only if its caller listens for so many times the delay."""

Key = tuple[object, ...]
"""What requests that may be joined have in common."""


@dataclass
class _Group:
    """Requests that are asked as one: their inputs, and the inference as soon as it runs."""

    inputs: list[Tensors] = field(default_factory=list)
    samples: int = 0
    waiting: int = 0
    is_full: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[Result] | None = None


class Batcher:
    """Holds a request for up to `delay` seconds, for others of the same model to join it.

    A group is asked when it has as many samples as the program takes at once, or when its first
    request has waited for so long.
    """

    def __init__(self, delay: float) -> None:
        self._delay = delay
        self._open: dict[Key, _Group] = {}

    async def ask(
        self,
        program: Program,
        version: Version,
        inputs: Tensors,
        ask: Ask,
        seconds: float | None = None,
    ) -> Result:
        """The result for these inputs alone, which `ask` gets for those of a group: of the same
        program, asked for as the same `version`, of the same types. `seconds` is how long the
        caller listens; None if it did not say. Raises `InputError` if the inputs do not fit the
        program, before others are joined, or do not fit another that came meanwhile; what else
        `ask` raises, to all of its group."""
        samples = samples_along(program, inputs)
        hurries = seconds is not None and seconds < PATIENCE * self._delay
        if self._delay == 0 or hurries or not 0 < samples < program.batch:
            return await ask(inputs)
        await asyncio.to_thread(encode_portions, program, inputs)
        types = [(name, _type(array)) for name, array in sorted(inputs.items())]
        key = (version, *types)
        group = self._open.get(key)
        if group is None or group.samples + samples > program.batch:
            if group is not None:
                group.is_full.set()
            group = self._open[key] = _Group()
            group.task = asyncio.create_task(self._run(key, group, ask))
        first = group.samples
        group.inputs.append(inputs)
        group.samples += samples
        if group.samples == program.batch:
            group.is_full.set()
            self._close(key, group)
        try:
            return take_samples(await self._wait(key, group), slice(first, first + samples))
        except InputError:
            if len(group.inputs) == 1:
                raise
            # A new program was asked instead, and somebody's samples do not fit it.
            return await ask(inputs)

    async def _run(self, key: Key, group: _Group, ask: Ask) -> Result:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._delay):
                await group.is_full.wait()
        self._close(key, group)
        if len(group.inputs) == 1:
            return await ask(group.inputs[0])
        names = group.inputs[0]
        return await ask(
            {name: np.concatenate([sample[name] for sample in group.inputs]) for name in names}
        )

    async def _wait(self, key: Key, group: _Group) -> Result:
        """A group's result; when the last who waits for it goes, it is given up."""
        assert group.task is not None
        group.waiting += 1
        try:
            return await asyncio.shield(group.task)
        finally:
            group.waiting -= 1
            if group.waiting == 0:
                self._close(key, group)
                group.task.cancel()

    def _close(self, key: Key, group: _Group) -> None:
        """Lets no more requests join."""
        if self._open.get(key) is group:
            del self._open[key]


def _type(array: Array) -> str:
    """What arrays that are joined have in common; texts of any length are."""
    return array.dtype.kind if array.dtype.kind == "U" else str(array.dtype)


def samples_along(program: Program, inputs: Tensors) -> int:
    """How many samples lie along the first axis of these inputs; 0 if they do not stack."""
    shapes = {entry.name: entry.shape for entry in program.given}
    if not is_stacked(program) or shapes.keys() != inputs.keys():
        return 0
    if any(inputs[name].shape[1:] != shape[1:] for name, shape in shapes.items()):
        return 0
    counts = {array.shape[0] if array.ndim else 0 for array in inputs.values()}
    return counts.pop() if len(counts) == 1 else 0
