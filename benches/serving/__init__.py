"""A workload of many requests, for real: `privet serve` beside the sequential baseline."""
