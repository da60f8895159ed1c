"""Conditions and other expressions that cannot decide about a row: one line each (section 5)."""

from __future__ import annotations

from typing import Any

import pytest

from hybrid_runner import Runner
from hybrid_runner.attach.checking import check
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.attach.definitions import AUDITS, COLUMNS, WORDS, asked, checked, refusal
from tests.support.logins import Login, Logins
from tests.support.own_tables import made_for_sources


@pytest.fixture
async def audits(database: Connection) -> Connection:
    """A database with the table audits and some functions."""
    await database.execute(AUDITS)
    await database.execute(
        "CREATE FUNCTION public.is_fine(text) RETURNS boolean LANGUAGE sql IMMUTABLE"
        " AS 'SELECT $1 <> '''''; "
        " CREATE FUNCTION public.is_free(text) RETURNS boolean LANGUAGE sql VOLATILE"
        " AS 'SELECT true'"
    )
    return database


@pytest.mark.parametrize(
    ("when", "said"),
    [
        ("", "--when is empty: write SQL over the columns of the table"),
        ("status", "--when is of type text, not true or false"),
        ("urgency", "--when is of type int4, not true or false"),
        ("stat = 'pending'", "--when is refused: column"),
        ("stat = 'pending'", "public.audits has id, website_url, status"),
        ("audits.status = 'pending'", "write columns without the name of the table"),
        ("status = = 'pending'", "--when is refused: syntax error at or near"),
        ("status = ", 'at or near ")": write one expression, as it may stand after SELECT'),
        ("status = 'pending'; DROP TABLE public.audits", "--when is refused: syntax error"),
        ("true) AS expression UNION SELECT (true", "--when is refused: syntax error"),
        ("true), (true", "--when is refused: it is more than one expression"),
        ("true /*", "--when is refused: "),
        ("website_url = $1", "--when is refused: it has a parameter ($1)"),
        ("id = 'x'", "--when is refused: invalid input syntax for type uuid"),
        ("urgency = (SELECT 1)", "--when has a sub-select: only the row's own columns"),
        ("EXISTS (SELECT FROM pg_class)", "--when has a sub-select"),
        ("count(*) > 1", "--when has an aggregate"),
        ("row_number() OVER () = 1", "--when has a window function"),
        ("generate_series(1, 2) = 1", "--when has a function that returns rows"),
        ("random() < 0.5", "--when has the volatile function random()"),
        ("public.is_free(status)", "--when has the volatile function public.is_free()"),
        ("website_url = current_user", "--when has the name of whoever asks"),
        ("website_url = session_user", "--when has the name of whoever asks"),
        ("ctid IS NOT NULL", "--when is refused: column"),
        ("beside IS NULL", "--when is refused: column"),
        ("nextval('x') > 1", '--when is refused: relation "x" does not exist'),
        ("audits IS NOT NULL", "--when is refused: column"),
        ("no_such(status)", "--when is refused: function no_such(text) does not exist"),
    ],
)
async def test_a_condition_that_is_no_plain_one_is_refused(
    audits: Connection, when: str, said: str
) -> None:
    assert said in await refusal(audits, asked(when=when))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cancel_when": "urgency"}, "--cancel-when is of type int4, not true or false"),
        ({"priority": "website_url"}, "--priority is of type text, not a number"),
        ({"priority": "(SELECT 1)"}, "--priority has a sub-select"),
        ({"run_at": "urgency"}, "--run-at is of type int4, not a time (timestamptz)"),
        ({"run_at": "clock_timestamp()"}, "--run-at has the volatile function clock_timestamp()"),
        ({"kind": "two words"}, "'two words' is not a kind"),
        ({"queue": "two words"}, "'two words' is not a queue"),
    ],
)
async def test_other_expressions_and_names_are_looked_at_too(
    audits: Connection, changes: dict[str, Any], said: str
) -> None:
    assert said in await refusal(audits, asked(**changes))


@pytest.mark.parametrize(
    "when",
    [
        "is_fine(status)",
        "public.is_fine(website_url) AND created_at < now() -- with a remark",
        "status IN ('pending') AND website_url ~ 'SELECT|{SUBLINK |:funcretset true'",
        '"status" = $$pending$$ AND coalesce(urgency, 0) BETWEEN 1 AND 9',
        "raw_data ->> 'go' = 'yes' AND (raw_data -> 'n')::int > 2",
        "website_url LIKE '%row_of_source.%'",
    ],
)
async def test_a_plain_condition_means_what_it_says(audits: Connection, when: str) -> None:
    """What Postgres printed selects the rows that the condition selects."""
    await audits.execute(
        "INSERT INTO public.audits (website_url, urgency, raw_data) VALUES"
        ' (\'https://row_of_source.example\', 1, \'{"go": "yes", "n": 3}\'), (NULL, 5, NULL),'
        " ('SELECT', 12, '{}')"
    )
    source = (await checked(audits, asked(when=when))).source
    ids = "SELECT array_agg(id ORDER BY id) FROM public.audits AS {} WHERE {}"
    await audits.execute("SET search_path = pg_catalog, public")
    wanted = await audits.fetchval(ids.format("audits", f"(\n{when}\n) AND status = 'pending'"))
    await audits.execute("RESET search_path")
    for row, text in (("new", source.condition.new), ("old", source.condition.old)):
        assert await audits.fetchval(ids.format(row, text)) == wanted


async def test_a_function_that_some_may_not_call_may_not_decide(audits: Connection) -> None:
    """The update trigger asks as whoever writes the row, who would be refused."""
    await audits.execute("REVOKE EXECUTE ON FUNCTION public.is_fine FROM PUBLIC")
    said = await refusal(audits, asked(when="is_fine(status)"))
    assert (
        "--when calls public.is_fine(text), which not everybody may call, and triggers ask" in said
    )
    assert "run GRANT EXECUTE ON FUNCTION public.is_fine(text) TO PUBLIC" in said


async def test_a_column_may_have_any_name(database: Connection) -> None:
    await database.execute(AUDITS.replace("urgency", '"{SUBLINK :funcretset true"'))
    when = '"{SUBLINK :funcretset true" > 3'
    assert "SUBLINK" in (await checked(database, asked(when=when))).source.condition.new


async def test_a_column_that_is_computed_when_read_may_not_decide(database: Connection) -> None:
    if await database.fetchval("SELECT current_setting('server_version_num')::int < 180000"):
        pytest.skip("SKIPPED: PostgreSQL 18 has such columns")
    await database.execute(
        AUDITS.replace(
            "urgency integer", "urgency int GENERATED ALWAYS AS (retry_count * 2) VIRTUAL"
        )
    )
    said = await refusal(database, asked(when="urgency > 2"))
    assert "--when reads urgency, which is computed when it is read" in said


async def test_whoever_may_not_make_temporary_views_is_told_so(
    audits: Connection, login: Logins
) -> None:
    """Section 5: missing rights."""
    name = await audits.fetchval("SELECT quote_ident(current_database())")
    await audits.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
    connection = await connect(login(Login.WORKER))
    async with connection.transaction():
        with pytest.raises(ConfigurationError) as refused:
            await check(connection, asked(), 1, for_script=True)
    assert "permission denied to create temporary tables in database" in str(refused.value)
    assert f"granted to {Login.WORKER.role} (GRANT TEMPORARY ON DATABASE" in str(refused.value)
    await connection.close()


@pytest.mark.parametrize(
    "option",
    [
        {"when": "CASE WHEN urgency = 1 THEN 1/0 = 1 END"},
        {"when": "website_url = current_setting('no.such')"},
        {"cancel_when": "urgency = 1/0"},
        {"priority": "urgency + 1/0"},
        {"run_at": "created_at + (1/0) * interval '1 s'"},
    ],
    ids=str,
)
async def test_what_fails_whatever_the_row_is_never_fails_in_the_applications_statement(
    audits: Connection, dsn: str, option: dict[str, Any]
) -> None:
    async with Runner(dsn) as app:
        with pytest.raises(ConfigurationError) as refused:
            await app.attach("audits", kind="audit", words=WORDS, columns=COLUMNS, **option)
    assert "\n" not in str(refused.value)
    assert await made_for_sources(audits) == []
    await audits.execute("INSERT INTO public.audits (urgency) VALUES (1)")
