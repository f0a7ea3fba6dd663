"""Suite `ckks`."""

from privet.suites.ckks.config import COHORT, Ckks, encrypting
from privet.suites.ckks.program import module_paths, plan_ckks, program_path, raise_failure
