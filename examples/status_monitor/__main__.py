"""Everything in one process: a Postgres, forty fake services, a worker, and the shop that keeps the
list of its services. On a terminal until Ctrl-C; otherwise a line for each piece of news, for some
seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import sys
from collections.abc import Coroutine
from typing import Any

from examples.status_monitor.app import app, monitors, told
from examples.status_monitor.application import Shop, open_shop
from examples.status_monitor.fake.journal import Journal
from examples.status_monitor.fake.server import FakeServices
from examples.status_monitor.services import SERVICES, fakes
from examples.status_monitor.view import Seen, screen
from hybrid_runner import RunnerError
from hybrid_runner.worker.signals import stop_on_signals

SECONDS = 30.0
"""How long it goes on where nobody is there to end it."""
_CLEAR, _HOME, _REST_OF_LINE, _REST = "\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"


async def show(shop: Shop, seen: Seen) -> None:
    """The whole screen, again and again."""
    print(_CLEAR, end="")
    while True:
        for event in await shop.new_events():
            seen.take(event)
        size = shutil.get_terminal_size()
        lines = screen(
            await shop.states(), seen, shop.edits, len(told), size.columns, size.lines - 1
        )
        print(_HOME + (_REST_OF_LINE + "\n").join(lines) + _REST_OF_LINE + _REST, flush=True)
        await asyncio.sleep(0.5)


async def tell(shop: Shop, seen: Seen) -> None:
    """A line for each piece of news."""
    edits = 0
    while True:
        for event in await shop.new_events():
            if words := seen.take(event):
                print(words, flush=True)
        for words in shop.edits[edits:]:
            print(f"the shop: {words}", flush=True)
        edits = len(shop.edits)
        await asyncio.sleep(0.2)


def summary(seen: Seen, journal: Journal) -> list[str]:
    failed = ", ".join(name for name, _ in seen.failed.most_common(5))
    return [
        "",
        f"requests that the services saw      {len(journal.visits):,}",
        f"most at a time for one host         {journal.most_at_host()}",
        f"most at a time for one address      {journal.most_at_address()}",
        f"failed polls                        {seen.events['poll:error']:,}  (most: {failed})",
        f"changes of health                   {seen.events['status:change']:,}",
        f"of which the handler was told       {len(told):,}",
        f"breakers that opened                {seen.events['circuit:open']:,}",
    ]


async def main() -> None:
    seconds = float(os.environ.get("STATUS_MONITOR_SECONDS", SECONDS))
    on_terminal = sys.stdout.isatty()
    await app.migrate()
    await monitors.migrate()
    seen = Seen()
    # What ends last is the app, and with it the embedded Postgres.
    async with app, FakeServices(fakes()) as played, open_shop(app.dsn, played) as shop:
        await shop.skip_events()
        await shop.add_all()
        print(f"{len(SERVICES)} services, in hybrid_monitors.services", flush=True)
        async with app.worker({"monitors": 20, "monitors-events": 5}):
            stop = stop_on_signals()
            with contextlib.suppress(TimeoutError):
                async with (
                    _beside(show(shop, seen) if on_terminal else tell(shop, seen)),
                    _beside(_edits(app.dsn, played, shop)),
                    asyncio.timeout(None if on_terminal else seconds),
                ):
                    await stop.wait()
        print("\n".join(summary(seen, played.journal)), flush=True)


@contextlib.asynccontextmanager
async def _beside(work: Coroutine[Any, Any, None]) -> Any:
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def _edits(dsn: str, played: FakeServices, shown: Shop) -> None:
    """By a connection of its own."""
    async with open_shop(dsn, played) as shop:
        shop.edits = shown.edits
        await shop.edit_for_ever()


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    logging.getLogger("hybrid_runner").setLevel(logging.ERROR)
    try:
        asyncio.run(main())
    except RunnerError as error:
        sys.exit(f"status monitor: {error}")
