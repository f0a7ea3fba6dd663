"""Generation: a decoder with state token after token, each step a private inference.

The client gives a token and its position, learns the scores of the next one and chooses it. Keys
and values of earlier tokens are state, which stays shared between the parties.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from privet import suites
from privet.compiler.compile import Compiled, compile
from privet.compiler.graph import ModelSource
from privet.compiler.program import Program
from privet.errors import InputError, Misuse
from privet.runtime.client import Client, Link
from privet.runtime.credentials import Credentials
from privet.suites import MaterialSuite, Suite
from privet.suites.costs import PhaseCost
from privet.suites.material.local import serve
from privet.suites.spawned import event

Array = npt.NDArray[np.generic]

TOKEN = "input_ids"
POSITION = "position_ids"


@dataclass(frozen=True)
class Sampling:
    """How the client chooses a token: at `temperature` 0 the likeliest, else at random by the
    softmax of scores over it, of the `top_k` likeliest if there is such a limit.

    `seed` makes choices repeatable.
    """

    temperature: float = 0.0
    top_k: int | None = None
    seed: int | None = None
    _generator: np.random.Generator = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not 0.0 <= self.temperature < float("inf"):
            raise Misuse(f"temperature is {self.temperature}; 0 or more is possible")
        if self.top_k is not None and self.top_k < 1:
            raise Misuse(f"top_k is {self.top_k}; at least 1 is possible")
        object.__setattr__(self, "_generator", np.random.default_rng(self.seed))

    def choose(self, scores: Array) -> int:
        """A token, by scores `[vocabulary]`."""
        if self.temperature == 0.0:
            return int(scores.argmax())
        reals = scores.astype(np.float64)
        order = np.argsort(-reals, kind="stable")[: self.top_k]
        raised = reals[order] / self.temperature
        weights = np.exp(raised - raised.max())
        return int(self._generator.choice(order, p=weights / weights.sum()))


@dataclass(frozen=True)
class TokenStep:
    """What one inference gave: `token` comes next, by `scores` whose integers are `integers`.

    Of a step inside the prompt, `token` is the prompt's.
    """

    position: int
    token: int
    is_prompt: bool
    scores: Array
    integers: tuple[Array, ...]
    offline: PhaseCost | None
    online: PhaseCost


def context_of(program: Program) -> int:
    """The most tokens of a sequence. Raises `Misuse` if the program is no decoder with state that
    takes a token and its position."""
    inputs = {entry.name: program.input_shape(entry) for entry in program.inputs}
    fits = inputs == {TOKEN: (1, 1), POSITION: (1, 1)} and len(program.outputs) == 1
    if not program.state or not fits:
        raise Misuse(
            f"only a decoder generates: its inputs are {TOKEN} [1, 1] and {POSITION} [1, 1] "
            "besides past_key_values.*, its outputs scores besides present.*"
        )
    (places,) = (entry for entry in program.inputs if entry.name == POSITION)
    return program.values[places.value].shape[-1]


def sessions(tokens: Array) -> list[dict[str, Array]]:
    """Calibration samples of token sequences `[samples, steps]`. Raises `InputError` if they are no
    such array."""
    if tokens.ndim != 2 or tokens.dtype.kind not in "iu":
        raise InputError("calibration tokens are whole numbers [samples, tokens]")
    places = np.arange(tokens.shape[1]).reshape(-1, 1, 1)
    return [{TOKEN: row.reshape(-1, 1, 1), POSITION: places} for row in tokens]


def steps(
    client: Client, prompt: Sequence[int], count: int, sampling: Sampling | None = None
) -> Iterator[TokenStep]:
    """Generates `count` tokens behind a prompt at a server, one inference for each of both but the
    last; begins a sequence of its own. Raises `Misuse` if the program is no decoder or has no room
    for so many tokens; those of `Client.infer`."""
    sampler, total = sampling or Sampling(), len(prompt) + count - 1
    context = context_of(client.program)
    if not prompt or count < 1 or total > context:
        raise Misuse(
            f"{len(prompt)} tokens of a prompt and {count} new ones: at least one of each, and "
            f"{context + 1} in all, are possible"
        )
    client.restart()
    token = prompt[0]
    for position in range(total):
        result = client.infer({TOKEN: [[token]], POSITION: [[position]]})
        scores = next(iter(result.outputs.values())).ravel()
        is_prompt = position + 1 < len(prompt)
        token = prompt[position + 1] if is_prompt else sampler.choose(scores)
        yield TokenStep(
            position, token, is_prompt, scores, result.integers, result.offline, result.online
        )


def generate(
    model: ModelSource | Compiled,
    prompt: Sequence[int],
    count: int,
    *,
    suite: Suite | str = suites.DEFAULT,
    sampling: Sampling | None = None,
    calibration: Array | Sequence[Mapping[str, Any]] | None = None,
    bits: int | None = None,
    link: Link | str | None = None,
    timeout: float = 600.0,
) -> Iterator[TokenStep]:
    """`steps` at a server that is another process of this machine, over loopback TLS.

    `calibration` are token sequences `[samples, tokens]`, or samples as `privet.compile` takes
    them. `suite`, `bits` and `link` are those of `privet.run`. Material for each step is made just
    before it.

    Raises those of `steps` and of `privet.compile`.
    """
    config = suites.as_suite(suite)
    if not isinstance(config, MaterialSuite):
        raise Misuse(f"suite {config.name} keeps no state: choose one that makes material")
    compiled = model if isinstance(model, Compiled) else _compiled(model, config, calibration, bits)
    config.check_supports(compiled.program)
    context_of(compiled.program)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="privet-")))
        parties = serve(running, config, compiled, folder, timeout)
        client = running.enter_context(
            Client(
                "127.0.0.1",
                parties.listening["port"],
                Credentials.from_directory(parties.common_fields["keys"], "client"),
                state=folder / "c",
                suite=config,
                dealer=parties.common_fields.get("dealer"),
                link=link,
                timeout=timeout,
            )
        )
        for step in steps(client, prompt, count, sampling):
            # What the others say is read, so that they never wait for a full pipe.
            for kind in ("prepared", "inferred"):
                event(parties.server, kind)
            if parties.dealer is not None:
                event(parties.dealer, "dealt")
            yield step


def _compiled(model: ModelSource, suite: Suite, calibration: Any, bits: int | None) -> Compiled:
    samples = sessions(calibration) if isinstance(calibration, np.ndarray) else calibration
    return compile(model, calibration=samples, **vars(suite.as_compiled(bits)))
