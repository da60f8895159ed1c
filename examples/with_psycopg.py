"""Enqueue in your own psycopg transaction: the order and its job are committed together, or neither
is.

Needs: pip install "psycopg[binary]", and HYBRID_RUNNER_DSN, a Postgres after `hybrid-runner
migrate`. It makes a table `orders`.
"""

import os
import sys

import psycopg
from psycopg.types.json import Jsonb


class CardRefused(Exception):
    pass


def place_order(connection: psycopg.Connection, *, refused: bool = False) -> tuple[int, int]:
    with connection.transaction():
        [number] = connection.execute(
            "INSERT INTO orders DEFAULT VALUES RETURNING number"
        ).fetchone()
        [job_id] = connection.execute(
            "SELECT hybrid_runner.enqueue('receipt', %s, key => %s)",
            (Jsonb({"order": number}), f"receipt:{number}"),
        ).fetchone()
        if refused:
            raise CardRefused(f"order {number}")
        return number, job_id


def main() -> None:
    dsn = os.environ.get("HYBRID_RUNNER_DSN")
    if not dsn:
        sys.exit("set HYBRID_RUNNER_DSN to a Postgres in which `hybrid-runner migrate` was run")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (number serial PRIMARY KEY)")
        number, job_id = place_order(connection)
        print(f"order {number} has job {job_id}")
        try:
            place_order(connection, refused=True)
        except CardRefused as refusal:
            print(f"{refusal} was rolled back, and its job with it")
        # enqueue_job() says what became of the key, as a column.
        again = "SELECT id, outcome FROM hybrid_runner.enqueue_job('receipt', key => %s)"
        print(connection.execute(again, (f"receipt:{number}",)).fetchone())


if __name__ == "__main__":
    main()
