"""Executors: they run the server's half of jobs in processes of their own."""

from privet.service.executor.grant import Failure, Grant, Outcome
from privet.service.executor.protocol import Executor, MachineEvent, Node, Running
