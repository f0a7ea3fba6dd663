"""PP-Stream's experiments, a module each."""
