"""Typed view of the extension module; `crates/py` has the meaning of each call."""

from collections.abc import Callable

PROTOCOL_VERSION: int

def resident_memory() -> int: ...

class Credentials:
    def __new__(cls, certificate: bytes, key: bytes, trust: bytes) -> Credentials: ...

class Link:
    def __new__(cls, text: str) -> Link: ...
    @property
    def rtt(self) -> float: ...
    @property
    def bits_per_second(self) -> int: ...

class Connection:
    peer: str | None
    peer_name: str | None
    rtt: float | None
    @staticmethod
    def connect(
        host: str,
        port: int,
        credentials: Credentials,
        server_name: str,
        timeout: float,
        link: Link | None = None,
    ) -> Connection: ...
    def stopper(self) -> Stopper | None: ...
    def set_timeout(self, seconds: float) -> None: ...

class Stopper:
    def stop(self) -> None: ...

class Listener:
    def __new__(cls, address: str, credentials: Credentials) -> Listener: ...
    @property
    def address(self) -> tuple[str, int]: ...
    def accept(self, timeout: float) -> Pending | None: ...

class Pending:
    address: str
    def handshake(self, timeout: float) -> Connection: ...

class Dialer:
    def __new__(
        cls,
        host: str,
        port: int,
        credentials: Credentials,
        server_name: str,
        timeout: float,
        link: Link | None = None,
    ) -> Dialer: ...
    def stop(self) -> None: ...

class Dealer:
    def __new__(cls, most_bytes: int, patience: float) -> Dealer: ...
    def serve(self, connection: Connection) -> tuple[str, str, int, int, float, float] | None: ...

class Plan:
    def __new__(
        cls,
        public: bytes,
        suite: str,
        security: str,
        rounds: str,
        truncation: str,
        correlations: str = "parties",
        link: Link | None = None,
        relu_bits: int | None = None,
    ) -> Plan: ...
    @property
    def program_hash(self) -> str: ...
    @property
    def suite(self) -> str: ...
    def piece_bytes(self) -> int: ...
    def check_client_memory(self, limit: int) -> None: ...
    def forecast(self) -> str: ...

class Client:
    def __new__(
        cls,
        connection: Connection,
        store: str,
        dealer: Dialer | None = None,
        material: int | None = None,
    ) -> Client: ...
    def describe(self, model: str | None = None) -> bytes: ...
    def ready(self, plan: Plan) -> list[str]: ...
    def prepare(
        self, plan: Plan, progress: Callable[[str, int, int, str], None] | None = None
    ) -> tuple[str, str]: ...
    def infer(
        self,
        plan: Plan,
        material: str,
        inputs: list[bytes],
        progress: Callable[[str, int, int, str], None] | None = None,
    ) -> tuple[list[bytes], str]: ...
    def infer_next(
        self,
        plan: Plan,
        inputs: list[bytes],
        progress: Callable[[str, int, int, str], None] | None = None,
    ) -> tuple[str, list[bytes], str] | None: ...
    def close(self) -> None: ...

class Server:
    def __new__(
        cls,
        store: str,
        dealer: Dialer | None = None,
        memory: int | None = None,
        material: int | None = None,
    ) -> Server: ...
    def add(self, public: bytes, weights: bytes, warm: bool | None = None) -> None: ...
    def remove(self, program: str) -> bool: ...
    def serve(
        self,
        connection: Connection,
        on_event: Callable[[str, str, str | None, str | None], None] | None = None,
        gate: Callable[[str, str | None, str | None, str | None], str | None] | None = None,
        threads: int | None = None,
    ) -> None: ...

class StreamPlan:
    def __new__(cls, public: bytes, cipher: str, key_bits: int) -> StreamPlan: ...
    def forecast(self) -> str: ...

class StreamServer:
    def __new__(
        cls, public: bytes, weights: bytes, cipher: str, key_bits: int
    ) -> StreamServer: ...
    def serve(
        self, connection: Connection, on_event: Callable[[str, str | None], None]
    ) -> None: ...

class StreamClient:
    def __new__(cls, connection: Connection) -> StreamClient: ...
    def describe(self) -> bytes: ...
    def prepare(
        self, plan: StreamPlan, progress: Callable[[str, int, int, str], None] | None = None
    ) -> str: ...
    def infer(
        self,
        plan: StreamPlan,
        inputs: list[bytes],
        progress: Callable[[str, int, int, str], None] | None = None,
    ) -> tuple[list[bytes], str]: ...
    def close(self) -> None: ...

class Store:
    def __new__(cls, path: str) -> Store: ...
    def pieces(self) -> list[str]: ...
    def discard(self, id: str) -> bool: ...
    def piece_bytes(self, id: str) -> int: ...
    def bytes(self) -> int: ...
