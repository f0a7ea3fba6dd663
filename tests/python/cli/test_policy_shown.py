"""What `privet serve` tells of its policy when it starts."""

from __future__ import annotations

import io

import pytest

from privet.cli import show
from privet.cli.console import Console
from privet.suites import make_policy


@pytest.mark.parametrize("accepted", [False, True])
def test_a_suite_that_is_offered_in_vain_is_told(accepted: bool) -> None:
    """Such a service started, and refused everybody."""
    output = io.StringIO()
    policy = make_policy(revealed_values=accepted)
    show.policy(Console(file=output, width=200), policy, ["gmw", "stream"])
    assert ("Offered, but not accepted: suite stream" in output.getvalue()) is not accepted
