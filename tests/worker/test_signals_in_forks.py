"""Signals that reach a fork of a handler at its very beginning."""

from __future__ import annotations

import signal
import subprocess
import sys

FORK = """
import os, signal, sys, time
from hybrid_runner.worker.signals import forget_signals_in_forks

signal.signal(signal.SIGTERM, lambda *_: None)
# Before the fork has forgotten what its worker does on SIGTERM.
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
forget_signals_in_forks()
child = os.fork()
if child == 0:
    os._exit(0)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status) % 256)
"""


def test_a_fork_that_is_told_to_end_as_it_begins_ends() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], check=False, timeout=120)
    assert done.returncode == -signal.SIGTERM % 256
