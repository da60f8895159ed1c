"""GET /schedules and GET /schedules/{name}."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.web.pages.schedules import HIDDEN
from tests.support.monitored_pages import served
from tests.support.scheduled import a_worker
from tests.support.streams import BEARER, TOKEN, Pages

INSERT = """
INSERT INTO hybrid_runner.schedules (name, kind, payload, every, queue)
VALUES ('zoo/keys', 'work', '{"secret": 1}', '1 h', 'mail'), ('beat', 'nobody', '{}', '10 s', NULL)
"""


async def asked(client: Pages, path: str) -> tuple[int, Any]:
    """With the token."""
    async with client.session.get(path, headers=BEARER) as response:
        return response.status, await response.json()


async def test_schedules_are_listed_by_name_without_what_they_carry(
    dsn: str, database: Connection
) -> None:
    await a_worker(database)
    await database.execute(INSERT)
    async with served(dsn, http_token=TOKEN) as client:
        status, body = await client.get("/schedules")
        _, rest = await client.get("/schedules?limit=1&offset=1")
        granted = (await asked(client, "/schedules"))[1]
    assert status == 200
    assert [(one["name"], one["state"], one["when"]) for one in body["schedules"]] == [
        ("beat", "unknown kind", "every 10s"),
        ("zoo/keys", "on", "every 1h"),
    ]
    assert body["more"] is False
    assert body["hidden"] == ["made_by", "note"]
    assert not {"payload", "made_by", "note"} & set(body["schedules"][0])
    assert [one["name"] for one in rest["schedules"]] == ["zoo/keys"]
    assert "hidden" not in granted
    assert granted["schedules"][0]["made_by"] == await database.fetchval("SELECT session_user")


async def test_one_of_them_is_shown_with_its_next_ticks(dsn: str, database: Connection) -> None:
    await database.execute(INSERT)
    async with served(dsn, http_token=TOKEN) as client:
        status, body = await client.get("/schedules/zoo%2Fkeys")
        _, three = await client.get("/schedules/beat?next=3")
        granted = (await asked(client, "/schedules/zoo%2Fkeys"))[1]
    assert (status, body["name"], body["every"]) == (200, "zoo/keys", 3600)
    assert body["hidden"] == list(HIDDEN)
    assert "payload" not in body
    assert len(body["next"]) == 5
    assert body["next"][0] == {"tick": body["next_at"], "run_at": body["next_at"]}
    assert len(three["next"]) == 3
    assert granted["payload"] == {"secret": 1}


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/schedules/nowhere", 404, "there is no schedule 'nowhere'"),
        ("/schedules/%00", 404, "there is no schedule"),
        ("/schedules/" + "x" * 500, 404, "there is no schedule"),
        ("/schedules?limit=0", 400, "limit: use a whole number 1 to 1000"),
        ("/schedules/s?next=101", 400, "next: use a whole number 1 to 100"),
        ("/schedules?colour=red", 400, "there is no 'colour' here"),
    ],
)
async def test_what_cannot_be_is_refused(dsn: str, path: str, status: int, said: str) -> None:
    async with served(dsn) as client:
        answer = await client.get(path)
    assert answer[0] == status
    assert said in answer[1]["error"]
