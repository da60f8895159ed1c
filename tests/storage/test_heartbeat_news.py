"""What a heartbeat's answer can say is one list: in the query, in the types and on the page."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest

from hybrid_runner.model.news import DutyGiven, LiveWorker, NextDue, RowGone
from hybrid_runner.storage.heartbeat_answer import parse
from hybrid_runner.storage.queries import query
from tests.docs.heartbeat_news import PAGE, TABLE, TYPES, table, word


def test_each_word_of_the_query_is_a_type_and_each_type_a_word() -> None:
    said = []
    for name in ("ask_news", "ask_queues"):
        answer = query(name).partition("\nSELECT ")[2]
        said += re.findall(r"(?:^|SELECT\s+|THEN |ELSE )'(\w+)'", answer)
    assert sorted(said) == sorted(word(news) for news in TYPES)


@pytest.mark.parametrize("news", TYPES, ids=word)
def test_each_word_is_read_as_its_type(news: type[object]) -> None:
    values = {RowGone: "7 8", LiveWorker: '["a worker", "c0ffee", []]'}
    assert type(parse(word(news), "default", values.get(news, "7"))) is news


def test_what_a_row_carries_is_read() -> None:
    assert parse("live_worker", "", '["a worker", "c0ffee", ["mail"]]') == LiveWorker(
        "a worker", "c0ffee", ("mail",)
    )
    assert parse("next_due", "mail", "1.5") == NextDue("mail", timedelta(seconds=1.5))
    assert parse("next_due", "mail", "-0.5") == NextDue("mail", timedelta(0))
    assert parse("duty_given", "", "prune") == DutyGiven("prune")


def test_a_word_that_no_type_stands_for_is_named() -> None:
    with pytest.raises(ValueError, match="'gossip'"):
        parse("gossip", "", "")


def test_the_table_of_the_page_is_current() -> None:
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found
    assert found[0] == table(), "write it anew: python -m tests.docs.heartbeat_news"
