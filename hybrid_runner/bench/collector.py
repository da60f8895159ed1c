"""A trace collector that only counts bytes, so that the cost of tracing is the worker's alone."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hybrid_runner.bench.stopwatch import obey, run_fast, say


async def main() -> None:
    """Answer until stdin is closed."""
    taken = 0

    async def take(request: web.Request) -> web.Response:
        nonlocal taken
        taken += len(await request.read())
        return web.Response(content_type="application/x-protobuf")

    async def count(_: list[str]) -> dict[str, Any]:
        return {"bytes": taken}

    application = web.Application(client_max_size=2**27)
    application.router.add_post("/v1/traces", take)
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    say({"port": runner.addresses[0][1]})
    await obey({"count": count})
    await runner.cleanup()


if __name__ == "__main__":
    run_fast(main)
