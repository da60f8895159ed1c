"""Why a poll failed, in one line: the table of what can go wrong between here and a service."""

from __future__ import annotations

import errno
import socket
import ssl
from collections.abc import Callable
from typing import Final, NamedTuple

import aiohttp

from hybrid_runner.model.monitors import PollFailure
from hybrid_runner.monitors.answers.storable import one_line


class PollFailed(Exception):
    """The poll failed, and this is what is stored of it."""

    def __init__(self, failure: PollFailure, line: str, *, is_local: bool = False) -> None:
        super().__init__(line)
        self.failure: PollFailure = failure
        self.line = one_line(line)
        self.is_local = is_local
        """The fault may be on this side, not the service's."""
        self.is_put_off = False
        """It was not asked to the end, since others are asked there: nothing is known of it."""


class AddressRefused(OSError):
    """The rules of addresses forbid this connection; it was not made."""


class Meaning(NamedTuple):
    failure: PollFailure
    says: str
    """What an operator reads; `{}` is the exception's own words."""
    is_local: bool = False


BY_ERRNO: Final[dict[int, Meaning]] = {
    errno.ECONNREFUSED: Meaning("refused", "the connection was refused: nothing listens there"),
    errno.ECONNRESET: Meaning("network", "the connection was reset"),
    errno.EPIPE: Meaning("network", "the connection was closed while the request was sent"),
    errno.ECONNABORTED: Meaning("network", "the connection was aborted"),
    errno.ETIMEDOUT: Meaning("timeout", "no connection in time"),
    errno.EHOSTUNREACH: Meaning("network", "no route to the host", is_local=True),
    errno.EHOSTDOWN: Meaning("network", "the host is down, says the network", is_local=True),
    errno.ENETUNREACH: Meaning("network", "the network is unreachable", is_local=True),
    errno.ENETDOWN: Meaning("network", "the network is down", is_local=True),
    errno.ENETRESET: Meaning("network", "the network has dropped the connection", is_local=True),
    errno.EADDRNOTAVAIL: Meaning(
        "network", "this machine has no address or port left for the connection", is_local=True
    ),
    errno.EAFNOSUPPORT: Meaning(
        "network", "this machine has no network of that kind", is_local=True
    ),
    errno.EACCES: Meaning("network", "this machine may not connect there", is_local=True),
    errno.EPERM: Meaning("network", "this machine may not connect there", is_local=True),
    errno.EMFILE: Meaning("network", "this process has no file left to open", is_local=True),
    errno.ENFILE: Meaning("network", "this machine has no file left to open", is_local=True),
    errno.ENOBUFS: Meaning("network", "this machine has no memory for sockets", is_local=True),
    errno.ENOMEM: Meaning("network", "this machine has no memory for sockets", is_local=True),
}
BY_RESOLUTION: Final[dict[int, Meaning]] = {
    socket.EAI_NONAME: Meaning("dns", "there is no host of that name"),
    socket.EAI_NODATA: Meaning("dns", "the name of the host has no address"),
    socket.EAI_FAIL: Meaning("dns", "the name of the host cannot be resolved"),
    socket.EAI_AGAIN: Meaning(
        "dns", "the name of the host cannot be resolved for now", is_local=True
    ),
    socket.EAI_SYSTEM: Meaning("dns", "this machine could not resolve the name: {}", is_local=True),
    socket.EAI_MEMORY: Meaning(
        "dns", "this machine has no memory to resolve the name", is_local=True
    ),
}
# The first that fits counts: subclasses stand before what they derive from.
BY_TYPE: Final[tuple[tuple[type[BaseException], Meaning], ...]] = (
    (AddressRefused, Meaning("address", "{}")),
    (ssl.SSLCertVerificationError, Meaning("tls", "its certificate is not trusted: {}")),
    (ssl.SSLError, Meaning("tls", "TLS failed: {}")),
    (aiohttp.ServerDisconnectedError, Meaning("network", "it closed the connection unanswered")),
    (aiohttp.ClientPayloadError, Meaning("network", "the answer broke off: {}")),
    (aiohttp.ClientResponseError, Meaning("http", "what it answered is no proper HTTP: {}")),
    (
        aiohttp.InvalidURL,
        Meaning("definition", "the URL cannot be used: its host is neither a name nor an address"),
    ),
    (aiohttp.ClientConnectionError, Meaning("network", "the connection failed: {}")),
    (aiohttp.ClientError, Meaning("network", "the request failed: {}")),
    (socket.gaierror, Meaning("dns", "the name of the host cannot be resolved: {}")),
    (TimeoutError, Meaning("timeout", "no answer in time")),
    (UnicodeError, Meaning("dns", "the name of the host is none that can be resolved")),
    (OSError, Meaning("network", "the connection failed: {}")),
    (RecursionError, Meaning("parse", "the answer is nested too deeply")),
)
_UNKNOWN: Final = Meaning("network", "the poll failed: {}")


def poll_failed(error: BaseException, hide: Callable[[str], str] = str) -> PollFailed:
    """What is stored of a poll that ended so; before anything is cut, `hide` takes what is secret
    out of it. Never raises.
    """
    if isinstance(error, PollFailed):
        error.line = hide(error.line)
        return error
    cause = _cause(error)
    meaning = _meaning(cause)
    says = meaning.says.replace("{}", hide(_words(cause)))
    return PollFailed(meaning.failure, says, is_local=meaning.is_local)


def _cause(error: BaseException) -> BaseException:
    """What the system said: aiohttp wraps it."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _meaning(error: BaseException) -> Meaning:
    if isinstance(error, socket.gaierror) and error.errno in BY_RESOLUTION:
        return BY_RESOLUTION[error.errno]
    for kind, meaning in BY_TYPE:
        if isinstance(error, kind):
            if kind is OSError or meaning.failure in ("network", "timeout"):
                return BY_ERRNO.get(getattr(error, "errno", None) or 0, meaning)
            return meaning
    return _UNKNOWN


def _words(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return getattr(error, "verify_message", None) or "no reason is given"
    if isinstance(error, ssl.SSLError):
        return (getattr(error, "reason", None) or "no reason is given").replace("_", " ").lower()
    if isinstance(error, aiohttp.ClientResponseError):
        return error.message or type(error).__name__
    if isinstance(error, AddressRefused):
        return str(error)
    if isinstance(error, OSError):
        return error.strerror or str(error) or type(error).__name__
    return str(error) or type(error).__name__
