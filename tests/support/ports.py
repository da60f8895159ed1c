"""Ports that nobody has, and that nobody else will be given before they are used."""

from __future__ import annotations

import os
import random
import re
import socket
from itertools import count

_FIRST, _EACH, _PROCESSES = 10_000, 1000, 20
"""Below the ports that a kernel gives out by itself: no connection of somebody's takes one of these
meanwhile.
"""


def free_ports(number: int) -> list[int]:
    """So many free ports of the loopback address."""
    return [free_port() for _ in range(number)]


def free_port() -> int:
    """Another one each time; the processes in which tests run beside each other have a thousand
    each.
    """
    while True:
        port = _FIRST + _place() * _EACH + next(_numbers) % _EACH
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


_numbers = count(random.randrange(_EACH))  # somebody else may run tests here too


def _place() -> int:
    name = re.fullmatch(r"gw(\d+)", os.environ.get("PYTEST_XDIST_WORKER", ""))
    return (1 + int(name[1])) % _PROCESSES if name else 0
