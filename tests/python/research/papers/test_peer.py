"""What SPU says of its runs, as the pages show it."""

from __future__ import annotations

import pytest
from benches.spu import PeerFailure, _report

from privet.research.papers.workplace import Peer

RUN = """
[info] HLO profiling: total time 32.2
[info] - pphlo.convolution, executed 2 times, duration {}s, send bytes 100 recv bytes 20, send
[info] - pphlo.less, executed 3 times, duration 8.2e-05s, send bytes 7 recv bytes 0, send
[info] Link details: total send bytes 110, recv bytes 21, send actions 5, recv actions 6
"""


def test_operations_are_those_of_the_last_run() -> None:
    report = _report(RUN.format("17.5") + RUN.format("2.5") + '{"seconds": [18.0, 3.0]}\n')
    assert report["traffic"] == [131, 131]
    assert report["operations"] == {"convolution": [2.5, 120], "less": [8.2e-05, 7]}
    peer = Peer("0.9.5", report["seconds"][-1], report["traffic"][-1], report["operations"])
    seconds, traffic = peer.part("convolution", "less", "reduce_window")
    assert (round(seconds, 6), traffic) == (2.500082, 127)


def test_a_party_that_says_nothing_is_a_failure() -> None:
    with pytest.raises(PeerFailure, match="without a report"):
        _report(RUN.format("1"))
