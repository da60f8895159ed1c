"""Enqueue in your own psycopg transaction: the order and its job are committed together, or neither is."""

import os

import psycopg
from psycopg.types.json import Jsonb


class CardRefused(Exception):
    pass


def place_order(connection: psycopg.Connection, number: int, *, refused: bool = False) -> int:
    with connection.transaction():
        connection.execute("INSERT INTO orders (number) VALUES (%s)", (number,))
        [job_id] = connection.execute(
            "SELECT hybrid_runner.enqueue('receipt', %s, key => %s)", (Jsonb({"order": number}), f"receipt:{number}")
        ).fetchone()
        if refused:
            raise CardRefused
        return job_id


def main() -> None:
    with psycopg.connect(os.environ["HYBRID_RUNNER_DSN"], autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (number integer PRIMARY KEY)")
        print(f"order 1 has job {place_order(connection, 1)}")
        try:
            place_order(connection, 2, refused=True)
        except CardRefused:
            print("order 2 was rolled back, and its job with it")
        # enqueue_job() says what became of the key, as a column.
        print(connection.execute("SELECT id, outcome FROM hybrid_runner.enqueue_job('receipt', key => 'receipt:1')").fetchone())


if __name__ == "__main__":
    main()
