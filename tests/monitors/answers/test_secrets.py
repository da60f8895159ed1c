from __future__ import annotations

import copy
import pickle

import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers.secrets import Secret
from tests.monitors.answers.hostile import Behaviour, answering, message, serving
from tests.monitors.answers.services import poll_one

VALUE = "hunter2-hunter2"
SECRETS = {"orders": Secret(VALUE, hosts=("127.0.0.1",))}
HEADERS = {"Authorization": "Bearer {orders}", "X-Plain": "{not a secret} {}"}


def test_a_secret_shows_itself_nowhere() -> None:
    secret = SECRETS["orders"]
    assert VALUE not in f"{secret!r} {secret} {SECRETS}"
    for write in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not written anywhere"):
            write(secret)


@pytest.mark.parametrize(
    ("value", "hosts"), [("", ("a",)), ("x", ()), ("a\r\nX: y", ("a",)), ("\u20ac", ("a",))]
)
def test_a_secret_that_cannot_be_sent_is_refused_without_its_value(
    value: str, hosts: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        Secret(value, hosts)
    assert "X: y" not in str(raised.value)


async def test_a_secret_is_filled_in_for_its_hosts() -> None:
    async with serving(answering()) as server:
        polled = await poll_one(server.url, headers=HEADERS, secrets=SECRETS)
    assert polled.ok
    (request,) = server.requests
    assert f"Authorization: Bearer {VALUE}\r\n".encode() in request
    assert b"X-Plain: {not a secret} {}\r\n" in request


async def test_a_secret_is_not_sent_to_another_host() -> None:
    async with serving(answering()) as server:
        url = server.url.replace("127.0.0.1", "localhost")
        polled = await poll_one(url, headers=HEADERS, secrets=SECRETS)
    assert (polled.failure, server.requests) == ("secret", [])
    assert polled.error == "headers.Authorization: the secret orders may not be sent to localhost"


async def test_a_name_that_is_no_secret_fails_the_poll_and_asks_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An environment variable of the name is none either."""
    monkeypatch.setenv("orders", VALUE)
    async with serving(answering()) as server:
        polled = await poll_one(server.url, headers=HEADERS)
    assert (polled.failure, server.requests) == ("secret", [])
    assert "no secret is called orders" in (polled.error or "")


@pytest.mark.parametrize(
    "behaviour",
    [
        answering(f'[{{"name": "{VALUE}", "healthy": true}}]'.encode()),
        answering(f'[{{"name": "a", "healthy": "{VALUE}"}}]'.encode()),
        answering(VALUE.encode()),
        answering(status="302 Found", headers={"Location": f"http://a/{VALUE}"}),
        answering(status=f"500 {VALUE}"),
        answering(headers={"Content-Encoding": VALUE}),
    ],
)
async def test_an_answer_that_repeats_the_secret_is_stored_without_it(
    behaviour: Behaviour,
) -> None:
    async with serving(behaviour) as server:
        polled = await poll_one(server.url, headers=HEADERS, secrets=SECRETS)
    assert VALUE not in repr(polled)


async def test_a_header_that_repeats_the_secret_is_not_quoted_with_it() -> None:
    expect = {"header": {"name": "X-Echo", "equals": "a"}}
    async with serving(answering(headers={"X-Echo": VALUE})) as server:
        polled = await poll_one(server.url, headers=HEADERS, secrets=SECRETS, expect=expect)
    assert polled.error == 'expect.header: found "***" at "X-Echo", wanted equals "a"'


@pytest.mark.parametrize("guess", ["h", VALUE])
async def test_nobody_finds_the_secret_out_by_expecting_it(guess: str) -> None:
    expect = {"header": {"name": "X-Echo", "contains": guess}}
    async with serving(answering(headers={"X-Echo": VALUE})) as server:
        polled = await poll_one(server.url, headers=HEADERS, secrets=SECRETS, expect=expect)
    assert polled.failure == "expect"


async def test_a_redirect_to_another_origin_takes_no_secret_along() -> None:
    async with serving(answering()) as other:
        away = answering(status="302 Found", headers={"Location": other.url})
        async with serving(away) as first:
            headers = HEADERS | {"Cookie": "a=b", "Accept": "application/health+json"}
            polled = await poll_one(first.url, headers=headers, secrets=SECRETS, follow=1)
    assert polled.ok
    assert VALUE.encode() in first.requests[0]
    assert VALUE.encode() not in other.requests[0]
    assert b"Cookie" not in other.requests[0]
    assert b"Accept: application/health+json" in other.requests[0]


@pytest.mark.parametrize("header", ["Accept", "accept-language", "User-Agent"])
async def test_nor_in_a_header_that_is_sent_everywhere(header: str) -> None:
    async with serving(answering()) as other:
        away = answering(status="302 Found", headers={"Location": other.url})
        async with serving(away) as first:
            headers = {header: "text/{orders}"}
            polled = await poll_one(first.url, headers=headers, secrets=SECRETS, follow=1)
    assert polled.ok
    assert VALUE.encode() in first.requests[0]
    assert VALUE.encode() not in other.requests[0]


async def test_hosts_of_a_secret_are_whole_names_in_any_case() -> None:
    secret = Secret(VALUE, hosts="Orders.Internal")
    assert secret.for_host("orders.INTERNAL") == VALUE
    for other in ("evil-orders.internal", "orders.internal.evil", "internal", ""):
        assert secret.for_host(other) is None


async def test_a_redirect_within_the_origin_keeps_the_headers() -> None:
    answers = [
        message(status="307 There", headers={"Location": "/b"}),
        message(b"[]"),
    ]

    async def behave(_: object, writer: object) -> None:
        writer.write(answers.pop(0))  # type: ignore[attr-defined]

    async with serving(behave) as server:
        polled = await poll_one(server.url, headers=HEADERS, secrets=SECRETS, follow=1)
    assert polled.ok
    assert VALUE.encode() in server.requests[1]
