"""The ways to run a program privately, all planned through one interface."""

from privet.suites.planning import (
    AUTO,
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

__all__ = [
    "AUTO",
    "SUITES",
    "Forecast",
    "LinearForecast",
    "check_suite",
    "forecast",
    "is_dealt",
    "online_delay",
    "plan",
    "plans",
    "quickest",
]
