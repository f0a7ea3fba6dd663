"""The tables and figures of the five papers that Privet builds on, run here (`privet papers`).

The papers' numbers are data files; what runs for an item is a function in the paper's module; a run
leaves a record; pages are made from both.
"""
