"""Peers that run in environments of their own; `make bench-peers` makes those."""
