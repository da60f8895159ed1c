"""docs/security.md says who may do what, and a database agrees."""

from __future__ import annotations

import re

from hybrid_runner.storage.connections.connection import Connection
from tests.docs.blocks import ROOT
from tests.docs.security_page import PAGE, TABLES, tables

TEXT = PAGE.read_text(encoding="utf-8")


async def test_every_right_is_on_the_page_and_nobody_has_another(unchanged: Connection) -> None:
    [found] = TABLES.findall(TEXT)
    assert found == await tables(unchanged), "write it anew: python -m tests.docs.security_page"


async def test_every_function_that_runs_as_its_owner_is_for_a_named_role_alone(
    unchanged: Connection,
) -> None:
    """PUBLIC is every login of the server."""
    rows = await unchanged.fetch(
        "SELECT p.proname::text FROM pg_proc AS p WHERE p.pronamespace ="
        " 'hybrid_runner'::regnamespace AND (p.proacl IS NULL OR EXISTS (SELECT FROM"
        " aclexplode(p.proacl) AS a WHERE a.grantee = 0))"
    )
    assert [row[0] for row in rows] == []


def test_what_postgres_cannot_protect_is_taken_away_by_the_script_for_logins() -> None:
    [revoked] = re.findall(r"^REVOKE (.*) ON DATABASE", TEXT, re.MULTILINE)
    script = (ROOT / "deploy" / "roles.sql").read_text(encoding="utf-8")
    assert f"REVOKE {revoked} ON DATABASE %I FROM PUBLIC" in script


def test_how_to_report_is_said_where_people_look_for_it() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "docs/security.md" in page
    for other in ("README.md", "docs/README.md", "deploy/README.md", "docs/sql.md"):
        assert "security.md" in (ROOT / other).read_text(encoding="utf-8")
