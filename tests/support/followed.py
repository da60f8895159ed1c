"""Ends that store jobs, without a handler that does it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from hybrid_runner.storage.connections.connection import Connection

_TRIGGER = """
CREATE FUNCTION public.stored_by_its_end() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.followed_by := ARRAY(
        SELECT e::bigint FROM jsonb_array_elements_text('{ends}'::jsonb -> NEW.id::text) AS e);
    RETURN NEW;
END
$$;
CREATE TRIGGER stored_by_its_end BEFORE INSERT ON hybrid_runner.archive
    FOR EACH ROW WHEN (NEW.id IN ({ids})) EXECUTE FUNCTION public.stored_by_its_end();
"""


async def stored_by_its_end(database: Connection, ends: Mapping[int, Sequence[int]]) -> None:
    """Whenever one of these jobs ends, the jobs beside it count as stored by that."""
    await database.execute(
        _TRIGGER.replace("{ends}", json.dumps(ends)).replace("{ids}", ", ".join(map(str, ends)))
    )
