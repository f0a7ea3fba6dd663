"""What private inference costs: measured, predicted for other networks and prices, and advice.

After Huang, Maeng and Suh, "Beyond Latency" (2026). `measure` runs suites for real and keeps
records; `predict` tells their time on any network; `energy`, `prices` and `key_pool` what else they
take; `advise` (command `privet plan`) which suite a person should choose. Bytes, rounds and counts
of work come from the formulas of the suites (`privet.suites.forecast`), which tests of the
protocols compare with the wire.
"""

from privet.planner.advise import plan
