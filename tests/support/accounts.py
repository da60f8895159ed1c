"""Starts programs that refuse to run as root."""

from __future__ import annotations

import os
import signal
import sys

from hybrid_runner.embedded import account

# In a process of its own: between fork and exec a process with threads must not run Python.
_START = """
import os, runpy, sys
ours = runpy.run_path(sys.argv[1])
ours["leave_root"]()
ours["die_with_parent"](int(sys.argv[2]), int(sys.argv[3]))
os.execv(sys.argv[4], sys.argv[4:])
"""


def not_as_root(*command: str) -> list[str]:
    """The command that runs this one as another user than root, and ends it when we die."""
    arguments = (account.__file__, str(os.getpid()), str(int(signal.SIGINT)))
    return [sys.executable, "-I", "-S", "-c", _START, *arguments, *command]
