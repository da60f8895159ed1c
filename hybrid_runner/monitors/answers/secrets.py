"""Secrets that headers may name, each for its own hosts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from hybrid_runner.errors import ConfigurationError

_UNFIT: Final = re.compile(r"[^\t\x20-\x7e]")


class Secret:
    """A value that headers may name in braces, sent to these hosts alone.

    `secrets={"orders": Secret(os.environ["ORDERS_TOKEN"], hosts=("orders.internal",))}`.
    """

    __slots__ = ("__value", "hosts")

    def __init__(self, value: str, hosts: Iterable[str]) -> None:
        if isinstance(hosts, str):
            hosts = (hosts,)
        self.hosts = tuple(host.lower() for host in hosts)
        if not self.hosts:
            raise ConfigurationError("a Secret needs hosts: name those that it may be sent to")
        if not value:
            raise ConfigurationError("the value of a Secret is empty")
        if _UNFIT.search(value):
            raise ConfigurationError(
                "the value of a Secret has a character that no header can hold: use printable ASCII"
            )
        self.__value = value

    def for_host(self, host: str) -> str | None:
        """The value; None when it may not be sent there."""
        return self.__value if host.lower() in self.hosts else None

    def __repr__(self) -> str:
        return f"Secret('***', hosts={self.hosts!r})"

    def __reduce__(self) -> str:
        raise TypeError("a Secret is not written anywhere: make it anew in each process")
