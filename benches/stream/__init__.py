"""Benchmarks of suite `stream`: `python -m benches.stream` lists the experiments by name."""
