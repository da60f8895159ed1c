"""Fake services in a process of their own: `python -m examples.status_monitor.fake JOURNAL`.

Reads one line of JSON from stdin, a list of [name, script, host, number]; answers with a line, the
port. At every further line it writes down what is missing in the journal, and answers with a line.
It ends when stdin is closed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from examples.status_monitor.fake.journal import Journal
from examples.status_monitor.fake.server import FakeService, FakeServices


async def main() -> None:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    services = [FakeService(*said) for said in json.loads(await reader.readline())]
    with Path(sys.argv[1]).open("w", encoding="utf-8") as file:  # noqa: ASYNC230  # lines are short
        async with FakeServices(services, journal=Journal(file)) as fakes:
            print(fakes.port, flush=True)
            while await reader.readline():
                file.flush()
                print("written", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
