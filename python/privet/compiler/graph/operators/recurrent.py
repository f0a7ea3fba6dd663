"""RNN, GRU and LSTM, unrolled: a step is a linear layer, functions by lines and products.

The products of all inputs with their weights are one linear layer; those of the state are one for
each step. Directions of one kind go side by side, as rows of the same tensors, so that they take
the rounds of one. Every number of steps is public: so are the lengths of sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from privet.compiler.graph import operations as op
from privet.compiler.graph.operations import Array, real
from privet.compiler.graph.operators.arithmetic import plus_constant, times_constant
from privet.compiler.graph.public_maps import pick
from privet.compiler.graph.registry import operator
from privet.compiler.graph.site import Operand, Private, Site

_RESTRICTIONS = "weights and lengths constant; only where a suite has their `Mul`"
_PARAMETERS = {
    "Affine": {"alpha": 1.0, "beta": 0.0},
    "Elu": {"alpha": 1.0},
    "HardSigmoid": {"alpha": 0.2, "beta": 0.5},
    "LeakyRelu": {"alpha": 0.01},
    "ScaledTanh": {"alpha": 1.0, "beta": 1.0},
    "ThresholdedRelu": {"alpha": 1.0},
}
_PLAIN = ("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh")

State = Operand | None
"""The state of a cell, `[rows, hidden]`; None where it is zero."""


@dataclass(frozen=True)
class Activation:
    """An activation of a cell: the ONNX operator's name and its constants."""

    name: str
    parameters: tuple[float, ...] = ()

    def __call__(self, site: Site, x: Private) -> Private:
        values = dict(zip(_PARAMETERS.get(self.name, ()), self.parameters, strict=True))
        match self.name:
            case "Affine":
                scaled = times_constant(site, x, np.asarray(values["alpha"]))
                return plus_constant(site, scaled, np.asarray(values["beta"]))
            case "ScaledTanh":
                inner = times_constant(site, x, np.asarray(values["beta"]))
                return times_constant(site, site.apply("Tanh", inner), np.asarray(values["alpha"]))
            case _:
                return site.apply(self.name, x, **values)


@dataclass(frozen=True, eq=False)
class Direction:
    """One direction's weights: of inputs `[width, gates * hidden]`, of the state
    `[hidden, gates * hidden]`, the bias `[gates * hidden]` of both, `[hidden]` of a state that is
    reset after its weights, and of peepholes `[3, hidden]`, if there are any.
    """

    is_reverse: bool
    activations: tuple[Activation, ...]
    inputs: Array
    states: Array
    input_bias: Array
    state_bias: Array
    peepholes: Array | None


@dataclass(frozen=True, eq=False)
class Cell:
    """Directions that go side by side: tensors have rows for the samples of each in turn."""

    site: Site
    directions: Sequence[Direction]
    hidden: int
    rows: int
    clip: float
    is_joined: bool

    def activate(self, index: int, x: State) -> Private:
        """An activation of gates, which are clipped before it if the model says so."""
        x = _private(x)
        if self.clip and index < 2:
            x = self.site.apply("Clip", x, min=-self.clip, max=self.clip)
        return self.directions[0].activations[index](self.site, x)

    def gates(self, x: State, first: int, last: int) -> State:
        """Columns of some gates."""
        start, end = first * self.hidden, last * self.hidden
        if isinstance(x, Private):
            return self.site.part(x, 1, start, end)
        return None if x is None else x[:, start:end]

    def times_weights(self, state: State, first: int, last: int) -> State:
        """The state times the weights of some gates."""
        if state is None:
            return None
        products: list[Operand] = []
        for index, direction in enumerate(self.directions):
            weight = direction.states[:, first * self.hidden : last * self.hidden]
            start, end = index * self.rows, (index + 1) * self.rows
            if isinstance(state, Private):
                part = self.site.part(state, 0, start, end)
                products.append(self.site.emit(op.Dense(weight, None), part))
            else:
                products.append(state[start:end] @ weight)
        return _joined(self.site, products, 0)

    def along_rows(self, vectors: Sequence[Array]) -> Array:
        """A vector for each direction, on the rows of each."""
        return np.repeat(np.stack(vectors), self.rows, axis=0)


def _rnn(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """`f(x W + h R)`."""
    return [cell.activate(0, _plus(cell.site, x, cell.times_weights(states[0], 0, 1)))]


def _gru(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """Gates z, r and h; the new state is `h + z (H - h)`."""
    site, (state,) = cell.site, states
    is_late = bool(site.attribute("linear_before_reset", 0))
    from_state = cell.times_weights(state, 0, 3 if is_late else 2)
    gate_sum = _plus(site, cell.gates(x, 0, 2), cell.gates(from_state, 0, 2))
    gates = cell.activate(0, gate_sum)
    reset = cell.gates(gates, 1, 2)
    if is_late:
        bias = cell.along_rows([direction.state_bias for direction in cell.directions])
        through = _times(site, reset, _plus(site, cell.gates(from_state, 2, 3), bias))
    else:
        through = cell.times_weights(_times(site, reset, state), 2, 3)
    new = cell.activate(1, _plus(site, cell.gates(x, 2, 3), through))
    assert isinstance(new, Private)
    gap = _plus(site, site.emit(op.Negate(), new), state)
    return [_plus(site, new, _times(site, cell.gates(gates, 0, 1), gap))]


def _lstm(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """Gates i, f, o and c; the new cell is `f C + i c` and the new state `o h(C)`."""
    site, (state, memory) = cell.site, states
    total = _plus(site, x, cell.times_weights(state, 0, 4))
    peepholes = [
        direction.peepholes for direction in cell.directions if direction.peepholes is not None
    ]
    if cell.is_joined:
        gates = cell.activate(0, total)
        input_and_forget, out = cell.gates(gates, 0, 2), cell.gates(gates, 2, 3)
        half = cell.gates(gates, 3, 4)
        new = _plus(site, _plus(site, half, half), np.asarray(-1.0))
    else:
        before, out = cell.gates(total, 0, 2), cell.gates(total, 2, 3)
        if peepholes and memory is not None:
            peephole_terms = [
                _times(site, memory, cell.along_rows([p[k] for p in peepholes])) for k in (0, 1)
            ]
            before = _plus(site, before, _joined(site, peephole_terms, 1))
        input_and_forget, new = cell.activate(0, before), cell.activate(1, cell.gates(total, 3, 4))
    input_gate, forget = cell.gates(input_and_forget, 0, 1), cell.gates(input_and_forget, 1, 2)
    if site.attribute("input_forget", 0):
        assert isinstance(input_gate, Private)
        forget = _plus(site, site.emit(op.Negate(), input_gate), np.asarray(1.0))
        input_and_forget = _joined(site, [input_gate, forget], 1)
    if isinstance(memory, Private):
        products = _times(site, input_and_forget, _joined(site, [new, memory], 1))
        memory = _plus(site, cell.gates(products, 0, 1), cell.gates(products, 1, 2))
    else:
        memory = _plus(site, _times(site, input_gate, new), _times(site, forget, memory))
    if not cell.is_joined:
        if peepholes:
            look = cell.along_rows([p[2] for p in peepholes])
            out = _plus(site, out, _times(site, memory, look))
        out = cell.activate(0, out)
    return [_times(site, out, cell.activate(2, memory)), memory]


def _joined(site: Site, parts: Sequence[State], axis: int) -> State:
    """Parts of one kind next to one another."""
    private = [part for part in parts if isinstance(part, Private)]
    if private:
        return site.joined(axis, private)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)], axis)


def _plus(site: Site, a: State, b: State) -> State:
    if not isinstance(a, Private):
        a, b = b, a
    if a is None or b is None:
        return a if b is None else b
    if isinstance(a, Private):
        return site.emit(op.Add(), a, b) if isinstance(b, Private) else plus_constant(site, a, b)
    return np.asarray(a + b)


def _times(site: Site, a: State, b: State) -> State:
    if not isinstance(a, Private):
        a, b = b, a
    if a is None or b is None:
        return None
    if isinstance(a, Private):
        return site.emit(op.Mul(), a, b) if isinstance(b, Private) else times_constant(site, a, b)
    return np.asarray(a * b)


Cells = Callable[[Cell, Private, Sequence[State]], list[State]]


CELLS: dict[str, tuple[Cells, tuple[int, ...], tuple[str, ...]]] = {
    "RNN": (_rnn, (0,), ("Tanh",)),
    "GRU": (_gru, (0, 1, 2), ("Sigmoid", "Tanh")),
    "LSTM": (_lstm, (0, 2, 1, 3), ("Sigmoid", "Tanh", "Tanh")),
}
"""The cell of each operator, which of ONNX's gates it has at which place, and its activations where
a node names none."""


@operator("RNN", since=7, restrictions=_RESTRICTIONS)
@operator("GRU", since=7, restrictions=_RESTRICTIONS)
@operator("LSTM", since=7, restrictions=_RESTRICTIONS)
def unrolled(site: Site) -> tuple[Operand, ...]:
    """With any of ONNX's activations; GRU with the linear layer before or after the reset gate,
    LSTM with peepholes and coupled gates."""
    return _Net(site).outputs()


class _Net:
    """A node: its weights, and the walk over the steps."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.step, self.order, self.defaults = CELLS[site.operator]
        x = site.private(0)
        if x.integer:
            site.refuse("its sequence is of integers", "Cast to float first")
        self.is_batch_first = bool(site.attribute("layout", 0))
        self.x = site.emit(op.Transpose((1, 0, 2)), x) if self.is_batch_first else x
        self.length, self.rows, self.width = self.x.shape
        self.states = 2 if self.step is _lstm else 1
        weight = real(site.constant(1, "weights"))
        self.count, self.hidden = weight.shape[0], weight.shape[1] // len(self.order)
        self.clip = float(site.attribute("clip", 0.0))
        way = site.attribute("direction", "forward")
        self.directions = [
            self._direction(index, weight[index], is_reverse=way == "reverse" or index == 1)
            for index in range(self.count)
        ]

    def _direction(self, index: int, weight: Array, *, is_reverse: bool) -> Direction:
        site, hidden, count = self.site, self.hidden, len(self.order)
        states = real(site.constant(2, "weights"))[index]
        bias = np.zeros(2 * count * hidden)
        if site.has(3):
            bias = real(site.constant(3, "biases"))[index]
        peepholes = None
        if self.step is _lstm and site.has(7):
            peepholes = real(site.constant(7, "peepholes"))[index].reshape(3, hidden)[[0, 2, 1]]
        activations = self._activations(index)
        parts = [
            np.concatenate([part.reshape(count, hidden, -1)[gate] for gate in self.order])
            for part in (weight, states, bias[: count * hidden], bias[count * hidden :])
        ]
        input_weights, state_weights, first, second = (
            parts[0].T,
            parts[1].T,
            parts[2][:, 0],
            parts[3][:, 0],
        )
        late = np.zeros(hidden)
        if self.step is _gru and site.attribute("linear_before_reset", 0):
            late, second = second[2 * hidden :], second.copy()
            second[2 * hidden :] = 0.0
        if self._is_joined(activations):
            factor = np.repeat([1.0, 1.0, 1.0, 2.0], hidden).astype(input_weights.dtype)
            input_weights, state_weights, first, second = (
                part * factor for part in (input_weights, state_weights, first, second)
            )
        return Direction(
            is_reverse, activations, input_weights, state_weights, first + second, late, peepholes
        )

    def _is_joined(self, activations: Sequence[Activation]) -> bool:
        """Whether all gates of an LSTM take one function: `tanh(x) = 2 sigmoid(2 x) - 1`."""
        usual = self.step is _lstm and [activation.name for activation in activations[:2]] == [
            "Sigmoid",
            "Tanh",
        ]
        return usual and not self.clip and not self.site.has(7)

    def _activations(self, index: int) -> tuple[Activation, ...]:
        """A direction's activations. Lists of constants have entries for those that use them."""
        count = len(self.defaults)
        raw_names: list[bytes] = self.site.attribute("activations", [])
        names = [name.decode() for name in raw_names]
        names = names or list(self.defaults) * self.count
        titles = {entry.lower(): entry for entry in (*_PLAIN, *_PARAMETERS)}
        lists = {name: list(self.site.floats(f"activation_{name}")) for name in ("alpha", "beta")}
        result = []
        for name in names:
            title = titles.get(name.lower())
            if title is None or len(names) != count * self.count:
                self.site.refuse(f"its activations are {names}", "Check the model")
            constants = _PARAMETERS.get(title, {})
            values = [lists[k].pop(0) if lists[k] else usual for k, usual in constants.items()]
            result.append(Activation(title, tuple(map(float, values))))
        return tuple(result[index * count : (index + 1) * count])

    def outputs(self) -> tuple[Operand, ...]:
        """Y, Y_h and for LSTM Y_c."""
        site = self.site
        lengths = [self.length] * self.rows
        if site.has(4):
            lengths = [int(n) for n in site.constant(4, "lengths").ravel()]
        if len(lengths) != self.rows or min(lengths) < 1 or max(lengths) > self.length:
            site.refuse(f"its lengths are {lengths}, of {self.length} steps", "Check the model")
        initial = [self._initial(5 + index) for index in range(self.states)]
        rows: list[int] = []
        parts = []
        for length in sorted(set(lengths)):
            rows_of_length = [row for row, row_length in enumerate(lengths) if row_length == length]
            rows += rows_of_length
            parts.append(self._run(rows_of_length, length, initial))
        back = [rows.index(row) for row in range(self.rows)]
        axes = (2, *([1] * self.states))
        whole = []
        for axis, tensors in zip(axes, zip(*parts, strict=True), strict=True):
            joined = site.joined(axis, tensors)
            if back != list(range(self.rows)):
                joined = pick(site, joined, axis, back)
            if self.is_batch_first:
                joined = site.emit(op.Transpose((2, 0, 1, 3) if axis == 2 else (1, 0, 2)), joined)
            whole.append(joined)
        return tuple(whole)

    def _initial(self, index: int) -> State:
        """A state to begin with, `[directions, rows, hidden]`."""
        if not self.site.has(index):
            return None
        state = self.site.operand(index)
        if isinstance(state, Private):
            return self.site.emit(op.Transpose((1, 0, 2)), state) if self.is_batch_first else state
        if not state.any():
            return None
        return np.swapaxes(real(state), 0, 1) if self.is_batch_first else real(state)

    def _run(self, rows: Sequence[int], length: int, initial: Sequence[State]) -> list[Private]:
        """The outputs for samples of one length, `[steps, directions, rows, hidden]` and `[..]`."""
        x = self.x
        if len(rows) < self.rows:
            x = pick(self.site, x, 1, rows)
            initial = [self._picked(state, rows) for state in initial]
        x = self.site.part(x, 0, 0, length)
        alike = len({direction.activations for direction in self.directions}) == 1
        indices = range(self.count)
        chains = [
            self._chain(x, group, initial)
            for group in ([tuple(indices)] if alike else [(index,) for index in indices])
        ]
        axes = (1, *([0] * self.states))
        parts = zip(axes, zip(*chains, strict=True), strict=True)
        outputs = [self.site.joined(axis, operands) for axis, operands in parts]
        if length < self.length:
            after = (self.length - length, 0, 0, 0)
            outputs[0] = self.site.emit(op.Pad((0, 0, 0, 0), after, 0.0), outputs[0])
        return outputs

    def _picked(self, state: State, rows: Sequence[int]) -> State:
        if isinstance(state, Private):
            return pick(self.site, state, 1, rows)
        return None if state is None else state[:, list(rows)]

    def _chain(
        self, x: Private, group: Sequence[int], initial: Sequence[State]
    ) -> tuple[Private, ...]:
        """Some directions side by side: `[steps, directions, rows, hidden]`, and last states."""
        site, (length, rows, width) = self.site, x.shape
        directions = [self.directions[index] for index in group]
        cell = Cell(
            site,
            directions,
            self.hidden,
            rows,
            self.clip,
            self._is_joined(directions[0].activations),
        )
        weight = np.concatenate([direction.inputs for direction in directions], axis=1)
        bias = np.concatenate([direction.input_bias for direction in directions])
        flat = site.reshape(x, (length * rows, width))
        product = site.reshape(
            site.emit(op.Dense(weight, bias), flat), (length, rows, weight.shape[1])
        )
        size = weight.shape[1] // len(directions)
        steps = [
            self._turned(site.part(product, 2, index * size, (index + 1) * size), direction)
            for index, direction in enumerate(directions)
        ]
        inputs = site.joined(1, steps)
        states = [self._begin(state, group) for state in initial]
        results = []
        for time in range(length):
            now = site.part(inputs, 0, time, time + 1)
            states = self.step(cell, site.reshape(now, inputs.shape[1:]), states)
            results.append(states[0])
        shape = (1, len(directions), rows, self.hidden)
        all_states = site.joined(0, [site.reshape(_private(result), shape) for result in results])
        sides = [
            self._turned(site.part(all_states, 1, index, index + 1), direction)
            for index, direction in enumerate(directions)
        ]
        last = [site.reshape(_private(state), shape[1:]) for state in states]
        return (site.joined(1, sides), *last)

    def _turned(self, x: Private, direction: Direction) -> Private:
        """The steps in the order in which a direction takes them."""
        length = x.shape[0]
        if not direction.is_reverse or length == 1:
            return x
        return self.site.part(x, 0, length - 1, -1, -1)

    def _begin(self, state: State, group: Sequence[int]) -> State:
        """The first state of some directions, as rows."""
        if state is None:
            return None
        if isinstance(state, Private):
            part = self.site.part(state, 0, group[0], group[-1] + 1)
            return self.site.reshape(part, (len(group) * part.shape[1], self.hidden))
        return state[list(group)].reshape(-1, self.hidden)


def _private(x: State) -> Private:
    assert isinstance(x, Private)
    return x
