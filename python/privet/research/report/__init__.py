"""What suites cost, reported as figures, tables and one page, beside the papers."""
