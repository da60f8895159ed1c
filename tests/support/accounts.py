"""Starts programs that refuse to run as root."""

from __future__ import annotations

import os
import signal
import sys

from hybrid_runner.embedded import account
from hybrid_runner.embedded.account import Account

# In a process of its own: between fork and exec a process with threads must not run Python.
_START = """
import os, runpy, sys
ours = runpy.run_path(sys.argv[1])
ours["become"](ours["Account"](sys.argv[2]))
ours["die_with_parent"](int(sys.argv[3]), int(sys.argv[4]))
os.execv(sys.argv[5], sys.argv[5:])
"""


def as_account(who: Account, *command: str) -> list[str]:
    """The command that runs this one as that account, and ends it when we die."""
    arguments = (account.__file__, who.value, str(os.getpid()), str(int(signal.SIGINT)))
    return [sys.executable, "-I", "-S", "-c", _START, *arguments, *command]
