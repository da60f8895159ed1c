from __future__ import annotations

import errno
import socket
import ssl
from typing import Any, get_args

import aiohttp
import pytest

from hybrid_runner.model.monitors import PollFailure
from hybrid_runner.monitors.answers.failures import (
    BY_ERRNO,
    BY_RESOLUTION,
    BY_TYPE,
    AddressRefused,
    PollFailed,
    poll_failed,
)


def wrapped(cause: OSError) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(connection_key=None, os_error=cause)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", BY_ERRNO)
def test_what_the_system_says_is_found_behind_what_aiohttp_says(code: int) -> None:
    for error in (OSError(code, "x"), wrapped(OSError(code, "Multiple exceptions: …"))):
        failed = poll_failed(error)
        assert (failed.failure, failed.line, failed.is_local) == BY_ERRNO[code]


@pytest.mark.parametrize(
    ("error", "is_local"),
    [
        (wrapped(OSError(errno.ENETUNREACH, "")), True),
        (wrapped(OSError(errno.EHOSTUNREACH, "")), True),
        (wrapped(socket.gaierror(socket.EAI_AGAIN, "")), True),
        (wrapped(OSError(errno.EMFILE, "")), True),
        (wrapped(OSError(errno.ECONNREFUSED, "")), False),
        (wrapped(OSError(errno.ETIMEDOUT, "")), False),
        (wrapped(socket.gaierror(socket.EAI_NONAME, "")), False),
        (TimeoutError(), False),
        (aiohttp.ServerDisconnectedError(), False),
    ],
)
def test_only_what_may_be_the_fault_of_this_side_is_local(error: Exception, is_local: bool) -> None:
    """Section 7: whole fleet without network."""
    assert poll_failed(error).is_local is is_local


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        (AddressRefused("x"), "address"),
        (wrapped(AddressRefused("x")), "address"),
        (ssl.SSLCertVerificationError(1, "x"), "tls"),
        (ssl.SSLError(1, "x"), "tls"),
        (ssl.SSLEOFError(8, "x"), "tls"),
        (wrapped(ssl.SSLError(1, "x")), "tls"),
        (aiohttp.InvalidURL("http://?key=1"), "definition"),
        (aiohttp.ClientPayloadError("x"), "network"),
        (aiohttp.ClientError(), "network"),
        (UnicodeError("label too long"), "dns"),
        (RecursionError("x"), "parse"),
        (ZeroDivisionError("odd\nlines\x00"), "network"),
        (KeyError(), "network"),
        (OSError(), "network"),
    ],
)
def test_every_exception_is_a_failure_in_one_line(error: Exception, failure: str) -> None:
    failed = poll_failed(error)
    assert failed.failure == failure
    assert failed.line.isprintable()
    assert "key=1" not in failed.line


def test_a_failure_stays_what_it_is() -> None:
    failed = PollFailed("expect", "a\nb" * 2000)
    assert poll_failed(failed) is failed
    assert (len(failed.line), failed.line.isprintable()) == (1000, True)


def test_the_tables_name_failures_that_there_are() -> None:
    tables: list[Any] = [*BY_ERRNO.values(), *BY_RESOLUTION.values(), *(row[1] for row in BY_TYPE)]
    assert {meaning.failure for meaning in tables} <= set(get_args(PollFailure))


def test_no_row_of_the_table_is_hidden_by_one_before_it() -> None:
    kinds = [kind for kind, _ in BY_TYPE]
    for index, kind in enumerate(kinds):
        assert not any(issubclass(kind, before) for before in kinds[:index]), kind
