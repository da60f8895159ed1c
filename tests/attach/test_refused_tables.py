"""Tables that cannot be attached, and people who may not: one line each that says what would help
(section 5).
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hybrid_runner import Runner
from hybrid_runner.attach.checking import check
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.sources import Columns
from hybrid_runner.storage.connections.connection import Connection, connect
from tests.attach.definitions import AUDITS, COLUMNS, WORDS, asked, checked, refusal
from tests.support.logins import Login, Logins


@pytest.fixture
async def stranger(database: Connection, login: Logins) -> AsyncIterator[Connection]:
    """A login without rights, beside a schema hybrid_runner that belongs to no superuser."""
    owner = await database.fetchval("SELECT quote_ident(current_user)")
    await database.execute(f"ALTER SCHEMA hybrid_runner OWNER TO {Login.OTHER_PRODUCER.role}")
    connection = await connect(login(Login.WORKER))
    yield connection
    await connection.close()
    await database.execute(f"ALTER SCHEMA hybrid_runner OWNER TO {owner}")


@pytest.mark.parametrize(
    ("made", "named", "said"),
    [
        ("", "audits", "there is no table audits: create it first, or name its schema"),
        ("", "audits'; --", "is not the name of a table: write it as in SQL"),
        ("", "a.b.c", "is not the name of a table: write it as in SQL"),
        ("", "", "is not the name of a table: write it as in SQL"),
        (
            "CREATE SCHEMA app; CREATE TABLE app.audits (id int); CREATE TABLE audits (id int)",
            "audits",
            "audits may be app.audits, public.audits: say which",
        ),
        (
            "CREATE VIEW audits AS SELECT 1 AS id",
            "audits",
            "public.audits is a view: attach the table that it reads",
        ),
        (
            "CREATE MATERIALIZED VIEW audits AS SELECT 1 AS id",
            "public.audits",
            "public.audits is a materialized view: attach the table that it reads",
        ),
        (
            (
                "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
                " CREATE FOREIGN TABLE audits (id int) SERVER s"
            ),
            "audits",
            "is a foreign table: attach it in the database where its rows are",
        ),
        ("CREATE SEQUENCE audits", "audits", "is a sequence, not a table"),
        (
            "CREATE TEMPORARY TABLE audits (id int PRIMARY KEY, status text)",
            "audits",
            "is a temporary table, which no worker can see: attach one that lasts",
        ),
        (
            (
                "CREATE TABLE runs (id int PRIMARY KEY, status text) PARTITION BY RANGE (id);"
                " CREATE TABLE audits PARTITION OF runs DEFAULT"
            ),
            "audits",
            "public.audits is a partition: attach the table that it belongs to",
        ),
        (
            (
                "CREATE TABLE audits (id int PRIMARY KEY, status text);"
                " CREATE TABLE old_audits () INHERITS (audits)"
            ),
            "audits",
            "other tables inherit from public.audits, and their rows are not its own: attach each",
        ),
        (
            (
                "CREATE TABLE audits (id int PRIMARY KEY, status text);"
                " CREATE RULE r AS ON UPDATE TO audits DO INSTEAD NOTHING"
            ),
            "audits",
            "public.audits has rules (CREATE RULE), which turn what is written into something",
        ),
        (
            "",
            "hybrid_runner.jobs",
            "if it is yours, run ALTER TABLE hybrid_runner.jobs SET SCHEMA public",
        ),
        ("", "pg_catalog.pg_class", "is Postgres' own: attach a table of an application"),
        (
            "CREATE TABLE audits (id int, status text)",
            "audits",
            "public.audits has no primary key: name unique columns that are NOT NULL with --key",
        ),
    ],
)
async def test_what_is_no_table_that_can_be_attached_is_refused(
    database: Connection, made: str, named: str, said: str
) -> None:
    await database.execute("SET search_path = public")
    await database.execute(made or "SELECT 1")
    await database.execute("RESET search_path")
    definition = asked(table=named, columns=Columns(status="status"))
    assert said in await refusal(database, definition)


async def test_a_name_in_capitals_is_found_as_it_was_typed(database: Connection) -> None:
    await database.execute(AUDITS.replace("public.audits", 'public."Audits"'))
    assert (await checked(database, asked(table="Audits"))).source.table == "Audits"


async def test_a_name_that_we_have_too_is_the_applications(database: Connection) -> None:
    await database.execute(AUDITS.replace("public.audits", "public.jobs"))
    checked_as = await checked(database, asked(table="jobs"))
    assert (checked_as.source.schema, checked_as.source.table) == ("public", "jobs")


async def test_table_of_another_role_needs_its_owner_to_be_trusted(
    database: Connection, stranger: Connection
) -> None:
    """Decision: its owner's triggers run inside the workers' statements."""
    await database.execute(AUDITS)
    await database.execute(f"ALTER TABLE public.audits OWNER TO {Login.NOBODY.role}")
    said = await refusal(stranger, asked(), for_script=True)
    assert f"public.audits belongs to {Login.NOBODY.role}, not to" in said
    assert "with --trust-owner that role is trusted like a worker" in said
    source = (await checked(stranger, asked(trust_owner=True), for_script=True)).source
    assert source.owner == Login.NOBODY.role


async def test_schema_of_a_superuser_takes_no_table_of_another_role(
    database: Connection, login: Logins
) -> None:
    """Who attaches can become both owners, so would be a superuser."""
    await database.execute(AUDITS)
    await database.execute(f"ALTER TABLE public.audits OWNER TO {Login.NOBODY.role}")
    said = await refusal(database, asked(trust_owner=True))
    assert "have the schema migrated by a role that cannot (deploy/README.md)" in said


async def test_whoever_may_not_act_as_the_owners_is_told_which_grant_helps(
    database: Connection, login: Logins
) -> None:
    """Section 5: missing rights."""
    await database.execute(AUDITS)
    owner = await database.fetchval("SELECT quote_ident(current_user)")
    stranger = Login.WORKER.role
    connection = await connect(login(Login.WORKER))
    said = await refusal(connection, asked())
    assert f"{stranger} cannot act as {owner}, who owns the schema hybrid_runner" in said
    assert f"run GRANT {owner} TO {stranger}" in said
    try:
        await database.execute(f"ALTER SCHEMA hybrid_runner OWNER TO {stranger}")
        said = await refusal(connection, asked())
    finally:
        await database.execute(f"ALTER SCHEMA hybrid_runner OWNER TO {owner}")
    assert f"{stranger} cannot act as {owner}, who owns public.audits" in said
    assert f"run GRANT {owner} TO {stranger}" in said
    await connection.close()


async def test_whoever_has_no_right_at_all_is_told_the_grant_that_helps(
    database: Connection, login: Logins
) -> None:
    """Section 5: to be a worker, which others need, would not help here."""
    await database.execute(AUDITS)
    owner = await database.fetchval("SELECT quote_ident(current_user)")
    stranger = Login.NOBODY.role
    async with Runner(login(Login.NOBODY)) as app:
        with pytest.raises(ConfigurationError) as refused:
            await app.attach("audits", kind="audit", words=WORDS, columns=COLUMNS)
    assert str(refused.value) == (
        f"{stranger} cannot act as {owner}, who owns the schema hybrid_runner: have somebody run"
        f" GRANT {owner} TO {stranger}, or attach as {owner}"
    )


async def test_an_owner_who_cannot_reach_his_table_is_refused(
    database: Connection, stranger: Connection
) -> None:
    """Section 5: which GRANT would help; rows would be late for ever otherwise."""
    owner = Login.NOBODY.role
    await database.execute(f"CREATE SCHEMA app; {AUDITS.replace('public.', 'app.')}")
    await database.execute(f"ALTER TABLE app.audits OWNER TO {owner}")
    said = await refusal(stranger, asked(trust_owner=True), for_script=True)
    assert f"{owner}, who owns app.audits, may not use its schema: run GRANT USAGE ON" in said
    await database.execute(f"GRANT USAGE ON SCHEMA app TO {owner}, {Login.WORKER.role}")
    await checked(stranger, asked(trust_owner=True), for_script=True)


async def test_a_script_can_be_asked_for_without_rights(
    database: Connection, login: Logins
) -> None:
    """`--sql` is for somebody else to run."""
    await database.execute(AUDITS)
    connection = await connect(login(Login.WORKER))
    async with connection.transaction():
        found = await check(connection, asked(), 1, for_script=True)
    assert found.source.table == "audits"
    await connection.close()


FORCED = "ALTER TABLE public.audits ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY"


async def test_rows_that_are_hidden_from_the_owner_are_refused(
    database: Connection, stranger: Connection
) -> None:
    """Section 1: with FORCE the owner's functions see 0 rows, silently."""
    owner = Login.NOBODY.role
    await database.execute(f"{AUDITS}; ALTER TABLE public.audits OWNER TO {owner}; {FORCED}")
    definition = asked(trust_owner=True)
    said = await refusal(stranger, definition, for_script=True)
    statement = f"CREATE POLICY hybrid_runner ON public.audits TO {owner} USING (true)"
    assert statement in said
    await database.execute(statement)
    await checked(stranger, definition, for_script=True)


@pytest.mark.parametrize(
    "policies",
    [
        "CREATE POLICY one ON public.audits FOR SELECT USING (true)",
        "CREATE POLICY one ON public.audits USING (status = 'pending')",
        "CREATE POLICY one ON public.audits USING (true) WITH CHECK (status = 'pending')",
        "CREATE POLICY one ON public.audits TO pg_monitor USING (true)",
        (
            "CREATE POLICY one ON public.audits USING (true);"
            " CREATE POLICY two ON public.audits AS RESTRICTIVE USING (status = 'pending')"
        ),
    ],
)
async def test_a_policy_that_lets_the_owner_see_less_does_not_help(
    database: Connection, stranger: Connection, policies: str
) -> None:
    owner = Login.NOBODY.role
    await database.execute(f"{AUDITS}; ALTER TABLE public.audits OWNER TO {owner}; {FORCED}")
    await database.execute(policies)
    definition = asked(trust_owner=True)
    assert "FORCE ROW LEVEL SECURITY" in await refusal(stranger, definition, for_script=True)


async def test_row_security_that_is_not_forced_hides_nothing(
    database: Connection, stranger: Connection
) -> None:
    owner = Login.NOBODY.role
    await database.execute(
        f"{AUDITS}; ALTER TABLE public.audits OWNER TO {owner};"
        " ALTER TABLE public.audits ENABLE ROW LEVEL SECURITY"
    )
    await checked(stranger, asked(trust_owner=True), for_script=True)


async def test_a_refusal_is_one_line_whatever_it_quotes(database: Connection) -> None:
    """Every role is hostile: a name may end a line, or move a terminal's cursor."""
    await database.execute('CREATE TABLE public."au\ndits\x1b[31m" (id int, status text)')
    said = await refusal(database, asked(table='"au\ndits\x1b[31m"'))
    assert said.startswith('public."au dits\ufffd[31m" has no primary key')
    constraint = " OR ".join(f"status = 'word number {n}'" for n in range(200))
    await database.execute(f"{AUDITS}; ALTER TABLE public.audits ADD CHECK ({constraint})")
    async with database.transaction():
        with pytest.raises(ConfigurationError) as refused:
            await check(database, asked(), 1)
    assert len(str(refused.value)) == 1000
    assert "choose another word, or change the constraint" in str(refused.value)


async def test_a_trigger_that_waits_for_the_end_of_the_transaction_is_refused(
    database: Connection,
) -> None:
    """It would run as the worker commits, with its rights, and undo the ends of other jobs."""
    await database.execute(
        AUDITS + ";CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN END';"
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON public.audits DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION public.f()"
    )
    assert "the trigger late of public.audits is INITIALLY DEFERRED" in await refusal(
        database, asked()
    )
    await database.execute(
        "DROP TRIGGER late ON public.audits;"
        "CREATE CONSTRAINT TRIGGER late AFTER UPDATE ON public.audits DEFERRABLE"
        " INITIALLY IMMEDIATE FOR EACH ROW EXECUTE FUNCTION public.f()"
    )
    await checked(database, asked())
