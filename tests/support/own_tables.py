"""Tables as applications have them, what is asked for them, and what can be seen of a database."""

from __future__ import annotations

import subprocess
from typing import Any

from hybrid_runner.embedded.binaries import find_binaries
from hybrid_runner.model.sources import Columns, Words
from hybrid_runner.storage.connections.connection import Connection

ORDERS = """
CREATE TABLE public.orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status text NOT NULL DEFAULT 'waiting',
    urgent boolean NOT NULL DEFAULT false,
    worker text,
    result jsonb
)
"""
WORDS = Words(queued="waiting", running="working", completed="done", failed="broken")
COLUMNS = Columns(status="status", worker_id="worker", result="result")
ASKED: dict[str, Any] = {"kind": "order", "words": WORDS, "columns": COLUMNS}
"""What `attach` is asked for the table orders."""
WORDED = (
    *("--kind", "order", "--status", "status", "--worker-id", "worker", "--result", "result"),
    *("--queued", "waiting", "--running", "working", "--completed", "done", "--failed", "broken"),
)
"""The same, on the command line."""

_OBJECTS = """
SELECT pg_get_functiondef(p.oid) || coalesce(p.proacl::text, '') || p.proowner::regrole
FROM pg_proc AS p WHERE p.proname ~ '^source_[0-9]'
UNION ALL SELECT pg_get_triggerdef(t.oid) FROM pg_trigger AS t WHERE t.tgname ~ '^hybrid_runner_'
UNION ALL SELECT c.relname || pg_get_viewdef(c.oid) || c.relacl::text
FROM pg_class AS c WHERE c.relname ~ '^source_[0-9]' AND c.relkind = 'v'
UNION ALL SELECT (to_jsonb(s) - 'made_at' - 'relation')::text
FROM hybrid_runner.sources AS s
ORDER BY 1
"""


_HAND_OVER = """
DO $$ DECLARE made regprocedure; BEGIN
    ALTER TABLE public.orders OWNER TO "{role}";
    GRANT USAGE ON SCHEMA hybrid_runner TO "{role}";
    GRANT EXECUTE ON FUNCTION hybrid_runner.row_verdict TO "{role}";
    GRANT INSERT, SELECT ON hybrid_runner.source_1_jobs, hybrid_runner.source_1_changes,
        hybrid_runner.source_1_late TO "{role}";
    FOR made IN SELECT p.oid FROM pg_proc AS p WHERE p.proname ~ '^source_1_' LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO %I', made, '{role}');
        IF made::text ~ '_(write|rows|want)[(]' THEN
            EXECUTE format(
                'GRANT EXECUTE ON FUNCTION %s TO CURRENT_USER, hybrid_runner_worker', made);
        END IF;
    END LOOP;
END $$
"""


async def hand_over(database: Connection, role: str) -> None:
    """Give the attached table orders, and what was made for it, to a role of its own, as it is
    where another than a superuser has attached it.
    """
    await database.execute(_HAND_OVER.format(role=role))


async def made_for_sources(database: Connection) -> list[str]:
    """Everything that was made for attached tables, as text."""
    return [row[0] for row in await database.fetch(_OBJECTS)]


def dumped(dsn: str, *options: str) -> str:
    """What pg_dump writes, without the line that it makes up anew each time."""
    written = _run("pg_dump", *options, f"--dbname={dsn}")
    return "".join(
        line
        for line in written.splitlines(keepends=True)
        if not line.startswith(("\\restrict ", "\\unrestrict "))
    )


def run_by_psql(dsn: str, script: str) -> str:
    """What psql prints when it runs the script."""
    return _run("psql", "--no-psqlrc", "--quiet", dsn, stdin=script)


def _run(program: str, *arguments: str, stdin: str = "") -> str:
    ended = subprocess.run(
        [str(find_binaries().directory / program), *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended
    return ended.stdout
