"""Suite `ckks`."""

from privet.suites.ckks.config import COHORT, Ckks
from privet.suites.ckks.program import module_paths, plan_ckks, program_path, raise_failure

__all__ = ["COHORT", "Ckks", "module_paths", "plan_ckks", "program_path", "raise_failure"]
