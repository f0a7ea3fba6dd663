"""The parties: a server that offers models, a client that asks it, a dealer, all over TLS."""

from typing import TYPE_CHECKING

from privet.lazy import attach

if TYPE_CHECKING:
    from privet.runtime.client import Client, Link
    from privet.runtime.credentials import Credentials
    from privet.runtime.dealer import Dealer, Dealt
    from privet.runtime.local import Run, run
    from privet.runtime.result import Result
    from privet.runtime.route import Dry
    from privet.runtime.server import Finished, Server
    from privet.runtime.store import Holding, MaterialStore, StoreEntry
    from privet.suites.costs import DealerCost, LayerCost, MemoryUse, PhaseCost

__getattr__ = attach(
    __name__,
    {
        "privet.runtime.client": ("Client", "Link"),
        "privet.suites.costs": ("DealerCost", "LayerCost", "MemoryUse", "PhaseCost"),
        "privet.runtime.credentials": ("Credentials",),
        "privet.runtime.dealer": ("Dealer", "Dealt"),
        "privet.runtime.route": ("Dry",),
        "privet.runtime.local": ("Run", "run"),
        "privet.runtime.result": ("Result",),
        "privet.runtime.server": ("Finished", "Server"),
        "privet.runtime.store": ("Holding", "MaterialStore", "StoreEntry"),
    },
)
