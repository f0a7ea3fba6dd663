"""The figures of the last minute."""

from __future__ import annotations

import pytest

from privet.service.timeline import CompletedRequest, Monitor, RunSpan


def test_delay_wait_throughput_and_utilisation() -> None:
    monitor = Monitor()
    monitor.add(CompletedRequest(at=10.0, delay=9.0, wait=8.0))
    for number in range(20):
        monitor.add(CompletedRequest(at=100.0 + number, delay=1.0 + number, wait=0.5))
    spans = [RunSpan((0, 1), 80.0, 110.0), RunSpan((2,), 115.0, 130.0), RunSpan((3,), 0.0, 50.0)]
    figures = monitor.document(120.0, 0.0, spans, cores=4)
    assert figures["done"] == 20
    assert figures["per_second"] == pytest.approx(20 / 60)
    assert figures["mean_delay"] == pytest.approx(10.5)
    assert figures["mean_wait"] == pytest.approx(0.5)
    assert figures["delay_95"] == 20.0
    assert figures["utilisation"] == pytest.approx((2 * 30 + 5) / (4 * 60))


def test_a_monitor_without_jobs_has_no_means() -> None:
    figures = Monitor().document(5.0, 3.0, [], cores=0)
    assert (figures["done"], figures["mean_delay"], figures["utilisation"]) == (0, None, None)
    assert figures["seconds"] == 2.0
