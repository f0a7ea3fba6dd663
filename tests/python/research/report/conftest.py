from tests.python.planner.records import record

__all__ = ["record"]
