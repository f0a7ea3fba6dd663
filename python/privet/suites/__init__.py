"""The ways to run a program privately, all planned through one interface."""

from privet.suites.base import (
    JOB_FACTS,
    PAIR,
    Job,
    LocalJob,
    LocalResult,
    Planned,
    Progress,
    Suite,
    Trust,
)
from privet.suites.ckks import Ckks, module_paths, plan_ckks
from privet.suites.ckks.config import (
    COLLECTIVE,
    ENCRYPTED_DATA,
    ENCRYPTED_MODEL,
    LIGHT,
    STATISTICAL,
)
from privet.suites.compiling import compile
from privet.suites.costing import Costed, Costing, LinkUse, Phase, Trial, Work, multiply_adds
from privet.suites.costs import Load
from privet.suites.fss import Fss
from privet.suites.gmw import Gmw
from privet.suites.material.planning import (
    ExtensionForecast,
    Forecast,
    LinearForecast,
    RefillForecast,
    forecast,
    online_delay,
)
from privet.suites.material.suite import MaterialSuite, material_suite
from privet.suites.policy import STREAM, Guard, Mode, Policy, Weakness, make_policy, uncounted
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
from privet.suites.security import Security, ckks_security, security
from privet.suites.single import SingleJobSuite
from privet.suites.stream import CIPHERS, KEY_BITS, STREAM_TRUST, Stream

__all__ = [
    "CIPHERS",
    "COLLECTIVE",
    "DEFAULT",
    "ENCRYPTED_DATA",
    "ENCRYPTED_MODEL",
    "JOB_FACTS",
    "KEY_BITS",
    "LIGHT",
    "PAIR",
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
    "LinearForecast",
    "LinkUse",
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
    "RefillForecast",
    "Security",
    "SingleJobSuite",
    "Stream",
    "Suite",
    "Trial",
    "Trust",
    "Weakness",
    "Work",
    "all_suites",
    "as_suite",
    "ckks_security",
    "compile",
    "forecast",
    "from_json",
    "from_label",
    "from_options",
    "make_policy",
    "material_suite",
    "module_paths",
    "multiply_adds",
    "names",
    "online_delay",
    "owners",
    "plan_ckks",
    "register",
    "security",
    "suite_type",
    "uncounted",
]
