"""Serving and querying: a server that offers models, a client that asks it, both over TLS."""

from privet.serve.client import Client, Link, Result
from privet.serve.costs import DealerCost, LayerCost, MemoryUse, PhaseCost
from privet.serve.credentials import Credentials
from privet.serve.dealer import Dealer, Dealt
from privet.serve.local import Run, run
from privet.serve.server import Finished, Server

__all__ = [
    "Client",
    "Credentials",
    "Dealer",
    "DealerCost",
    "Dealt",
    "Finished",
    "LayerCost",
    "Link",
    "MemoryUse",
    "PhaseCost",
    "Result",
    "Run",
    "Server",
    "run",
]
