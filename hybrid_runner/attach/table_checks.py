"""Which tables can be attached, and by whom: each refusal is one line that says what would help."""

from __future__ import annotations

from hybrid_runner.attach.identifiers import read_name, readable
from hybrid_runner.errors import ConfigurationError
from hybrid_runner.model.tables import FoundTable, Table, TableHead
from hybrid_runner.storage.connections.connection import Connection
from hybrid_runner.storage.table_calls import describe_schema, find_tables

_NOT_TABLES = {
    "v": "a view: attach the table that it reads",
    "m": "a materialized view: attach the table that it reads",
    "f": "a foreign table: attach it in the database where its rows are",
    "S": "a sequence, not a table",
}
_OF_POSTGRES = ("pg_catalog", "information_schema", "pg_toast")
_OURS = "hybrid_runner"


async def check_schema_rights(connection: Connection) -> None:
    """ConfigurationError if whoever asks cannot even look into the schema hybrid_runner."""
    schema = await describe_schema(connection)
    if schema is not None and not schema.is_reached:
        raise ConfigurationError(_cannot_act_as_runner(schema.role, schema.owner))


async def find_table(connection: Connection, text: str) -> FoundTable:
    """The one table that the name means."""
    schema, name = read_name(text)
    found = await find_tables(connection, schema, name)
    if not found and schema is None:
        found = await find_tables(connection, None, text)  # as somebody types `Audits`
    others = [table for table in found if table.schema != _OURS] or found  # there is a jobs of ours
    lasting = [table for table in others if not table.is_temporary] or others
    if not lasting:
        raise ConfigurationError(
            f"there is no table {text[:100]}: create it first, or name its schema"
        )
    if len(lasting) > 1:
        names = ", ".join(table.full_name for table in lasting)
        raise ConfigurationError(f"{text} may be {names}: say which")
    return lasting[0]


def check_table(head: TableHead) -> None:
    """ConfigurationError unless it is a table that can be a source."""
    name = head.full_name
    if head.schema in _OF_POSTGRES:
        raise ConfigurationError(f"{name} is Postgres' own: attach a table of an application")
    if head.schema == _OURS:
        raise ConfigurationError(
            f"{name} is in the schema hybrid_runner, which has no tables of an application: if it"
            f" is yours, run ALTER TABLE {name} SET SCHEMA public, and attach it there"
        )
    if head.kind in _NOT_TABLES:
        raise ConfigurationError(f"{name} is {_NOT_TABLES[head.kind]}")
    if head.persistence == "t":
        raise ConfigurationError(
            f"{name} is a temporary table, which no worker can see: attach one that lasts"
        )
    if head.is_partition:
        raise ConfigurationError(f"{name} is a partition: attach the table that it belongs to")
    if head.is_parent:
        raise ConfigurationError(
            f"other tables inherit from {name}, and their rows are not its own: attach each of"
            " those, or make it a partitioned table"
        )
    if head.has_rules:
        raise ConfigurationError(
            f"{name} has rules (CREATE RULE), which turn what is written into something else: use"
            " triggers instead, and DROP RULE"
        )


def check_triggers(table: Table) -> None:
    """ConfigurationError if what an update fires could undo the ends of other jobs."""
    for trigger in table.triggers:
        if trigger.is_deferred:
            raise ConfigurationError(
                f"the trigger {readable(trigger.name)} of {table.head.full_name} is INITIALLY"
                " DEFERRED: when it fails, it would undo whatever a worker wrote in the same"
                " transaction, so make it INITIALLY IMMEDIATE"
            )


def check_rights(head: TableHead, *, trust_owner: bool, for_script: bool) -> None:
    """ConfigurationError unless whoever asks may attach it; a script is run by somebody else."""
    name, owner, role = head.full_name, readable(head.owner), readable(head.role)
    runner = readable(head.runner_owner)
    if head.outranked_by_runner is not None:
        raise ConfigurationError(
            f"{readable(head.outranked_by_runner)} owns {name}, its schema or a partition of it,"
            f" and hybrid_runner belongs to {runner}, who is a superuser or can become one: have"
            " the schema migrated by a role that cannot (deploy/README.md), and attach as that"
        )
    if head.outranked_by_asker is not None:
        raise ConfigurationError(
            f"a superuser cannot attach {name}: {readable(head.outranked_by_asker)} owns it, its"
            f" schema or a partition of it; attach as {runner}, after GRANT {owner} TO {runner}, or"
            f" print it as {runner} with --sql"
        )
    if not (head.may_act_as_runner_owner or for_script):
        raise ConfigurationError(_cannot_act_as_runner(head.role, head.runner_owner))
    if not (head.may_act_as_owner or for_script):
        raise ConfigurationError(
            f"{role} cannot act as {owner}, who owns {name}: have somebody run GRANT {owner} TO"
            f" {role}, or attach as {owner}"
        )
    if not head.owner_reaches_it:
        schema = readable(head.schema)
        raise ConfigurationError(
            f"{owner}, who owns {name}, may not use its schema: run GRANT USAGE ON SCHEMA {schema}"
            f" TO {owner}"
        )
    if not head.owner_is_trusted and not trust_owner:
        raise ConfigurationError(
            f"{name} belongs to {owner}, not to {runner}: with --trust-owner that role is trusted"
            " like a worker, in whose sessions its triggers and functions run"
        )


def _cannot_act_as_runner(role: str, owner: str) -> str:
    role, owner = readable(role), readable(owner)
    return (
        f"{role} cannot act as {owner}, who owns the schema hybrid_runner: have somebody run GRANT"
        f" {owner} TO {role}, or attach as {owner}"
    )


def check_row_security(head: TableHead) -> None:
    """ConfigurationError if its owner would not see all rows."""
    if not head.owner_sees_all:
        owner = readable(head.owner)
        raise ConfigurationError(
            f"{head.full_name} has FORCE ROW LEVEL SECURITY, which hides rows from its owner, as"
            f" whom they are written: run CREATE POLICY hybrid_runner ON {head.full_name} TO"
            f" {owner} USING (true); restrictive policies must let {owner} see all too"
        )
