"""Everything in one process: a Postgres, the table, a worker of two slots, and a form that asks for
four audits. Shows each change of a row until Ctrl-C.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from typing import Any

from examples.audits.app import QUEUE, app, attach
from examples.audits.form import Form, create_table
from hybrid_runner import RunnerError
from hybrid_runner.worker.signals import stop_on_signals

ASKED = (
    ("ada@example.com", "https://shop.example"),
    ("grace@customer.example", "https://museum.example"),
    ("edsger@example.com", "https://nowhere.example"),
    ("barbara@example.com", "https://down.example"),
)


def line(row: dict[str, Any]) -> str:
    said = row["raw_data"] or ""
    if row["status"] == "failed":
        said = "; ".join(error["message"] for error in json.loads(row["errors"]))
    worker = row["processing_worker_id"] or ""
    tries = row["retry_count"] or 0
    return f"{row['website_url']:26} {row['status']:11} tries {tries}  {worker:24} {said}".rstrip()


async def show(form: Form) -> None:
    """Each line that is new."""
    shown: dict[Any, str] = {}
    while True:
        for row in await form.audits():
            if shown.get(row["id"]) != line(row):
                shown[row["id"]] = line(row)
                print(shown[row["id"]], flush=True)
        await asyncio.sleep(0.2)


async def main() -> None:
    await app.migrate()
    await create_table(app.dsn)
    await attach()
    async with app, app.worker({QUEUE: 2}):
        form = await Form.open(app.dsn)
        try:
            for email, url in ASKED:
                await form.ask(email, url)
            showing = asyncio.create_task(show(form))
            await stop_on_signals().wait()
            showing.cancel()
            await asyncio.wait([showing])
        finally:
            await form.close()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("hybrid_runner.worker").setLevel(logging.CRITICAL)  # the rows say it
    try:
        asyncio.run(main())
    except RunnerError as error:
        sys.exit(f"audits: {error}")
