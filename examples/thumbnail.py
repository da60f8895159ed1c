"""The whole path in one process: a handler, a worker, a job and its result. Run it: python
examples/thumbnail.py

Needs: nothing but hybrid-runner[embedded]; or HYBRID_RUNNER_DSN, a Postgres of yours.
"""

import asyncio

from pydantic import BaseModel

from hybrid_runner import Job, Runner

app = Runner()  # HYBRID_RUNNER_DSN; without it an embedded Postgres


class Thumbnail(BaseModel):
    url: str
    width: int = 320


@app.job("thumbnail", queue="images", max_attempts=5, timeout=30)
async def thumbnail(payload: Thumbnail, job: Job) -> dict[str, int]:
    await job.progress(0.5, "resizing")
    return {"bytes": payload.width * payload.width * 3}


async def main() -> None:
    await app.migrate()
    async with app, app.worker({"images": 10}):
        handle = await app.enqueue(
            thumbnail, Thumbnail(url="https://example.com/cat.jpg"), key="thumb:42", priority=3
        )
        print(f"job {handle.id} is {handle.enqueued}")
        print(await handle.wait(timeout=10))


if __name__ == "__main__":
    asyncio.run(main())
