"""docs/sql.md lists every message that there is, and SQL sends no other."""

from __future__ import annotations

import re
from typing import get_args

import pytest

from hybrid_runner.model.messages import Message, channel_of
from tests.docs.blocks import ROOT
from tests.docs.notify_messages import MESSAGES, PAGE, TABLE, table

SENT = re.compile(
    r"(?:notify_if_room|pg_notify)\(\s*'hybrid_runner\.' \|\| [\w.]+, '([^']*)'", re.IGNORECASE
)


def sent_by_sql() -> set[str]:
    """The texts, or their beginnings, that SQL sends on the channels of queues."""
    return {
        text
        for path in (ROOT / "sql").rglob("*.sql")
        for text in SENT.findall(path.read_text(encoding="utf-8"))
    }


def test_the_table_is_written_from_the_types() -> None:
    found = TABLE.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found[0] == table(), "run python -m tests.docs.notify_messages"


def test_the_table_has_all_messages() -> None:
    assert {message for _, messages in MESSAGES for message in messages} == set(get_args(Message))


@pytest.mark.parametrize("text", sorted(sent_by_sql()))
def test_what_sql_sends_is_one_of_the_messages(text: str) -> None:
    message = channel_of("default").read(text + "7" if text.endswith(" ") else text)
    assert message is not None
    assert message.text.startswith(text)


def test_sql_sends_messages() -> None:
    assert sent_by_sql() >= {"", "later", "help", "help resumed", "gone ", "cancel "}
