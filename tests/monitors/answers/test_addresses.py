from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any

import pytest

from hybrid_runner.errors import ConfigurationError
from hybrid_runner.monitors.answers import addresses
from hybrid_runner.monitors.answers.address_key import address_key, group_key, grouped
from hybrid_runner.monitors.answers.addresses import AddressRules, CheckedResolver, checked_socket
from hybrid_runner.monitors.answers.failures import AddressRefused
from tests.monitors.answers.hostile import answering, serving
from tests.monitors.answers.services import poll_one, service

NEVER = [
    "169.254.169.254",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fe80::1",
    "fe80::1%eth0",
    "0.0.0.0",
    "0.1.2.3",
    "::",
    "::ffff:0.0.0.0",
    "224.0.0.1",
    "ff02::1",
    "240.0.0.1",
    "255.255.255.255",
    "fd00:ec2::254",
    "fd20:ce::254",
    "100.100.100.200",
    "192.0.0.192",
    "168.63.129.16",
    "::ffff:168.63.129.16",
]
PRIVATE = ["127.0.0.1", "127.9.9.9", "::1", "10.1.2.3", "172.16.0.1", "192.168.1.1"]
PRIVATE += ["::ffff:10.1.2.3", "fc00::1", "100.64.0.1", "192.0.0.1", "198.18.0.1", "fec0::1"]
PUBLIC = ["1.1.1.1", "172.32.0.1", "2606:4700::1111", "::ffff:1.1.1.1"]
PUBLIC += ["64:ff9b::101:101", "2002:101:101::1"]


@pytest.mark.parametrize("address", NEVER)
def test_link_local_unspecified_and_multicast_addresses_are_refused(address: str) -> None:
    """Section 7."""
    assert AddressRules().why_refused(address)


@pytest.mark.parametrize("address", [*PRIVATE, *PUBLIC])
def test_all_others_may_be_polled(address: str) -> None:
    assert AddressRules().why_refused(address) is None


@pytest.mark.parametrize("address", [*NEVER, *PRIVATE])
def test_private_ones_are_refused_where_that_is_wanted(address: str) -> None:
    assert AddressRules(refuse="private").why_refused(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_ones_never_are(address: str) -> None:
    assert AddressRules(refuse="private").why_refused(address) is None


def test_a_network_may_be_allowed() -> None:
    rules = AddressRules(allow=("169.254.1.0/24", "10.0.0.0/8"), refuse="private")
    assert rules.why_refused("169.254.1.9") is None
    assert rules.why_refused("::ffff:169.254.1.9") is None
    assert rules.why_refused("64:ff9b::169.254.1.9")  # which is another way there
    assert rules.why_refused("169.254.169.254")
    assert rules.why_refused("10.1.1.1") is None
    assert rules.why_refused("192.168.0.1")


def test_one_network_may_be_given_as_a_text() -> None:
    assert AddressRules(allow="10.0.0.0/8", refuse="private").why_refused("10.1.1.1") is None


@pytest.mark.parametrize("options", [{"allow": ["10.0.0.0/99"]}, {"refuse": "all"}])
def test_rules_that_make_no_sense_are_refused(options: Any) -> None:
    with pytest.raises(ConfigurationError):
        AddressRules(**options)


def test_no_socket_is_made_for_a_refused_address() -> None:
    make = checked_socket(AddressRules())
    with pytest.raises(AddressRefused, match="a link-local address"):
        make((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("169.254.169.254", 80)))


LOOPBACK = ("127.0.0.1", "::1", "::ffff:127.0.0.1", "::ffff:7f00:1")
REFUSED_LOOPBACK = "is a loopback address, which is not polled: Monitors(allow=…) would permit it"


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0x7f.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "localhost",
    ],
)
async def test_no_way_of_writing_an_address_leads_around_the_rules(host: str) -> None:
    """Section 7: other forms are no URL, or are what the system makes of them."""
    polled = await poll_one(f"http://{host}:9/", rules=AddressRules(refuse="private"))
    assert (polled.failure, polled.error, polled.is_local) in [
        ("address", f"{address} {REFUSED_LOOPBACK}", False) for address in LOOPBACK
    ] + [("definition", "the URL cannot be used: its host is neither a name nor an address", False)]


@pytest.mark.parametrize("host", ["169.254.169.254", "0.0.0.0", "0", "2852039166", "[::]"])
async def test_addresses_that_are_refused_always_are_not_connected_to(host: str) -> None:
    assert (await poll_one(f"http://{host}/")).failure in {"address", "definition"}


class Rebinding:
    """A name that leads elsewhere each time somebody asks."""

    def __init__(self, *addresses: str) -> None:
        self.left = list(addresses)
        self.asked = 0

    def __call__(self, _: Any, port: int, *__: Any) -> Any:
        self.asked += 1
        addresses = self.left.pop(0).split()
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]


async def test_what_was_checked_is_what_is_connected_to() -> None:
    """Section 7: a name that leads elsewhere between check and connection gains nothing."""
    async with serving(answering()) as server:
        lookup = Rebinding("127.0.0.1", "169.254.169.254")
        polled = await poll_one(f"http://rebinding.test:{server.port}/", lookup=lookup)
    assert polled.ok
    assert lookup.asked == 1


async def test_a_name_that_leads_to_a_refused_address_is_not_polled() -> None:
    polled = await poll_one("http://inside.test/", lookup=Rebinding("169.254.169.254"))
    assert polled.failure == "address"


async def test_the_resolver_gives_only_what_may_be_connected_to() -> None:
    lookup = Rebinding("169.254.169.254 127.0.0.1 0.0.0.0")
    resolver = CheckedResolver(AddressRules(), lookup)
    assert [each["host"] for each in await resolver.resolve("many.test")] == ["127.0.0.1"]
    await resolver.close()


async def test_names_that_nobody_answers_for_hold_up_no_name_that_was_answered_quickly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An editor may have a name server that answers when it likes."""
    monkeypatch.setattr(addresses, "_QUICK", 1000.0)  # the first answer, on any machine
    answered, asked, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()

    def lookup(host: str, port: int, *_: Any) -> Any:
        if host != "good.test":
            loop.call_soon_threadsafe(asked.set)
            answered.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    resolver = CheckedResolver(AddressRules(), lookup)
    await resolver.resolve("good.test")
    slow = [asyncio.create_task(resolver.resolve(f"slow{number}.test")) for number in range(100)]
    await asked.wait()
    try:
        async with asyncio.timeout(10):
            assert await resolver.resolve("good.test")
    finally:
        answered.set()
        await asyncio.gather(*slow)
        await resolver.close()


async def test_a_name_that_was_answered_quickly_once_and_is_not_now_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It counts as quick again when it is, and not while somebody waits for it."""
    monkeypatch.setattr(addresses, "_QUICK", 1000.0)  # the first answers, on any machine
    answered, asked, loop = threading.Event(), asyncio.Event(), asyncio.get_running_loop()
    is_good = True

    def lookup(host: str, port: int, *_: Any) -> Any:
        if host != "good.test" and not is_good:
            loop.call_soon_threadsafe(asked.set)
            answered.wait(30)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    resolver = CheckedResolver(AddressRules(), lookup)
    for host in ("good.test", "turns.test"):
        await resolver.resolve(host)
    is_good = False
    slow = [asyncio.create_task(resolver.resolve("turns.test")) for _ in range(100)]
    await asked.wait()
    try:
        async with asyncio.timeout(10):
            assert await resolver.resolve("good.test")
    finally:
        answered.set()
        await asyncio.gather(*slow)
        await resolver.close()


async def test_no_more_than_so_many_names_are_known_to_be_quick(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one that was asked for longest ago is forgotten."""
    monkeypatch.setattr(addresses, "_MOST_QUICK", 3)
    resolver = CheckedResolver(AddressRules(), Rebinding(*["127.0.0.1"] * 5))
    for number in range(5):
        await resolver.resolve(f"h{number}.test")
    assert [*resolver._quick] == ["h2.test", "h3.test", "h4.test"]  # noqa: SLF001  the bound
    await resolver.close()


async def test_a_part_of_a_name_that_is_too_long_is_a_name_that_nobody_has() -> None:
    def lookup(host: str, *_: Any) -> Any:
        return host.encode("idna")

    resolver = CheckedResolver(AddressRules(), lookup)
    with pytest.raises(socket.gaierror) as raised:
        await resolver.resolve("\u00e4" * 64 + ".test")
    assert raised.value.errno == socket.EAI_NONAME
    await resolver.close()


async def test_of_several_addresses_the_refused_ones_are_left_out() -> None:
    async with serving(answering()) as server:
        lookup = Rebinding("169.254.169.254 127.0.0.1")
        assert (await poll_one(f"http://both.test:{server.port}/", lookup=lookup)).ok


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://Example.COM/a", "HTTP://example.com:80/a"),
        ("https://example.com", "https://example.com:443/"),
        ("http://example.com/a#b", "http://example.com/a"),
        ("http://example.com?a=1", "http://example.com/?a=1"),
        ("http://[::1]:80/", "http://[::1]"),
    ],
)
def test_addresses_that_differ_in_nothing_that_matters_are_one(one: str, other: str) -> None:
    """C6; section 7: URL differs in case of host, default port, fragment."""
    assert address_key(one) == address_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a/x", "http://a/X"),
        ("http://a/", "https://a/"),
        ("http://a/?x=1", "http://a/?x=2"),
        ("http://a:81/", "http://a/"),
        ("http://a/x", "http://a/x/"),
    ],
)
def test_addresses_that_may_answer_otherwise_are_two(one: str, other: str) -> None:
    """C6"""
    assert address_key(one) != address_key(other)


def test_headers_and_redirects_are_part_of_the_request() -> None:
    """C6"""
    plain = service("http://a")
    assert group_key(plain) == group_key(service("http://A/#b", name="x", format="status"))
    assert group_key(plain) != group_key(service("http://a", follow=1))
    assert group_key(plain) != group_key(service("http://a", headers={"X": "y"}))


def test_services_are_grouped_in_the_order_of_their_first() -> None:
    urls = ["http://b/", "http://a", "http://B:80", "http://[::bad", "http://a/#x"]
    services = [service(url, id=number) for number, url in enumerate(urls)]
    assert [[each.id for each in group] for group in grouped(services)] == [[0, 2], [1, 4], [3]]


def test_nonsense_that_is_stored_is_a_group_of_its_own_and_no_exception() -> None:
    odd: Any = {"X": float("nan"), 3: object()}
    assert grouped([service("http://a", headers=odd)])
