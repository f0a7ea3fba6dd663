"""Serving and querying: a server that offers models, a client that asks it, both over TLS."""

from privet.serve.client import Client, Link, Result
from privet.serve.costs import DealerCost, LayerCost, MemoryUse, PhaseCost
from privet.serve.credentials import Credentials
from privet.serve.dealer import Dealer, Dealt
from privet.serve.dry import Dry
from privet.serve.local import Run, run
from privet.serve.pool import Pool, PoolEvent
from privet.serve.server import Finished, Server
from privet.serve.stock import Holding, Stock
from privet.serve.target import Level

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
