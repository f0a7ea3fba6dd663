"""Advice: which suite and settings for a model, a network, a load and a budget, and why.

Costs come from records of the model if there are any, else from its layers by unit costs
(`privet.planner.units`); the model itself does not run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privet.compiler.executor.ranges import Calibration
from privet.compiler.graph.input_shapes import InputShapes
from privet.errors import Misuse
from privet.planner import units
from privet.planner.choice import Question, SettingChoice, ruled_out, service_config, weigh
from privet.planner.costing import cost_settings
from privet.planner.measure import Progress
from privet.planner.network import Network, parse_bandwidth, parse_seconds
from privet.planner.prices import Prices, read_prices
from privet.planner.record import Record, file_sha256, read_records
from privet.planner.setting import Setting, settings_of
from privet.suites import Suite, as_suite

Costs = Mapping[tuple[Setting, int], Record | str]
"""Records of a model by setting and batch, or in words why there is none."""

NEARLY = 1.25
"""Settings up to this many times the price of the cheapest are taken to cost the same."""


@dataclass(frozen=True)
class Advice:
    """Every setting weighed, those that fit first and cheapest first; the recommendation, if any
    fits, and the reasons in words."""

    model: str
    question: Question
    choices: tuple[SettingChoice, ...]
    recommended: SettingChoice | None
    reasons: tuple[str, ...]

    def as_object(self) -> dict[str, Any]:
        return {
            "model": self.model,
            "network": vars(self.question.network),
            "choices": [choice.as_object() for choice in self.choices],
            "recommended": None if self.recommended is None else self.recommended.setting.name,
            "reasons": list(self.reasons),
        }

    def config(self) -> str:
        """The recommendation as a model's `config.toml` for `privet serve`. Raises `Misuse` if
        nothing fits."""
        return service_config(self.recommended)


def plan(
    model: str | Path,
    *,
    rtt: float | str = "40ms",
    bandwidth: float | str = "400Mbit",
    rate: float = 1.0,
    batch: int | Sequence[int] = 1,
    max_latency: float | str | None = None,
    budget: float | None = None,
    dealer: bool = True,
    threat: str = "semi-honest",
    order_leak: bool = False,
    parties: int = 0,
    cores: int | None = None,
    suite: str | Suite | None = None,
    calibration: Calibration | None = None,
    input_shapes: InputShapes | None = None,
    input_range: tuple[float, float] | None = None,
    reveal: str = "outputs",
    client_side: bool = False,
    records: str | Path | None = None,
    prices: Prices | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Which suite and settings for a model, and why.

    `rtt` and `max_latency` in seconds or such as `40ms`, `bandwidth` in bits a second or such as
    `400Mbit`, `rate` in samples a second, `batch` one size or several to choose from,
    `budget` in dollars a month. `order_leak` allows a suite whose client sees values inside the
    network in a random order. `parties` is how many share the key of data and model, if the
    host that evaluates may see neither. `suite` is the one to weigh, with its options; without it
    all are, in their usual settings. `calibration`, `input_shapes`, `input_range`, `reveal` and
    `client_side` are as in `privet.compile`. `records` is a folder of `privet study measure`. The
    first plan on a machine finds unit costs, which takes a few minutes.

    # Errors
    Those of `privet.compile`; `Misuse` on an option that makes no sense.
    """
    seconds = parse_seconds(rtt, "round trip") if isinstance(rtt, str) else rtt
    bits = parse_bandwidth(bandwidth) if isinstance(bandwidth, str) else bandwidth
    name = f"{1000 * seconds:g} ms, {bits / 1e6:g} Mbit/s"
    if isinstance(max_latency, str):
        max_latency = parse_seconds(max_latency, "latency")
    question = Question(
        Network(name, seconds, bits),
        rate,
        (batch,) if isinstance(batch, int) else tuple(batch),
        max_latency,
        budget,
        dealer,
        _is_malicious(threat),
        order_leak,
        parties,
        cores,
        () if suite is None else settings_of(as_suite(suite)),
    )
    path = Path(model)
    measurements = read_records(Path(records)) if records is not None else []
    selection = [setting for setting in question.settings() if question.distrust(setting) is None]
    costs: Costs = _of_model(measurements, file_sha256(path), question.batches)
    if not any(setting in selection for setting, _ in costs):
        compiling = {
            "calibration": calibration,
            "input_shapes": input_shapes,
            "input_range": input_range,
            "reveal": reveal,
            "client_side": client_side,
        }
        costs = {
            (setting, size): cost
            for size in question.batches
            for setting, cost in cost_settings(
                path, selection, size, lambda: units.load_or_measure(progress), compiling
            ).items()
        }
    advice = advise(path.stem, question, costs, prices or read_prices())
    if measurements and not any(choice.measured for choice in advice.choices):
        sizes = " or ".join(map(str, question.batches))
        unknown = f"No record in {records} is of this model in batches of {sizes}."
        advice = replace(advice, reasons=(*advice.reasons, unknown))
    return advice


def _is_malicious(threat: str) -> bool:
    if threat not in ("semi-honest", "malicious"):
        raise Misuse(f"the threat is {threat!r}; possible are semi-honest, malicious")
    return threat == "malicious"


def _of_model(records: Iterable[Record], sha256: str, batches: Sequence[int]) -> Costs:
    return {
        (record.setting, record.batch): record
        for record in records
        if record.model_sha256 == sha256 and record.batch in batches and record.link is None
    }


def advise(model: str, question: Question, costs: Costs, prices: Prices) -> Advice:
    """Weighs every setting: `costs` has its record for a batch, or why there is none."""
    choices: list[SettingChoice] = []
    for setting in question.settings():
        distrust = question.distrust(setting)
        if distrust is not None:
            choices.append(ruled_out(setting, distrust))
            continue
        priced = [costs.get((setting, size), "no record of it") for size in question.batches]
        reasons = dict.fromkeys(reason for reason in priced if isinstance(reason, str))
        options = [weigh(cost, question, prices) for cost in priced if not isinstance(cost, str)]
        choices += options or [ruled_out(setting, reason) for reason in reasons]
    choices.sort(key=_rank)
    recommended = _recommend([choice for choice in choices if choice.fits])
    explanation = _reasons(question, choices, recommended)
    return Advice(model, question, tuple(choices), recommended, tuple(explanation))


def _rank(choice: SettingChoice) -> tuple[bool, float, float]:
    infinite = float("inf")
    dollars = choice.dollars_per_month
    latency = choice.latency
    return (
        not choice.fits,
        infinite if dollars is None else dollars,
        infinite if latency is None else latency,
    )


def _recommend(fitting: list[SettingChoice]) -> SettingChoice | None:
    """Of those that cost about as little as the cheapest: one that trusts nobody and nothing else
    if there is one, else one without a leak, and the quickest."""
    if not fitting:
        return None
    limit = NEARLY * (fitting[0].dollars_per_month or 0.0)
    affordable = [choice for choice in fitting if (choice.dollars_per_month or 0.0) <= limit]
    alone = [choice for choice in affordable if choice.setting.trust is None]
    tight = [choice for choice in affordable if not choice.setting.reveals_order]
    return min(alone or tight or affordable, key=lambda choice: choice.latency or 0.0)


def _reasons(
    question: Question, choices: list[SettingChoice], recommended: SettingChoice | None
) -> list[str]:
    if recommended is None:
        return _nothing_fits(question, choices)
    top = recommended
    name = _name(top)
    sentences = [
        f"{name} answers 99 of 100 requests within {_time(top.latency)} "
        f"(online {_time(top.online)}) at {_rate(question.rate)}, for about "
        f"${top.dollars_per_month:,.0f} a month."
    ]
    if top.pool:
        entries = f"{top.pool} material {'entry' if top.pool == 1 else 'entries'}"
        megabytes = (top.pool_bytes or 0) / 1e6
        sentences.append(
            f"Keep {entries} ready ({megabytes:,.1f} MB at the server); making one takes "
            f"{_time(top.offline)}."
        )
    cores = f"{top.cores} core{'s' if top.cores != 1 else ''}"
    memory = "" if top.memory_mb is None else f" and {top.memory_mb / 1000:.1f} GB of memory"
    server = "coordinator" if top.setting.members else "server"
    sentences.append(f"The {server} needs {cores}{memory}.")
    sentences += _trust(top.setting)
    if question.only:
        sentences += [
            f"Weaker than the default: {weak.meaning}." for weak in top.setting.config.weaknesses
        ]
    alternatives = [c for c in choices if c.fits and c is not top]
    cheaper = [c for c in alternatives if (c.dollars_per_month or 0) < (top.dollars_per_month or 0)]
    if cheaper:
        other = cheaper[0]
        but = _weakness(other.setting, top.setting) or f"answers within {_time(other.latency)} only"
        sentences.append(
            f"{_name(other)} would cost a little less (${other.dollars_per_month:,.0f}), but "
            f"it {but}."
        )
    quicker = [c for c in alternatives if (c.latency or 0) < 0.7 * (top.latency or 0)]
    if quicker:
        best = min(quicker, key=lambda c: c.latency or 0)
        weakness = _weakness(best.setting, top.setting)
        sentences.append(
            f"{_name(best)} would answer within {_time(best.latency)}, for "
            f"${best.dollars_per_month:,.0f} a month{f', but it {weakness}' if weakness else ''}."
        )
    if not top.measured:
        sentences.append(
            "This is costed by layers: `privet study measure` on the model makes it firm."
        )
    return sentences


def _trust(setting: Setting) -> list[str]:
    """What a person must make sure of before they take a setting."""
    if setting.dealer:
        return ["A dealer must be found that colludes with neither party."]
    if setting.members:
        return [
            f"It trusts that {setting.trust}. The coordinator, which evaluates, sees neither "
            "model nor data; a cohort makes its keys anew for each inference."
        ]
    return [f"It leaks: {setting.trust}."] if setting.trust else []


def _weakness(setting: Setting, beside: Setting) -> str | None:
    """What a setting trusts or leaks that another one does not."""
    if setting.reveals_order and not beside.reveals_order:
        return "shows the client values inside the network"
    return "trusts a dealer" if setting.dealer and not beside.dealer else None


def _nothing_fits(question: Question, choices: list[SettingChoice]) -> list[str]:
    sentences = ["Nothing fits all that was asked for."]
    costed = [choice for choice in choices if choice.online is not None]
    if not costed:
        return [
            *sentences,
            *dict.fromkeys(reason for choice in choices for reason in choice.against),
        ]
    nearest = min(costed, key=lambda choice: choice.excess)
    sentences.append(f"{_name(nearest)} comes nearest: {'; '.join(nearest.against)}.")
    if not question.dealer and not question.parties:
        sentences.append("A dealer that colludes with neither party would open more choices.")
    if question.batches == (1,) and question.network.rtt > 0.01:
        sentences.append("Larger batches share their rounds: try --batch 8 if requests may wait.")
    return sentences


def _name(choice: SettingChoice) -> str:
    name = choice.setting.name
    return name if choice.batch == 1 else f"{name} in batches of {choice.batch}"


def _rate(rate: float) -> str:
    return f"{rate:.3g} a second" if rate >= 0.1 else f"{3600 * rate:.3g} an hour"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "no known time"
    return f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.2f} s"
