"""Side-by-side benchmarks: `python -m benches.run` measures Privet beside its peers in one run."""
