"""The ways to run a program privately, all planned through one interface."""

from privet.suites.ckks import module_paths, plan_ckks
from privet.suites.planning import (
    AUTO,
    PREPARED,
    SUITES,
    Forecast,
    LinearForecast,
    check_suite,
    forecast,
    is_dealt,
    online_delay,
    plan,
    plans,
    quickest,
)
from privet.suites.precision import Precision, precision
from privet.suites.support import (
    COLLECTIVE,
    ENCRYPTED_DATA,
    ENCRYPTED_MODEL,
    LIGHT,
    STATISTICAL,
    check_between_two,
    check_scenario,
    check_supported,
    flooding_of,
    supported,
)

__all__ = [
    "AUTO",
    "COLLECTIVE",
    "ENCRYPTED_DATA",
    "ENCRYPTED_MODEL",
    "LIGHT",
    "PREPARED",
    "STATISTICAL",
    "SUITES",
    "Forecast",
    "LinearForecast",
    "Precision",
    "check_between_two",
    "check_scenario",
    "check_suite",
    "check_supported",
    "flooding_of",
    "forecast",
    "is_dealt",
    "module_paths",
    "online_delay",
    "plan",
    "plan_ckks",
    "plans",
    "precision",
    "quickest",
    "supported",
]
