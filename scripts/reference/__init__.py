"""The pages of the documentation that are made from code each time the site is built."""

from scripts.reference.pages import assembled

__all__ = ["assembled"]
