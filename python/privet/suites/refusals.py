"""Which operations each suite computes, and where a model must go that it does not."""

from __future__ import annotations

SMOOTH = {"polynomial": "ckks", "function": "stream"}
"""Forms of smooth activations, and the suite that computes each."""

DECIDING = {"step", "leaves"}
"""Decisions of trees."""

COMPARING = {"relu", "max_pool2d", "argmax", *DECIDING}
"""Operations that suite `ckks` does not compute."""


def refusal(kind: str, suite: str) -> tuple[str, str] | None:
    """Why a suite does not compute an operation, and what to do; None if it does."""
    if suite == "stream" and kind in DECIDING:
        why = "among permuted nodes the client would learn which decisions of a tree were taken"
        return why, "Choose suite gmw or fss"
    if suite == "ckks" and kind in COMPARING:
        why = "it compares values, which suite ckks does not do"
        return why, "Put a smooth activation or an average in its place, or choose another suite"
    if suite != "ckks" and kind == "mul":
        return f"it runs only in suite ckks, not in {suite}", "Choose that suite"
    if kind not in SMOOTH or SMOOTH[kind] == suite:
        return None
    if suite in SMOOTH.values():
        why = f"it runs only in suite {SMOOTH[kind]}, as the model was compiled"
        form = next(name for name, computes in SMOOTH.items() if computes == suite)
        return why, f'Compile the model for suite {suite}, with smooth="{form}"'
    why = f"smooth activations run only in suites ckks and stream, not in {suite}"
    return why, "Choose one of them, or put a ReLU in its place"
