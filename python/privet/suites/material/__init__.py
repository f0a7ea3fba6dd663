"""Suites that make material ahead of time."""
