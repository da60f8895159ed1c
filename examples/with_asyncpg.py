"""Enqueue in your own asyncpg transaction: the order and its job are committed together, or neither is."""

import asyncio
import os

import asyncpg

from hybrid_runner import Runner

app = Runner()


class CardRefused(Exception):
    pass


async def place_order(connection: asyncpg.Connection, number: int, *, refused: bool = False) -> int:
    async with connection.transaction():
        await connection.execute("INSERT INTO orders (number) VALUES ($1)", number)
        handle = await app.enqueue("receipt", {"order": number}, key=f"receipt:{number}", connection=connection)
        if refused:
            raise CardRefused
        return handle.id


async def main() -> None:
    connection = await asyncpg.connect(os.environ["HYBRID_RUNNER_DSN"])
    try:
        await connection.execute("CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY)")
        print(f"order 1 has job {await place_order(connection, 1)}")
        try:
            await place_order(connection, 2, refused=True)
        except CardRefused:
            print("order 2 was rolled back, and its job with it")
    finally:
        await connection.close()


if __name__ == "__main__":
    asyncio.run(main())
