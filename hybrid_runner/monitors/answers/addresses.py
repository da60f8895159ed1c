"""What may be connected to. An address is checked after DNS, and that very one is connected to."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final, Literal, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.failures import AddressRefused

_Address: TypeAlias = IPv4Address | IPv6Address
_Network: TypeAlias = IPv4Network | IPv6Network
Lookup: TypeAlias = Callable[..., Any]
"""As socket.getaddrinfo."""

_THREADS: Final = 16
"""Names that are resolved at a time. They have threads of their own, so that names which nobody
answers for hold up no handler; and those that were answered quickly the last time have others than
all the rest, so that they hold up none of these either.
"""
_QUICK: Final = 1.0
"""Seconds."""
_MOST_QUICK: Final = 20_000
"""Names that are known to be."""


def _networks(why: str, *texts: str) -> list[tuple[_Network, str]]:
    return [(ip_network(text), why) for text in texts]


_NEVER: Final = (
    *_networks("a link-local address", "169.254.0.0/16", "fe80::/10"),
    # where clouds keep the keys of their machines, as 169.254.169.254
    *_networks("an address of cloud metadata", "fd00:ec2::254/128", "fd20:ce::254/128"),
    *_networks("an address of cloud metadata", "100.100.100.200", "192.0.0.192", "168.63.129.16"),
    *_networks("no address of a host", "0.0.0.0/8", "::/128", "240.0.0.0/4"),
    *_networks("a multicast address", "224.0.0.0/4", "ff00::/8"),
)
_PRIVATE: Final = (
    *_networks("a loopback address", "127.0.0.0/8", "::1/128"),
    *_networks("a private address", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
    *_networks("a private address", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "fec0::/10"),
)
_NAT64: Final = ip_network("64:ff9b::/96")


class AddressRules:
    """Link-local, multicast and unspecified addresses are refused unless they are in `allow`; with
    `refuse="private"` private ones and this machine itself, too.
    """

    def __init__(self, allow: Iterable[str] = (), refuse: Literal["private"] | None = None) -> None:
        if refuse not in {None, "private"}:
            raise ConfigurationError(
                f'refuse={refuse!r} is unknown: use "private", or leave it out'
            )
        try:
            self._allowed = tuple(
                ip_network(text) for text in ([allow] if isinstance(allow, str) else allow)
            )
        except ValueError as error:
            raise ConfigurationError(f"allow: {error}: write networks as 10.1.0.0/16") from None
        self._refused = (*_NEVER, *_PRIVATE) if refuse else _NEVER

    def why_refused(self, address: str) -> str | None:
        """None when it may be connected to."""
        try:
            plain = ip_address(address)
        except ValueError:
            return "no address at all"
        forms = _forms(plain)
        itself = {forms[0], getattr(plain, "ipv4_mapped", None) or forms[0]}
        if any(_within(each, network) for each in itself for network in self._allowed):
            return None
        for form in forms:
            for network, why in self._refused:
                if _within(form, network):
                    return why
        return None

    def check(self, address: str) -> None:
        """AddressRefused when it may not be connected to."""
        if why := self.why_refused(address):
            raise AddressRefused(
                f"{address} is {why}, which is not polled: Monitors(allow=…) would permit it"
            )


def _within(address: _Address, network: _Network) -> bool:
    return address.version == network.version and address in network


def _forms(address: _Address) -> list[_Address]:
    """The address, and the IPv4 addresses that it may stand for."""
    if isinstance(address, IPv4Address):
        return [address]
    plain = IPv6Address(int(address))  # without a zone
    inner = [plain.ipv4_mapped, plain.sixtofour]
    if plain in _NAT64:
        inner.append(IPv4Address(int(plain) & 0xFFFFFFFF))
    return [plain, *(each for each in inner if each is not None)]


class CheckedResolver(AbstractResolver):
    """Resolves names to the addresses that may be connected to."""

    def __init__(self, rules: AddressRules, lookup: Lookup = socket.getaddrinfo) -> None:
        self._rules = rules
        self._lookup = lookup
        self._threads = ThreadPoolExecutor(_THREADS, "hybrid-runner-dns")
        self._quick_threads = ThreadPoolExecutor(_THREADS, "hybrid-runner-quick-dns")
        self._quick: dict[str, None] = {}

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        was_quick = host in self._quick
        self._quick.pop(host, None)  # until it is so again
        found, took = await asyncio.get_running_loop().run_in_executor(
            self._quick_threads if was_quick else self._threads, self._look_up, host, port, family
        )
        if took < _QUICK:
            self._quick[host] = None
            if len(self._quick) > _MOST_QUICK:
                del self._quick[next(iter(self._quick))]
        results: list[ResolveResult] = []
        refused: AddressRefused | None = None
        for each_family, _, protocol, _, address in found:
            try:
                self._rules.check(address[0])
            except AddressRefused as error:
                refused = error
                continue
            results.append(
                ResolveResult(
                    hostname=host,
                    host=address[0],
                    port=address[1],
                    family=each_family,
                    proto=protocol,
                    flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
                )
            )
        if refused is not None and not results:
            raise refused
        return results

    def _look_up(self, host: str, port: int, family: int) -> tuple[Any, float]:
        flags = socket.AI_ADDRCONFIG
        began = time.monotonic()
        try:
            found = self._lookup(host, port, family, socket.SOCK_STREAM, 0, flags)
        except UnicodeError:  # a part of the name is longer than 63 characters
            raise socket.gaierror(socket.EAI_NONAME, "the name is none of a host") from None
        return found, time.monotonic() - began

    async def close(self) -> None:
        for threads in (self._threads, self._quick_threads):
            threads.shutdown(wait=False, cancel_futures=True)


def checked_socket(rules: AddressRules) -> Callable[[Any], socket.socket]:
    """Makes the sockets of a connector: whatever led to an address, it is checked once more."""

    def make(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        rules.check(address[0])
        return socket.socket(family, kind, protocol)

    return make
