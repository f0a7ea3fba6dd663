"""Which operations each suite computes, and where a model must go that it does not."""

from __future__ import annotations

SMOOTH = {"polynomial": ("ckks",), "function": ("stream",), "piecewise": ("gmw", "fss")}
"""Forms of smooth activations, and the suites that compute each."""

PRODUCTS: dict[str, tuple[str, ...]] = {"mul": ("gmw", "fss", "ckks"), "matmul": ("gmw", "fss")}
"""Products of two private tensors, and the suites that compute each."""

KEEPING = ("gmw", "fss")
"""Suites in which state stays shared from one inference to the next."""


def decides(kind: str) -> bool:
    """Whether an operation tells by comparisons which of several values to take."""
    from privet.compiler.graph.operations import OPERATIONS

    return kind in OPERATIONS and OPERATIONS[kind].decides


def refusal(kind: str, suite: str) -> tuple[str, str] | None:
    """Why a suite does not compute an operation, and what to do; None if it does."""
    from privet.compiler.graph.operations import OPERATIONS

    operation = OPERATIONS.get(kind)
    if suite == "stream" and decides(kind):
        why = "among permuted elements the client would learn how many comparisons hold"
        return why, "Choose suite gmw or fss"
    if suite == "ckks" and kind == "one_hot":
        why = "it chooses rows of a table, whose zeros and ones suite ckks does not take"
        return why, "Choose another suite, or let the model begin at the rows"
    if suite == "ckks" and operation is not None and operation.compares:
        why = "it compares values, which suite ckks does not do"
        return why, "Put a smooth activation or an average in its place, or choose another suite"
    if kind == "state" and suite not in KEEPING:
        why = f"suite {suite} keeps no state from one inference to the next"
        return why, f"Choose suite {' or '.join(KEEPING)}, or give the model without a cache"
    if suite not in PRODUCTS.get(kind, (suite,)):
        names = " or ".join(PRODUCTS[kind])
        why = f"it multiplies two private tensors, which suite {suite} does not do"
        return why, f"Choose suite {names}"
    if kind not in SMOOTH or suite in SMOOTH[kind]:
        return None
    why = f"it runs only in {' and '.join(SMOOTH[kind])}, as the model was compiled"
    return why, f'Compile the model for it: privet.compile(model, suite="{suite}")'
