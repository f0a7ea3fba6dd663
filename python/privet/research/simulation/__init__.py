"""The scheduler under a simulated clock."""
