"""Enqueue in your own asyncpg transaction: the order and its job are committed together, or neither
is.

Needs: nothing but hybrid-runner[embedded]; or HYBRID_RUNNER_DSN, a Postgres of yours. It makes a
table `orders`.
"""

import asyncio

import asyncpg

from hybrid_runner import Runner

app = Runner()  # HYBRID_RUNNER_DSN; without it an embedded Postgres


class CardRefused(Exception):
    pass


async def place_order(connection: asyncpg.Connection, *, refused: bool = False) -> tuple[int, int]:
    async with connection.transaction():
        number = await connection.fetchval("INSERT INTO orders DEFAULT VALUES RETURNING number")
        handle = await app.enqueue(
            "receipt", {"order": number}, key=f"receipt:{number}", connection=connection
        )
        if refused:
            raise CardRefused(f"order {number}")
        return number, handle.id


async def main() -> None:
    await app.migrate()
    async with app:
        connection = await asyncpg.connect(app.dsn)
        try:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS orders (number serial PRIMARY KEY)"
            )
            number, job_id = await place_order(connection)
            print(f"order {number} has job {job_id}")
            try:
                await place_order(connection, refused=True)
            except CardRefused as refusal:
                print(f"{refusal} was rolled back, and its job with it")
        finally:
            await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
