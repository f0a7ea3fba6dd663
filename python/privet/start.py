"""Starts a module of Privet as a program: `python -m privet.start MODULE ARGUMENT...` is
`python -m MODULE ARGUMENT...`, whose garbage collector looks seldom from before its imports on."""

from __future__ import annotations

import runpy
import sys

from privet.garbage import look_seldom

START = (sys.executable, "-m", "privet.start")
"""The command, to which a module and its arguments are added."""


def main() -> None:
    """Runs the module that the command line names."""
    look_seldom()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
