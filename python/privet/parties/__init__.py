"""The parties: a server that offers models, a client that asks it, a dealer, all over TLS."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.parties.client import Client, Link
    from privet.parties.credentials import Credentials
    from privet.parties.dealer import Dealer, Dealt
    from privet.parties.dry import Dry
    from privet.parties.local import Run, run
    from privet.parties.pool import Pool, PoolEvent
    from privet.parties.result import Result
    from privet.parties.server import Finished, Server
    from privet.parties.stock import Holding, Stock
    from privet.parties.target import Level
    from privet.suites.costs import DealerCost, LayerCost, MemoryUse, PhaseCost

__all__ = [
    "Client",
    "Credentials",
    "Dealer",
    "DealerCost",
    "Dealt",
    "Dry",
    "Finished",
    "Holding",
    "LayerCost",
    "Level",
    "Link",
    "MemoryUse",
    "PhaseCost",
    "Pool",
    "PoolEvent",
    "Result",
    "Run",
    "Server",
    "Stock",
    "run",
]

__getattr__ = attach(
    __name__,
    {
        "privet.parties.client": ("Client", "Link"),
        "privet.suites.costs": ("DealerCost", "LayerCost", "MemoryUse", "PhaseCost"),
        "privet.parties.credentials": ("Credentials",),
        "privet.parties.dealer": ("Dealer", "Dealt"),
        "privet.parties.dry": ("Dry",),
        "privet.parties.local": ("Run", "run"),
        "privet.parties.pool": ("Pool", "PoolEvent"),
        "privet.parties.result": ("Result",),
        "privet.parties.server": ("Finished", "Server"),
        "privet.parties.stock": ("Holding", "Stock"),
        "privet.parties.target": ("Level",),
    },
)
