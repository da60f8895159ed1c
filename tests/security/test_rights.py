"""What a login cannot do, whatever it tries: statements that must be refused."""

from __future__ import annotations

import asyncpg
import pytest

from hybrid_runner.storage.connections.connection import connect
from tests.support.logins import Login, Logins


@pytest.mark.parametrize(
    ("who", "statement"),
    [
        (Login.NOBODY, "SELECT FROM hybrid_runner.jobs"),
        (Login.NOBODY, "INSERT INTO hybrid_runner.jobs (kind) VALUES ('echo')"),
        (Login.NOBODY, "SELECT hybrid_runner.enqueue('echo')"),
        (Login.PRODUCER, "SELECT payload FROM hybrid_runner.jobs"),
        (Login.PRODUCER, "INSERT INTO hybrid_runner.jobs (kind) VALUES ('echo') RETURNING payload"),
        (Login.PRODUCER, "COPY hybrid_runner.jobs TO STDOUT"),
        (Login.PRODUCER, "SELECT FROM hybrid_runner.jobs FOR UPDATE"),
        (Login.PRODUCER, "UPDATE hybrid_runner.jobs SET kind = 'echo'"),
        (Login.PRODUCER, "DELETE FROM hybrid_runner.jobs"),
        (Login.PRODUCER, "TRUNCATE hybrid_runner.jobs"),
        (Login.PRODUCER, "INSERT INTO hybrid_runner.jobs (id, kind) VALUES (1, 'echo')"),
        (
            Login.PRODUCER,
            "INSERT INTO hybrid_runner.jobs (kind, state) VALUES ('echo', 'running')",
        ),
        (Login.PRODUCER, "CREATE TABLE hybrid_runner.mine (id int)"),
        (Login.PRODUCER, "ALTER TABLE hybrid_runner.jobs DISABLE TRIGGER ALL"),
        (Login.PRODUCER, "SELECT FROM hybrid_runner.archive"),
        (Login.PRODUCER, "SELECT hybrid_runner.cancel(1)"),
        (Login.PRODUCER, "SELECT hybrid_runner.ring('default', now())"),
        (Login.PRODUCER, "SELECT nextval('hybrid_runner.claims')"),
        (Login.READER, "DELETE FROM hybrid_runner.jobs"),
        (Login.READER, "SELECT hybrid_runner.cancel(1)"),
        (Login.PRODUCER, "SELECT FROM hybrid_runner.callback_secret"),
        (Login.READER, "SELECT FROM hybrid_runner.callback_secret"),
        (Login.WORKER, "UPDATE hybrid_runner.callback_secret SET secret = DEFAULT"),
        (Login.WORKER, "DELETE FROM hybrid_runner.archive"),
        (Login.WORKER, "DROP TABLE hybrid_runner.jobs"),
    ],
)
async def test_a_statement_beyond_a_logins_rights_is_refused(
    login: Logins, who: Login, statement: str
) -> None:
    connection = await connect(login(who))
    try:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(statement)
    finally:
        await connection.close()
