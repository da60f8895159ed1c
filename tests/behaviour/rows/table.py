"""The application's own table, and how it is attached."""

from __future__ import annotations

from hybrid_runner import Columns, Runner, Words
from hybrid_runner.storage.connections.connection import Connection

KIND = "order"
QUEUE = "orders"
APPLICATION = "rows_application"
"""Its sessions have this name; where a server is the test's alone, its login too, which may write
the table.
"""
FINAL = ("done", "broken", "dropped")
OF_THE_APPLICATION = ("draft", "dropped")
"""What its rows may show in the end if it said so itself."""
WORDS = {"completed": "done", "failed": "broken", "cancelled": "dropped"}
"""What rows show of ended jobs."""
LOGIN = f"""
CREATE ROLE {APPLICATION} LOGIN;
GRANT ALL ON ALL TABLES IN SCHEMA shop TO {APPLICATION};
"""
MADE = """
CREATE SCHEMA shop;
CREATE TABLE shop.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'draft'
        CHECK (status IN ('draft', 'pending', 'processing', 'done', 'broken', 'dropped')),
    wants integer NOT NULL DEFAULT 0, -- one more whenever the application wants it done
    how text NOT NULL,
    seconds float8 NOT NULL,
    times integer NOT NULL,
    note integer,
    worker text,
    started_at timestamptz,
    heartbeat_at timestamptz,
    finished_at timestamptz,
    retries integer,
    result jsonb,
    error text
);
CREATE INDEX ON shop.orders (status);
CREATE TABLE shop.changes (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    order_id bigint NOT NULL,
    wants integer NOT NULL,
    was text NOT NULL,
    became text NOT NULL,
    by text NOT NULL DEFAULT current_setting('application_name')
);
CREATE FUNCTION shop.note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO shop.changes (order_id, wants, was, became)
    VALUES (new.id, new.wants, CASE WHEN tg_op = 'UPDATE' THEN old.status ELSE '' END, new.status);
    RETURN NULL;
END
$$;
CREATE TRIGGER note_insert AFTER INSERT ON shop.orders
FOR EACH ROW EXECUTE FUNCTION shop.note_change();
CREATE TRIGGER note_change AFTER UPDATE ON shop.orders
FOR EACH ROW WHEN (old.status IS DISTINCT FROM new.status) EXECUTE FUNCTION shop.note_change();
GRANT USAGE ON SCHEMA shop TO PUBLIC;
GRANT SELECT, UPDATE (note) ON shop.orders TO PUBLIC; -- handlers have business with it, too
"""
QUIET = """
SELECT (SELECT count(*) FROM hybrid_runner.jobs) + (SELECT count(*) FROM hybrid_runner.late_rows)
    + (SELECT count(*) FROM hybrid_runner.row_changes)
    + (SELECT count(*) FROM shop.orders WHERE status IN ('pending', 'processing'))
"""
"""How much has still to be done."""


async def make(connection: Connection, *, with_login: bool) -> None:
    """The table, by a superuser; with_login: a login of its own writes it."""
    await connection.execute(MADE)
    if with_login:
        await connection.execute(LOGIN)


async def attach(app: Runner) -> None:
    """From now on its rows are worked on."""
    await app.attach(
        "shop.orders",
        kind=KIND,
        queue=QUEUE,
        when="status = 'pending'",
        cancel_when="status = 'dropped'",
        words=Words(
            queued="pending",
            running="processing",
            completed="done",
            failed="broken",
            cancelled="dropped",
        ),
        columns=Columns(
            status="status",
            worker_id="worker",
            started_at="started_at",
            heartbeat_at="heartbeat_at",
            finished_at="finished_at",
            retry_count="retries",
            result="result",
            error="error",
        ),
    )
