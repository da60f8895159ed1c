"""Keys that are made of a payload: by `key_of`, and by `unique` of a handler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, ConfigDict, Field

from hybrid_runner import ConfigurationError, NewJob, Runner, key_of
from hybrid_runner.handlers.key_use import KeyUse
from hybrid_runner.handlers.new_jobs import follow_ups, new_job, new_jobs
from hybrid_runner.model.jobs import NO_LIMITS

COLLECT = KeyUse("collect", NO_LIMITS)


class Page(BaseModel):
    """What is to be fetched."""

    url: str
    depth: int = 1


class Aliased(BaseModel):
    """Stored by its alias."""

    model_config = ConfigDict(populate_by_name=True)
    url: Annotated[str, Field(alias="address")]


@dataclass
class Change:
    """What is collected."""

    document: int
    what: str


app = Runner("postgresql://nowhere/none")


@app.job("fetch", unique=("url",))
async def fetch(payload: Page) -> None: ...


@app.job("fetch-all", unique=True)
async def fetch_all(payload: Page) -> None: ...


@app.job("reindex", unique=["document"])
async def reindex(payload: list[Change]) -> None: ...


@app.job("plain")
async def plain(payload: Page) -> None: ...


def test_jobs_in_which_the_members_are_equal_have_one_key() -> None:
    first = new_job(app.registry.get, fetch, Page(url="a", depth=1), {})
    second = new_job(app.registry.get, "fetch", {"url": "a", "depth": 2}, {})
    third = new_job(app.registry.get, fetch, Page(url="b"), {})
    assert first.key == second.key == key_of(fetch, Page(url="a"), "url")
    assert third.key != first.key
    assert (first.key or "").startswith("fetch:")


def test_of_all_of_the_payload_every_member_counts() -> None:
    first, second = (
        new_job(app.registry.get, fetch_all, Page(url="a", depth=depth), {}).key for depth in (1, 2)
    )
    assert first != second
    assert first == key_of("fetch-all", {"depth": 1, "url": "a"})


def test_a_key_that_is_given_is_taken() -> None:
    assert new_job(app.registry.get, fetch, Page(url="a"), {"key": "mine"}).key == "mine"
    assert fetch.new(Page(url="a"), key="mine").key == "mine"


def test_a_kind_that_says_nothing_makes_no_key() -> None:
    assert new_job(app.registry.get, plain, Page(url="a"), {}).key is None


def test_every_way_of_putting_jobs_in_makes_the_key() -> None:
    key = key_of(fetch, Page(url="a"), "url")
    given = [Page(url="a"), NewJob("fetch", '{"url": "a"}'), NewJob("fetch", "{}", key="mine")]
    groups = new_jobs(app.registry, fetch, given, None, {})
    assert [each for group in groups for each in group.keys or ()] == [key, key, "mine"]
    assert fetch.new(Page(url="a")).key == key
    [follower] = follow_ups(app.registry.get, [NewJob("fetch", '{"url": "a", "depth": 3}')])
    assert follower.key == key


def test_a_function_of_the_caller_makes_other_keys() -> None:
    [group] = new_jobs(app.registry, fetch, [Page(url="a")], lambda page: page.url, {})
    assert group.keys == ["a"]


def test_numbers_that_are_equal_are_one_and_texts_are_as_they_are() -> None:
    keys = {key_of("work", {"n": n}) for n in (1, 1.0, 1e0)}
    assert len(keys) == 1
    assert len({key_of("work", text) for text in ("1.0", "1", "1.00", 1)}) == 4


def test_a_missing_member_counts_as_null_and_their_order_says_nothing() -> None:
    assert key_of("work", {"a": 1}, "a", "b") == key_of("work", {"b": None, "a": 1}, "b", "a", "a")


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ([1], "work: payload must be an object to take a key of its members, not array"),
        ({"b": 1}, "work: payload has none of these members: a"),
        ({"a": float("nan")}, "work: the payload contains NaN or infinity (a), which JSON cannot"),
        ({"a": "\x00"}, "work: the payload contains a NUL character"),
    ],
)
def test_what_has_no_key_is_refused_in_one_line(payload: Any, said: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        key_of("work", payload, "a")
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("kind", "said"), [("a b", "'a b' is not a kind"), ("", "'' is not a kind")]
)
def test_a_key_is_of_a_kind(kind: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        key_of(kind, {})


@pytest.mark.parametrize(
    ("unique", "said"),
    [
        (("ulr",), "its payload has no member 'ulr' to be unique by: did you mean 'url'?"),
        (("zzz",), "its payload has no member 'zzz' to be unique by: it has url, depth"),
        ("url", "unique must be names of the payload's members"),
        ((), "unique must be names of the payload's members"),
        ((1,), "unique must be names of the payload's members"),
        (("",), "unique must be names of the payload's members"),
        (5, "unique must be names of the payload's members"),
    ],
)
def test_a_member_that_is_none_is_refused_where_the_handler_is(unique: Any, said: str) -> None:
    async def handler(payload: Page) -> None: ...

    with pytest.raises(ConfigurationError) as raised:
        Runner("postgresql://nowhere/none").job("wrong", unique=unique)(handler)
    assert str(raised.value).startswith(f"kind 'wrong': {said}")


def test_members_are_named_as_they_are_stored() -> None:
    own = Runner("postgresql://nowhere/none")

    async def handler(payload: Aliased) -> None: ...

    kind = own.job("aliased", unique=("address",))(handler)
    key = new_job(own.registry.get, kind, Aliased.model_validate({"address": "a"}), {}).key
    assert key == key_of("aliased", {"address": "a"}, "address")
    with pytest.raises(ConfigurationError, match="no member 'url'"):
        own.job("other", unique=("url",))(handler)


def test_a_payload_of_any_members_is_asked_for_them_when_a_job_is_put_in() -> None:
    own = Runner("postgresql://nowhere/none")

    async def handler(payload: dict[str, Any]) -> None: ...

    kind = own.job("any", unique=("url",))(handler)
    assert new_job(own.registry.get, kind, {"url": 1, "x": 2}, {}).key is not None
    with pytest.raises(ConfigurationError, match="payload has none of these members: url"):
        new_job(own.registry.get, kind, {"ulr": 1}, {})


# --- what is collected


def test_an_item_and_a_list_of_items_are_stored_as_a_list_under_the_key_of_the_items() -> None:
    one = new_job(app.registry.get, reindex, Change(7, "title"), {}, COLLECT)
    two = new_job(app.registry.get, reindex, [Change(7, "title"), Change(7, "text")], {}, COLLECT)
    assert one.payload == '[{"document":7,"what":"title"}]'
    assert two.payload.count("document") == 2
    assert one.key == two.key == key_of("reindex", {"document": 7}, "document")


def test_items_of_several_keys_are_not_put_into_one_job() -> None:
    changes = [Change(7, "title"), Change(8, "title")]
    with pytest.raises(ConfigurationError) as raised:
        new_job(app.registry.get, reindex, changes, {}, COLLECT)
    assert str(raised.value) == (
        "reindex: these 2 items have 2 keys: enqueue those of each key by themselves"
    )
    groups = new_jobs(app.registry, reindex, changes, None, {}, COLLECT)
    assert len({key for group in groups for key in group.keys or ()}) == 2


def test_a_key_that_is_given_holds_for_items_of_all_kinds() -> None:
    changes = [Change(7, "title"), Change(8, "title")]
    assert new_job(app.registry.get, reindex, changes, {"key": "all"}, COLLECT).key == "all"


def test_a_handler_that_takes_no_list_cannot_collect() -> None:
    with pytest.raises(ConfigurationError) as raised:
        new_job(app.registry.get, plain, Page(url="a"), {"key": "k"}, COLLECT)
    assert str(raised.value) == (
        "plain takes no list: to collect items, annotate its payload as list[…]"
    )


def test_nothing_cannot_be_collected() -> None:
    with pytest.raises(ConfigurationError, match="collect needs at least one item"):
        new_job(app.registry.get, reindex, [], {"key": "k"}, COLLECT)
    with pytest.raises(ConfigurationError, match=r"payloads\[1\]: collect needs at least one item"):
        new_jobs(app.registry, reindex, [Change(7, "a"), []], None, {}, COLLECT)


def test_an_item_that_does_not_fit_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"does not fit reindex: 1\.document"):
        new_job(
            app.registry.get,
            reindex,
            [Change(7, "a"), {"document": "x", "what": "y"}],
            {"key": "k"},
            COLLECT,
        )
