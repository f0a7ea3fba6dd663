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
    input_weights: Array
    state_weights: Array
    input_bias: Array
    state_bias: Array
    peepholes: Array | None


@dataclass(frozen=True, eq=False)
class Cell:
    """Directions that go side by side: tensors have rows for the samples of each in turn."""

    site: Site
    directions: Sequence[Direction]
    hidden_size: int
    rows: int
    clip: float
    shares_activation: bool

    def activate(self, index: int, x: State) -> Private:
        """An activation of gates, which are clipped before it if the model says so."""
        x = _as_private(x)
        if self.clip and index < 2:
            x = self.site.apply("Clip", x, min=-self.clip, max=self.clip)
        return self.directions[0].activations[index](self.site, x)

    def gates(self, x: State, first: int, last: int) -> State:
        """Columns of some gates."""
        start, end = first * self.hidden_size, last * self.hidden_size
        if isinstance(x, Private):
            return self.site.slice_axis(x, 1, start, end)
        return None if x is None else x[:, start:end]

    def times_weights(self, state: State, first: int, last: int) -> State:
        """The state times the weights of some gates."""
        if state is None:
            return None
        products: list[Operand] = []
        for index, direction in enumerate(self.directions):
            weight = direction.state_weights[:, first * self.hidden_size : last * self.hidden_size]
            start, end = index * self.rows, (index + 1) * self.rows
            if isinstance(state, Private):
                part = self.site.slice_axis(state, 0, start, end)
                products.append(self.site.emit(op.Dense(weight, None), part))
            else:
                products.append(state[start:end] @ weight)
        return _concat(self.site, products, 0)

    def repeat_rows(self, vectors: Sequence[Array]) -> Array:
        """A vector for each direction, on the rows of each."""
        return np.repeat(np.stack(vectors), self.rows, axis=0)


def _rnn(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """`f(x W + h R)`."""
    return [cell.activate(0, _add(cell.site, x, cell.times_weights(states[0], 0, 1)))]


def _gru(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """Gates z, r and h; the new state is `h + z (H - h)`."""
    site, (state,) = cell.site, states
    resets_after = bool(site.attribute("linear_before_reset", 0))
    recurrent = cell.times_weights(state, 0, 3 if resets_after else 2)
    gate_sum = _add(site, cell.gates(x, 0, 2), cell.gates(recurrent, 0, 2))
    gates = cell.activate(0, gate_sum)
    reset = cell.gates(gates, 1, 2)
    if resets_after:
        bias = cell.repeat_rows([direction.state_bias for direction in cell.directions])
        candidate_state = _multiply(site, reset, _add(site, cell.gates(recurrent, 2, 3), bias))
    else:
        candidate_state = cell.times_weights(_multiply(site, reset, state), 2, 3)
    candidate = cell.activate(1, _add(site, cell.gates(x, 2, 3), candidate_state))
    assert isinstance(candidate, Private)
    difference = _add(site, site.emit(op.Negate(), candidate), state)
    return [_add(site, candidate, _multiply(site, cell.gates(gates, 0, 1), difference))]


def _lstm(cell: Cell, x: Private, states: Sequence[State]) -> list[State]:
    """Gates i, f, o and c; the new cell is `f C + i c` and the new state `o h(C)`."""
    site, (state, memory) = cell.site, states
    gate_sum = _add(site, x, cell.times_weights(state, 0, 4))
    peepholes = [
        direction.peepholes for direction in cell.directions if direction.peepholes is not None
    ]
    if cell.shares_activation:
        gates = cell.activate(0, gate_sum)
        input_and_forget, output_gate = cell.gates(gates, 0, 2), cell.gates(gates, 2, 3)
        halves = cell.gates(gates, 3, 4)
        candidate = _add(site, _add(site, halves, halves), np.asarray(-1.0))
    else:
        gate_inputs, output_gate = cell.gates(gate_sum, 0, 2), cell.gates(gate_sum, 2, 3)
        if peepholes and memory is not None:
            peephole_terms = [
                _multiply(site, memory, cell.repeat_rows([p[k] for p in peepholes])) for k in (0, 1)
            ]
            gate_inputs = _add(site, gate_inputs, _concat(site, peephole_terms, 1))
        input_and_forget, candidate = (
            cell.activate(0, gate_inputs),
            cell.activate(1, cell.gates(gate_sum, 3, 4)),
        )
    input_gate, forget_gate = cell.gates(input_and_forget, 0, 1), cell.gates(input_and_forget, 1, 2)
    if site.attribute("input_forget", 0):
        assert isinstance(input_gate, Private)
        forget_gate = _add(site, site.emit(op.Negate(), input_gate), np.asarray(1.0))
        input_and_forget = _concat(site, [input_gate, forget_gate], 1)
    if isinstance(memory, Private):
        products = _multiply(site, input_and_forget, _concat(site, [candidate, memory], 1))
        memory = _add(site, cell.gates(products, 0, 1), cell.gates(products, 1, 2))
    else:
        memory = _add(
            site, _multiply(site, input_gate, candidate), _multiply(site, forget_gate, memory)
        )
    if not cell.shares_activation:
        if peepholes:
            output_peephole = cell.repeat_rows([p[2] for p in peepholes])
            output_gate = _add(site, output_gate, _multiply(site, memory, output_peephole))
        output_gate = cell.activate(0, output_gate)
    return [_multiply(site, output_gate, cell.activate(2, memory)), memory]


def _concat(site: Site, parts: Sequence[State], axis: int) -> State:
    """Parts of one kind next to one another."""
    private = [part for part in parts if isinstance(part, Private)]
    if private:
        return site.concat(axis, private)
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part for part in parts if isinstance(part, np.ndarray)], axis)


def _add(site: Site, a: State, b: State) -> State:
    if not isinstance(a, Private):
        a, b = b, a
    if a is None or b is None:
        return a if b is None else b
    if isinstance(a, Private):
        return site.emit(op.Add(), a, b) if isinstance(b, Private) else plus_constant(site, a, b)
    return np.asarray(a + b)


def _multiply(site: Site, a: State, b: State) -> State:
    if not isinstance(a, Private):
        a, b = b, a
    if a is None or b is None:
        return None
    if isinstance(a, Private):
        return site.emit(op.Mul(), a, b) if isinstance(b, Private) else times_constant(site, a, b)
    return np.asarray(a * b)


CellStep = Callable[[Cell, Private, Sequence[State]], list[State]]


CELLS: dict[str, tuple[CellStep, tuple[int, ...], tuple[str, ...]]] = {
    "RNN": (_rnn, (0,), ("Tanh",)),
    "GRU": (_gru, (0, 1, 2), ("Sigmoid", "Tanh")),
    "LSTM": (_lstm, (0, 2, 1, 3), ("Sigmoid", "Tanh", "Tanh")),
}
"""The cell of each operator, which of ONNX's gates it has at which place, and its activations where
a node names none."""


@operator("RNN", since=7, restrictions=_RESTRICTIONS)
@operator("GRU", since=7, restrictions=_RESTRICTIONS)
@operator("LSTM", since=7, restrictions=_RESTRICTIONS)
def unroll(site: Site) -> tuple[Operand, ...]:
    """With any of ONNX's activations; GRU with the linear layer before or after the reset gate,
    LSTM with peepholes and coupled gates."""
    return _UnrolledCell(site).outputs()


class _UnrolledCell:
    """A node: its weights, and the walk over the steps."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.step, self.gate_order, self.default_activations = CELLS[site.operator]
        x = site.private(0)
        if x.integer:
            site.refuse("its sequence is of integers", "Cast to float first")
        self.is_batch_first = bool(site.attribute("layout", 0))
        self.x = site.emit(op.Transpose((1, 0, 2)), x) if self.is_batch_first else x
        self.length, self.rows, self.width = self.x.shape
        self.state_count = 2 if self.step is _lstm else 1
        weight = real(site.constant(1, "weights"))
        self.direction_count, self.hidden_size = (
            weight.shape[0],
            weight.shape[1] // len(self.gate_order),
        )
        self.clip = float(site.attribute("clip", 0.0))
        direction = site.attribute("direction", "forward")
        self.directions = [
            self._direction(index, weight[index], is_reverse=direction == "reverse" or index == 1)
            for index in range(self.direction_count)
        ]

    def _direction(self, index: int, weight: Array, *, is_reverse: bool) -> Direction:
        site, hidden_size, gate_count = self.site, self.hidden_size, len(self.gate_order)
        recurrent_weights = real(site.constant(2, "weights"))[index]
        bias = np.zeros(2 * gate_count * hidden_size)
        if site.has_input(3):
            bias = real(site.constant(3, "biases"))[index]
        peepholes = None
        if self.step is _lstm and site.has_input(7):
            peepholes = real(site.constant(7, "peepholes"))[index].reshape(3, hidden_size)[
                [0, 2, 1]
            ]
        activations = self._activations(index)
        parts = [
            np.concatenate(
                [part.reshape(gate_count, hidden_size, -1)[gate] for gate in self.gate_order]
            )
            for part in (
                weight,
                recurrent_weights,
                bias[: gate_count * hidden_size],
                bias[gate_count * hidden_size :],
            )
        ]
        input_weights, state_weights, input_bias, recurrent_bias = (
            parts[0].T,
            parts[1].T,
            parts[2][:, 0],
            parts[3][:, 0],
        )
        state_bias = np.zeros(hidden_size)
        if self.step is _gru and site.attribute("linear_before_reset", 0):
            state_bias, recurrent_bias = recurrent_bias[2 * hidden_size :], recurrent_bias.copy()
            recurrent_bias[2 * hidden_size :] = 0.0
        if self._shares_activation(activations):
            factor = np.repeat([1.0, 1.0, 1.0, 2.0], hidden_size).astype(input_weights.dtype)
            input_weights, state_weights, input_bias, recurrent_bias = (
                part * factor for part in (input_weights, state_weights, input_bias, recurrent_bias)
            )
        return Direction(
            is_reverse,
            activations,
            input_weights,
            state_weights,
            input_bias + recurrent_bias,
            state_bias,
            peepholes,
        )

    def _shares_activation(self, activations: Sequence[Activation]) -> bool:
        """Whether all gates of an LSTM take one function: `tanh(x) = 2 sigmoid(2 x) - 1`."""
        is_default = self.step is _lstm and [activation.name for activation in activations[:2]] == [
            "Sigmoid",
            "Tanh",
        ]
        return is_default and not self.clip and not self.site.has_input(7)

    def _activations(self, index: int) -> tuple[Activation, ...]:
        """A direction's activations. Lists of constants have entries for those that use them."""
        activation_count = len(self.default_activations)
        raw_names: list[bytes] = self.site.attribute("activations", [])
        names = [name.decode() for name in raw_names]
        names = names or list(self.default_activations) * self.direction_count
        names_by_lower = {entry.lower(): entry for entry in (*_PLAIN, *_PARAMETERS)}
        lists = {name: list(self.site.floats(f"activation_{name}")) for name in ("alpha", "beta")}
        result = []
        for name in names:
            op_type = names_by_lower.get(name.lower())
            if op_type is None or len(names) != activation_count * self.direction_count:
                self.site.refuse(f"its activations are {names}", "Check the model")
            constants = _PARAMETERS.get(op_type, {})
            values = [lists[k].pop(0) if lists[k] else default for k, default in constants.items()]
            result.append(Activation(op_type, tuple(map(float, values))))
        return tuple(result[index * activation_count : (index + 1) * activation_count])

    def outputs(self) -> tuple[Operand, ...]:
        """Y, Y_h and for LSTM Y_c."""
        site = self.site
        lengths = [self.length] * self.rows
        if site.has_input(4):
            lengths = [int(n) for n in site.constant(4, "lengths").ravel()]
        if len(lengths) != self.rows or min(lengths) < 1 or max(lengths) > self.length:
            site.refuse(f"its lengths are {lengths}, of {self.length} steps", "Check the model")
        initial = [self._initial(5 + index) for index in range(self.state_count)]
        rows: list[int] = []
        outputs_by_length = []
        for length in sorted(set(lengths)):
            rows_of_length = [row for row, row_length in enumerate(lengths) if row_length == length]
            rows += rows_of_length
            outputs_by_length.append(self._run(rows_of_length, length, initial))
        sample_order = [rows.index(row) for row in range(self.rows)]
        axes = (2, *([1] * self.state_count))
        outputs = []
        for axis, tensors in zip(axes, zip(*outputs_by_length, strict=True), strict=True):
            output = site.concat(axis, tensors)
            if sample_order != list(range(self.rows)):
                output = pick(site, output, axis, sample_order)
            if self.is_batch_first:
                output = site.emit(op.Transpose((2, 0, 1, 3) if axis == 2 else (1, 0, 2)), output)
            outputs.append(output)
        return tuple(outputs)

    def _initial(self, index: int) -> State:
        """A state to begin with, `[directions, rows, hidden]`."""
        if not self.site.has_input(index):
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
            initial = [self._pick_rows(state, rows) for state in initial]
        x = self.site.slice_axis(x, 0, 0, length)
        share_activations = len({direction.activations for direction in self.directions}) == 1
        indices = range(self.direction_count)
        outputs_by_group = [
            self._run_directions(x, group, initial)
            for group in (
                [tuple(indices)] if share_activations else [(index,) for index in indices]
            )
        ]
        axes = (1, *([0] * self.state_count))
        parts = zip(axes, zip(*outputs_by_group, strict=True), strict=True)
        outputs = [self.site.concat(axis, operands) for axis, operands in parts]
        if length < self.length:
            padding = (self.length - length, 0, 0, 0)
            outputs[0] = self.site.emit(op.Pad((0, 0, 0, 0), padding, 0.0), outputs[0])
        return outputs

    def _pick_rows(self, state: State, rows: Sequence[int]) -> State:
        if isinstance(state, Private):
            return pick(self.site, state, 1, rows)
        return None if state is None else state[:, list(rows)]

    def _run_directions(
        self, x: Private, group: Sequence[int], initial: Sequence[State]
    ) -> tuple[Private, ...]:
        """Some directions side by side: `[steps, directions, rows, hidden]`, and last states."""
        site, (length, rows, width) = self.site, x.shape
        directions = [self.directions[index] for index in group]
        cell = Cell(
            site,
            directions,
            self.hidden_size,
            rows,
            self.clip,
            self._shares_activation(directions[0].activations),
        )
        weight = np.concatenate([direction.input_weights for direction in directions], axis=1)
        bias = np.concatenate([direction.input_bias for direction in directions])
        flat = site.reshape(x, (length * rows, width))
        product = site.reshape(
            site.emit(op.Dense(weight, bias), flat), (length, rows, weight.shape[1])
        )
        gates_size = weight.shape[1] // len(directions)
        inputs_by_direction = [
            self._in_step_order(
                site.slice_axis(product, 2, index * gates_size, (index + 1) * gates_size), direction
            )
            for index, direction in enumerate(directions)
        ]
        inputs = site.concat(1, inputs_by_direction)
        states = [self._initial_rows(state, group) for state in initial]
        results = []
        for time in range(length):
            step_input = site.slice_axis(inputs, 0, time, time + 1)
            states = self.step(cell, site.reshape(step_input, inputs.shape[1:]), states)
            results.append(states[0])
        shape = (1, len(directions), rows, self.hidden_size)
        all_states = site.concat(
            0, [site.reshape(_as_private(result), shape) for result in results]
        )
        states_by_direction = [
            self._in_step_order(site.slice_axis(all_states, 1, index, index + 1), direction)
            for index, direction in enumerate(directions)
        ]
        last_states = [site.reshape(_as_private(state), shape[1:]) for state in states]
        return (site.concat(1, states_by_direction), *last_states)

    def _in_step_order(self, x: Private, direction: Direction) -> Private:
        """The steps in the order in which a direction takes them."""
        length = x.shape[0]
        if not direction.is_reverse or length == 1:
            return x
        return self.site.slice_axis(x, 0, length - 1, -1, -1)

    def _initial_rows(self, state: State, group: Sequence[int]) -> State:
        """The first state of some directions, as rows."""
        if state is None:
            return None
        if isinstance(state, Private):
            states = self.site.slice_axis(state, 0, group[0], group[-1] + 1)
            return self.site.reshape(states, (len(group) * states.shape[1], self.hidden_size))
        return state[list(group)].reshape(-1, self.hidden_size)


def _as_private(x: State) -> Private:
    assert isinstance(x, Private)
    return x
