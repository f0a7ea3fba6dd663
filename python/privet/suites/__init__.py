"""The ways to run a program privately, all planned through one interface."""

from privet.suites.ckks import plan_ckks
from privet.suites.planning import (
    AUTO,
    PREPARED,
    SUITES,
    ExtensionForecast,
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
    check_scenario,
    check_supported,
    supported,
)

__all__ = [
    "AUTO",
    "COLLECTIVE",
    "ENCRYPTED_DATA",
    "PREPARED",
    "SUITES",
    "ExtensionForecast",
    "Forecast",
    "LinearForecast",
    "Precision",
    "check_scenario",
    "check_suite",
    "check_supported",
    "forecast",
    "is_dealt",
    "online_delay",
    "plan",
    "plan_ckks",
    "plans",
    "precision",
    "quickest",
    "supported",
]
