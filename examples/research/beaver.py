"""A new protocol in about 130 lines, and a suite of one's own, from which research can start.

For research, not for deployment. Both parties are semi-honest, and a dealer who colludes with
neither gives them triples (Beaver, CRYPTO 1991). Values are additive shares modulo 2^64. The
client, the server and the dealer are processes of this machine; each is given its own data alone,
and their messages go through pipes, which nothing encrypts. A truncation shifts each party's
share (SecureML, S&P 2017): it is off by one at times, and wrong with a probability of |x| / 2^63.

The protocol is `deal` and `Party`, over `Channel`: change them and `OPERATIONS` to try another. The
rest, some 260 lines, starts the parties, says what the suite is, and trains a model to try it on.
`privet.run` compiles the model for it and compares with ONNX Runtime.
"""

import multiprocessing
import resource
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

import privet
from privet import suites
from privet.compiler.executor import encode_input
from privet.compiler.program import Program
from privet.compiler.program.public import ProgramOperation
from privet.errors import Misuse, PeerError
from privet.suites import (
    Job,
    LocalJob,
    LocalResult,
    Mode,
    Planned,
    Precision,
    Suite,
    Trust,
    Weakness,
)
from privet.suites.costs import LayerCost, MemoryUse, PhaseCost
from privet.suites.security import Assumption, Security

Ring = npt.NDArray[np.uint64]
"""Elements modulo 2^64: numpy's sums and products of this type wrap."""

PRODUCTS: dict[str, Callable[[Ring, Ring], Ring]] = {"dense": np.matmul, "mul": np.multiply}
"""The operations that multiply two shared values; each takes a triple."""

OPERATIONS = (*PRODUCTS, "add", "sub", "reshape", "truncate")


# The protocol.


class Channel:
    """A pipe to another party, which counts bytes and how often its owner waits."""

    HEADER = 4
    """Bytes that a pipe puts before a message below 2 GiB."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe, self.sent, self.received, self.rounds = pipe, 0, 0, 0

    def send(self, *arrays: Ring) -> None:
        message = b"".join(array.tobytes() for array in arrays)
        self.sent += self.HEADER + len(message)
        self.pipe.send_bytes(message)

    def receive(self, *shapes: Sequence[int]) -> list[Ring]:
        """Waits for a message with arrays of these shapes."""
        message = self.pipe.recv_bytes()
        self.received, self.rounds = self.received + self.HEADER + len(message), self.rounds + 1
        ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
        parts = np.split(np.frombuffer(message, np.uint64), ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def exchange(self, *arrays: Ring) -> list[Ring]:
        """Sends arrays while it waits for the other's of the same shapes: one round."""
        sending = Thread(target=self.send, args=arrays)
        sending.start()
        peer_arrays = self.receive(*(array.shape for array in arrays))
        sending.join()
        return peer_arrays


def uniform(shape: Sequence[int]) -> Ring:
    """Uniform elements, from the operating system."""
    return np.frombuffer(secrets.token_bytes(8 * int(np.prod(shape))), np.uint64).reshape(shape)


def triples(program: Program) -> Iterator[tuple[str, list[Sequence[int]]]]:
    """Of each product the operation, and the shapes of both factors and the result."""
    for operation in program.operations:
        if operation.op in PRODUCTS:
            weight = [operation.attributes["weight_shape"]] if operation.op == "dense" else []
            factors = [program.values[value].shape for value in operation.inputs]
            yield operation.op, [*factors, *weight, program.values[operation.output].shape]


def deal(program: Program, client: Channel, server: Channel) -> None:
    """The dealer, who sees the public half of a program: shares of a, b and their product."""
    for op, (left, right, _) in triples(program):
        a, b = uniform(left), uniform(right)
        triple = a, b, PRODUCTS[op](a, b)
        masks = [uniform(part.shape) for part in triple]
        client.send(*masks)
        server.send(*(part - mask for part, mask in zip(triple, masks, strict=True)))


@dataclass
class Party:
    """The server, which has the program's `weights`, or the client, which has None."""

    program: Program
    weights: dict[str, Ring] | None
    peer: Channel
    triples: Iterator[list[Ring]]

    def times(self, op: str, x: Ring, y: Ring) -> Ring:
        """A share of a product: both factors are opened, each less its part of a triple."""
        a, b, c = next(self.triples)
        differences = (x - a, y - b)
        d, e = (
            own_share + peer_share
            for own_share, peer_share in zip(
                differences, self.peer.exchange(*differences), strict=True
            )
        )
        share = c + PRODUCTS[op](d, b) + PRODUCTS[op](a, e)
        return share if self.weights is None else share + PRODUCTS[op](d, e)

    def weight(self, name: str, shape: Sequence[int]) -> Ring:
        """A share of a weight: all of it is the server's."""
        return np.zeros(shape, np.uint64) if self.weights is None else self.weights[name]

    def compute(self, operation: ProgramOperation, operands: list[Ring]) -> Ring:
        """A share of an operation's result."""
        x, y, attributes = operands[0], operands[-1], operation.attributes
        shape = self.program.values[operation.output].shape
        match operation.op:
            case "dense":
                product = self.times(
                    "dense", x, self.weight(attributes["weight"], attributes["weight_shape"])
                )
                return (
                    product + self.weight(attributes["bias"], shape[1:])
                    if attributes["bias"]
                    else product
                )
            case "mul":
                return self.times("mul", x, y)
            case "truncate":  # the shares' sum wraps: one party's is negative, and is rounded so
                bits = np.uint64(attributes["bits"])
                return x >> bits if self.weights is None else -(-x >> bits)
            case "add" | "sub":
                return x + y if operation.op == "add" else x - y
        return x.reshape(shape)

    def run(self, inputs: list[Ring]) -> tuple[list[Ring], list[LayerCost]]:
        """The outputs, of which the client learns all, and the cost of each layer.

        `inputs` are the client's."""
        shapes = [self.program.values[entry.value].shape for entry in self.program.inputs]
        if self.weights is None:
            shares = [uniform(shape) for shape in shapes]
            self.peer.send(*(x - share for x, share in zip(inputs, shares, strict=True)))
        else:
            shares = self.peer.receive(*shapes)
        values = {
            entry.value: share for entry, share in zip(self.program.inputs, shares, strict=True)
        }
        layers = []
        for operation in self.program.operations:
            before, start = self.traffic(), time.perf_counter()
            values[operation.output] = self.compute(
                operation, [values[value] for value in operation.inputs]
            )
            costs = [now - then for now, then in zip(self.traffic(), before, strict=True)]
            layers.append(
                LayerCost(
                    operation.name, operation.op, "online", time.perf_counter() - start, *costs
                )
            )
        outputs = [values[output.value] for output in self.program.outputs]
        if self.weights is not None:
            self.peer.send(*outputs)
            return [], layers
        peer_shares = self.peer.receive(*(share.shape for share in outputs))
        return [
            own_share + peer_share
            for own_share, peer_share in zip(outputs, peer_shares, strict=True)
        ], layers

    def traffic(self) -> tuple[int, int, int]:
        """Bytes that were sent and received, and rounds."""
        return self.peer.sent, self.peer.received, self.peer.rounds


# The parties' processes, and what the suite says of itself.


@dataclass(frozen=True)
class Report:
    """What a party tells at its end; `offline` and `online` as it saw them."""

    outputs: list[Ring]
    offline: PhaseCost
    online: PhaseCost
    layers: list[LayerCost]


def take_part(
    public: bytes,
    weights: dict[str, Ring] | None,
    inputs: list[Ring],
    dealer: Connection,
    peer: Connection,
    report: Connection,
) -> None:
    """The process of a client, which has no weights, or a server, which has no inputs."""
    program, dealing = Program.from_public_bytes(public), Channel(dealer)
    times = [(time.perf_counter(), time.process_time())]
    material = [dealing.receive(*shapes) for _, shapes in triples(program)]
    times.append((time.perf_counter(), time.process_time()))
    party = Party(program, weights, Channel(peer), iter(material))
    outputs, layers = party.run(inputs)
    times.append((time.perf_counter(), time.process_time()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    def cost(phase: int, sent: int, received: int, rounds: int, dealt: int = 0) -> PhaseCost:
        (wall, cpu), (wall_end, cpu_end) = times[phase : phase + 2]
        return PhaseCost(wall_end - wall, sent, received, rounds, peak, dealt, cpu_end - cpu)

    offline = cost(0, 0, 0, dealing.rounds, dealing.received)
    report.send(Report(outputs, offline, cost(1, *party.traffic()), layers))


def start_dealer(public: bytes, client: Connection, server: Connection) -> None:
    """The dealer's process."""
    deal(Program.from_public_bytes(public), Channel(client), Channel(server))


@dataclass(frozen=True, kw_only=True)
class Beaver(Suite):
    """Additive shares and triples of a dealer."""

    name: ClassVar[str] = "beaver"
    about: ClassVar[str] = "for research: additive shares and triples of a dealer"
    precision: ClassVar[Precision] = Precision(bits=40, scale=12, weight_scale=12)

    @property
    def trust(self) -> Trust:
        collusion, learns = (
            "the dealer colludes with neither party",
            "the client learns the outputs",
        )
        return Trust(collusion, "semi-honest parties", learns, "for research, not for deployment")

    @property
    def mode(self) -> Mode:
        return Mode(self.name, correlations="dealer")

    @property
    def weaknesses(self) -> tuple[Weakness, ...]:
        return (Weakness("research", "for research: " + self.trust.collusion),)

    @property
    def label(self) -> str:
        return self.name

    @classmethod
    def labelled(cls) -> Sequence["Beaver"]:
        return [cls()]

    @property
    def jobs(self) -> tuple[Job, ...]:
        return (Job("infer", "prediction", ("client", "server", "dealer")),)

    def refusal(self, operation: str) -> tuple[str, str] | None:
        if operation in OPERATIONS:
            return None
        return "suite beaver has no protocol for it", f"it computes {', '.join(OPERATIONS)}"

    def plan(self, program: Program, link: Any = None) -> Planned:
        figures = {"plan": {"triples": len(list(triples(program)))}}
        assumption = Assumption("masks", "the operating system's random numbers", 256.0, 1, 256.0)
        security = Security((assumption,), 256.0, (), None, None, None, "", None, ())
        return Planned(self, figures, lambda: security, (self.trust.collusion,))

    def run_local(self, job: LocalJob) -> LocalResult:
        if job.link or job.memory:
            raise Misuse("suite beaver shapes no link and limits no memory: leave them out")
        program, weights = job.compiled.program, job.compiled.weights.tensors
        public = program.to_public_bytes()
        inputs = [array.view(np.uint64) for array in encode_input(program, job.inputs)]
        tensors = {name: tensor.view(np.uint64) for name, tensor in weights.items()}
        # `spawn` starts processes without a copy of this one's memory, which holds everything.
        start = multiprocessing.get_context("spawn")
        dealer_pipes, peers = [start.Pipe(), start.Pipe()], start.Pipe()
        reports = [start.Pipe(duplex=False) for _ in range(2)]
        roles = [(None, inputs), (tensors, [])]
        parties = [
            start.Process(target=start_dealer, args=(public, *(end for end, _ in dealer_pipes)))
        ]
        parties += [
            start.Process(target=take_part, args=(public, *arguments, dealer, peer, report))
            for arguments, (_, dealer), peer, (_, report) in zip(
                roles, dealer_pipes, peers, reports, strict=True
            )
        ]
        for party in parties:
            party.start()
        # Once this process has none of their ends, whoever dies is noticed by the others.
        for end in (*dealer_pipes[0], *dealer_pipes[1], *peers, *(report for _, report in reports)):
            end.close()
        try:
            client, server = (receive_report(report, job.timeout) for report, _ in reports)
        finally:
            for party in parties:
                party.kill()
                party.join()
        phases = [(client.offline, server.offline), (client.online, server.online)]
        offline, online = (
            replace(
                client_cost,
                peak_rss_mb=max(client_cost.peak_rss_mb, server_cost.peak_rss_mb),
                cpu_seconds=(client_cost.cpu_seconds or 0) + (server_cost.cpu_seconds or 0),
            )
            for client_cost, server_cost in phases
        )
        memory = {
            party: MemoryUse(None, report.online.peak_rss_mb)
            for party, report in (("client", client), ("server", server))
        }
        integers: list[Any] = [output.view(np.int64) for output in client.outputs]
        return LocalResult(self, integers, online, tuple(client.layers), memory, offline)


def receive_report(report: Connection, timeout: float) -> Report:
    """The report of a party at its end.

    # Errors
    `PeerError` if it does not come so far.
    """
    try:
        if report.poll(timeout):
            result: Report = report.recv()
            return result
    except EOFError:
        pass
    raise PeerError("a party of suite beaver ended early, or took too long")


# A model, and its private inference.


def quadratic_digits() -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """A classifier of handwritten digits, and the digits that it was not fitted on.

    Its features are products of random projections, and its readout is fitted by ridge regression.
    """
    # Here, since the parties' processes read this file as well and need none of it.
    from onnx import TensorProto, helper, numpy_helper
    from sklearn.datasets import load_digits

    digits = load_digits()
    images, labels = (digits.data / 16).astype(np.float32), digits.target
    rng = np.random.default_rng(1)
    projections = rng.normal(size=(2, 64, 256), scale=1 / 8).astype(np.float32)
    features = np.prod(images[:1500] @ projections, axis=0)
    normal = features.T @ features + 0.1 * np.eye(256)
    readout = np.linalg.solve(normal, features.T @ np.eye(10)[labels[:1500]]).astype(np.float32)
    tensors = {"left": projections[0], "right": projections[1], "readout": readout}
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["image", "left"], ["one"]),
            helper.make_node("MatMul", ["image", "right"], ["other"]),
            helper.make_node("Mul", ["one", "other"], ["features"]),
            helper.make_node("MatMul", ["features", "readout"], ["scores"]),
        ],
        "quadratic digits",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 64])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10])],
        [numpy_helper.from_array(tensor, name) for name, tensor in tensors.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return (
        helper.make_model(graph, opset_imports=opsets, ir_version=8),
        images[1500:],
        labels[1500:],
    )


if __name__ == "__main__":
    suites.register(Beaver)
    model, images, labels = quadratic_digits()
    samples = [{"image": image[None]} for image in images[100:]]
    run = privet.run(model, {"image": images[:4]}, suite="beaver", batch=4, calibration=samples)
    predictions = run.outputs["scores"].argmax(axis=1)
    print("the client learns:", *predictions, "of digits", *labels[:4])
    print(f"off ONNX Runtime by {run.max_abs_error:.4f} at most")
    for layer in run.layers:
        traffic = f"{layer.bytes_client:,} B sent, {layer.bytes_server:,} B received"
        print(f"  {layer.operator:9} {traffic}, rounds: {layer.rounds}")
    total = run.online.bytes_client + run.online.bytes_server
    print(f"online: {total:,} B, {run.online.rounds} rounds")
    print(f"offline: {run.offline.bytes_dealer:,} B from the dealer to each party")
    print(f"{run.trust}: {run.config.trust.adversary}, {run.config.trust.collusion}")
    assert run.argmax_agrees
    assert run.max_abs_error < 0.02
