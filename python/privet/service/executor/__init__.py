"""Executors: they run the server's half of jobs in processes of their own."""

from privet.service.executor.grant import Failure, Grant, JobOutcome
from privet.service.executor.protocol import Executor, ExecutorNode, MachineEvent, RunningJob
