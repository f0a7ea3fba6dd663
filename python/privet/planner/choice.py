"""One setting for one question: what was asked, what it takes, what rules it out, how to serve."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from privet.errors import Misuse
from privet.planner import key_pool, prices
from privet.planner.key_pool import PoolLoad
from privet.planner.network import Network
from privet.planner.predict import Prediction, predict
from privet.planner.prices import Prices
from privet.planner.record import Record
from privet.planner.setting import ALL, Setting, cohort
from privet.suites.options import fields_of


@dataclass(frozen=True)
class Question:
    """Which suite for a model, over `network`, for `rate` samples a second in batches of one of the
    sizes `batches`?

    `max_latency` is the most seconds from an input to its output, for 99 of 100; `budget` the most
    dollars a month for the service's side. Without `dealer`, no third party is trusted;
    `malicious` asks for a suite that catches parties who cheat. With `order_leak`, the client may
    see values inside the network in a random order. `parties` is how many share the key of data and
    model, which the host that evaluates then does not see; 0 where a server knows the model.
    `cores` limits the server. `only` are the settings to weigh; without any, all.
    """

    network: Network
    rate: float = 1.0
    batches: tuple[int, ...] = (1,)
    max_latency: float | None = None
    budget: float | None = None
    dealer: bool = True
    malicious: bool = False
    order_leak: bool = False
    parties: int = 0
    cores: int | None = None
    only: tuple[Setting, ...] = ()

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf or not self.batches or min(self.batches) < 1:
            raise Misuse("a plan needs a positive rate and batches of at least 1")

    def settings(self) -> list[Setting]:
        """The settings to tell about: those asked for, or all between two, and with `parties` a
        cohort of so many."""
        if self.only:
            return list(self.only)
        between_two = [setting for setting in ALL.values() if not setting.members]
        return between_two + ([cohort(self.parties)] if self.parties else [])

    def distrust(self, setting: Setting) -> str | None:
        """Why the parties' trust rules a setting out; None if it does not."""
        if self.malicious and not setting.malicious:
            return "a party that cheats is not caught"
        if self.parties and not setting.members:
            return f"its server knows the model: {self.parties} parties were to share the key"
        if setting.dealer and not self.dealer:
            return setting.trust
        if setting.reveals_order and not self.order_leak:
            return (
                "shows the client all values before each activation, in a random order; "
                "--allow-order-leak accepts that"
            )
        return None


JOBS = 1000
"""Arrivals of the simulation that sizes a pool."""

USABLE = 0.8
"""Part of a link's bandwidth that a steady load may take."""


@dataclass(frozen=True)
class SettingChoice:
    """A setting, and what it would take; `against` has what rules it out, in words.

    Seconds are of a batch: `online` with material ready, `offline` to make it, `latency` what 99 of
    100 jobs stay within, queueing and filling of the batch included (None if queues grow without
    end). `pool` is how many entries lie ready, `cores` what the server needs; `measured` tells a
    record of this model from a costing by its layers. `excess` is the largest ratio of what it
    takes to what there is.
    """

    setting: Setting
    against: tuple[str, ...]
    batch: int = 1
    measured: bool = False
    offline: float | None = None
    online: float | None = None
    latency: float | None = None
    pool: int | None = None
    pool_bytes: int | None = None
    cores: int | None = None
    bytes_per_sample: int | None = None
    memory_mb: float | None = None
    dollars_per_month: float | None = None
    excess: float = 0.0

    @property
    def fits(self) -> bool:
        """Whether nothing rules it out."""
        return not self.against

    def as_object(self) -> dict[str, Any]:
        return {
            "setting": self.setting.name,
            "trust": self.setting.trust,
            **{k: v for k, v in vars(self).items() if k != "setting"},
        }


def ruled_out(setting: Setting, reason: str) -> SettingChoice:
    """A setting that is out before it is costed."""
    return SettingChoice(setting, (reason,))


def weigh(record: Record, question: Question, price: Prices) -> SettingChoice:
    """What a record's setting takes for a question, and what rules it out."""
    prediction = predict(record, question.network)
    against: list[str] = []
    jobs = question.rate / record.batch
    use = _link_use(prediction, jobs)
    if use > USABLE:
        against.append(_link_words(question, use))
    cores = prices.server_cores(prediction, question.rate)
    if question.cores is not None and cores > question.cores:
        against.append(f"needs {cores} cores at the server, {question.cores} are there")
    pool, latency = _pool(prediction, question, jobs, cores) if use < 1 else (None, None)
    max_latency = question.max_latency
    if max_latency is not None and (latency is None or latency > max_latency):
        text = "grows without end" if latency is None else f"is {_seconds(latency)}"
        if not any("link" in reason for reason in against):
            against.append(f"latency {text}, at most {_seconds(max_latency)} was asked for")
    dollars = prices.per_month(prediction, price, question.rate, pool or 1).dollars
    if question.budget is not None and dollars > question.budget:
        against.append(f"${dollars:,.0f} a month, the budget is ${question.budget:,.0f}")
    ratios = [use / USABLE]
    ratios += [] if question.cores is None else [cores / question.cores]
    ratios += (
        [] if max_latency is None else [math.inf if latency is None else latency / max_latency]
    )
    ratios += [] if question.budget is None else [dollars / question.budget]
    entry = record.material_bytes.get("server", 0)
    return SettingChoice(
        record.setting,
        tuple(against),
        record.batch,
        record.measured,
        prediction.offline.seconds,
        prediction.online.seconds,
        latency,
        pool,
        None if pool is None else pool * entry,
        cores,
        (prediction.record.offline.bytes + prediction.record.online.bytes) // record.batch,
        max(record.peak_mb.values(), default=None),
        dollars,
        max(ratios),
    )


def _link_use(prediction: Prediction, jobs: float) -> float:
    """The part of the fullest link's bandwidth that `jobs` batches a second take."""
    record = prediction.record
    parties = max(
        record.offline.bytes_client + record.online.bytes_client,
        record.offline.bytes_server + record.online.bytes_server,
    )
    dealer_bytes = max(record.offline.dealer_bytes_client, record.offline.dealer_bytes_server)
    return jobs * max(parties, dealer_bytes) / prediction.network.bytes_per_second


def _link_words(question: Question, use: float) -> str:
    bits_per_second = question.network.bits_per_second * use / USABLE
    return f"the link is too narrow: {bits_per_second / 1e6:,.0f} Mbit/s are needed for the rate"


def _pool(
    prediction: Prediction, question: Question, jobs: float, cores: int
) -> tuple[int | None, float | None]:
    """The smallest pool that keeps 99 of 100 jobs within the latency asked for, or within a tenth
    more than the least there is; and that latency with the filling of the batch.

    Jobs queue for a core as long as they compute; on the network they are under way side by side.
    Where nothing can be kept ready, both phases of a job come after its arrival, and it queues for
    the server's part of them.
    """
    online, offline = prediction.online, prediction.offline.seconds
    apart = online.seconds - online.computing + (prediction.batch - 1) / question.rate
    arrivals = key_pool.poisson(JOBS, 1 / jobs)
    if not prediction.record.setting.stocks:
        computing = online.computing + prediction.offline.computing
        server = min(computing, prices.server_seconds(prediction))
        queued = key_pool.simulate(arrivals, PoolLoad(server, 0.0, cores), 0).percentile(0.99)
        return 0, queued + apart + offline + online.computing - server
    makers = max(1, math.ceil(jobs * offline / prices.BUSY))
    load = PoolLoad(online.computing, offline, cores, makers)
    least = key_pool.simulate(arrivals, load, JOBS).percentile(0.99) + apart
    latency_limit = max(least * 1.1, question.max_latency or 0.0)
    smallest = key_pool.smallest_pool(arrivals, load, latency_limit - apart)
    if smallest is None:
        return None, None
    return smallest.size, smallest.percentile(0.99) + apart


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:.0f} s"


def service_config(choice: SettingChoice | None) -> str:
    """A model's `config.toml`: suite, its options, batch, cores. Raises `Misuse` if there is no
    choice, or the service does not run it."""
    if choice is None:
        raise Misuse("nothing fits, so that there is nothing to configure")
    setting, suite = choice.setting, choice.setting.config
    fields: dict[str, object] = {
        "suites": [suite.name],
        "security": [suite.facts()["security"]],
        "batch": choice.batch,
        "cores": choice.cores or 1,
    }
    flags = []
    for field in fields_of(type(suite)):
        value = getattr(suite, field.name)
        if value == field.default:
            continue
        if len({getattr(variant, field.name) for variant in suite.served()}) > 1:
            fields[field.name] = value if suite.in_sessions else [value]
        else:
            flags.append(field.flag if value is True else f"{field.flag} {value}")
    head = f"# By `privet plan`: {setting.name}."
    if choice.pool:
        head += (
            f" Keep {choice.pool} material entries ready (`privet prepare --keep {choice.pool}`)."
        )
    if not suite.serves_weights:
        head += " Put the public half of the program, program.json, into the repository."
    if flags:
        head += f" Clients ask for it by `{' '.join(flags)}`."
    if setting.reveals_order:
        head += " The server must be started with `--reveal-values`."
    return (
        "\n".join([head, *(f"{key} = {json.dumps(value)}" for key, value in fields.items())]) + "\n"
    )
