"""What suites cost, told as figures, tables and one page, beside the papers."""
