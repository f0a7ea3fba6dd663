"""The ways to run a program privately, all planned through one interface."""

from privet.suites.base import (
    JOB_FACTS,
    Job,
    LocalJob,
    LocalResult,
    Planned,
    Progress,
    Suite,
    Trust,
)
from privet.suites.ckks import Ckks, module_paths, plan_ckks
from privet.suites.ckks.config import STATISTICAL
from privet.suites.compiling import compile
from privet.suites.costing import Costed, Costing, Phase
from privet.suites.costs import Load
from privet.suites.fss import Fss
from privet.suites.gmw import Gmw
from privet.suites.material.planning import ExtensionForecast, Forecast, forecast, online_delay
from privet.suites.material.suite import MaterialSuite, material_suite
from privet.suites.policy import (
    STREAM,
    Guard,
    Mode,
    Policy,
    Weakness,
    client_name,
    is_fingerprint,
    make_policy,
    uncounted,
)
from privet.suites.precision import Precision
from privet.suites.registry import (
    DEFAULT,
    PREPARED,
    all_suites,
    as_suite,
    from_json,
    from_label,
    from_options,
    names,
    owners,
    register,
    suite_type,
)
from privet.suites.single import SingleJobSuite
from privet.suites.stream import CIPHERS, KEY_BITS, STREAM_TRUST, Stream

__all__ = [
    "CIPHERS",
    "DEFAULT",
    "JOB_FACTS",
    "KEY_BITS",
    "PREPARED",
    "STATISTICAL",
    "STREAM",
    "STREAM_TRUST",
    "Ckks",
    "Costed",
    "Costing",
    "ExtensionForecast",
    "Forecast",
    "Fss",
    "Gmw",
    "Guard",
    "Job",
    "Load",
    "LocalJob",
    "LocalResult",
    "MaterialSuite",
    "Mode",
    "Phase",
    "Planned",
    "Policy",
    "Precision",
    "Progress",
    "SingleJobSuite",
    "Stream",
    "Suite",
    "Trust",
    "Weakness",
    "all_suites",
    "as_suite",
    "client_name",
    "compile",
    "forecast",
    "from_json",
    "from_label",
    "from_options",
    "is_fingerprint",
    "make_policy",
    "material_suite",
    "module_paths",
    "names",
    "online_delay",
    "owners",
    "plan_ckks",
    "register",
    "suite_type",
    "uncounted",
]
