"""A forest in Concrete ML: `.venv-concrete/bin/python benches/peers/concrete_forest.py N DEPTH`.

Fits, compiles, makes keys and runs one row encrypted; the last line is what each took, as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from concrete.ml.sklearn import RandomForestRegressor

FEATURES, ROWS, BITS = 30, 2000, 6


def main(count: int, depth: int) -> None:
    """Everything between fitting and the prediction of one row."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, FEATURES)).astype(np.float32)
    y = x @ rng.standard_normal(FEATURES) + rng.standard_normal(ROWS)
    forest = RandomForestRegressor(n_bits=BITS, n_estimators=count, max_depth=depth, random_state=0)
    forest.fit(x, y)
    seconds: dict[str, float] = {}

    def timed(name: str, run: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        value = run()
        seconds[name] = time.perf_counter() - start
        return value

    circuit = timed("compile", lambda: forest.compile(x[:200]))
    timed("keys", lambda: circuit.client.keygen(force=True))
    result = timed("run", lambda: forest.predict(x[:1], fhe="execute"))
    same = bool(np.allclose(result, forest.predict(x[:1])))
    print(json.dumps({**seconds, "same": same}))  # noqa: T201


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]))
