"""Enqueue in your own SQLAlchemy transaction, with Core and with a Session.

Needs: pip install sqlalchemy "psycopg[binary]", and HYBRID_RUNNER_DSN, a Postgres after
`hybrid-runner migrate`. It makes a
table `orders`.
"""

import os
import sys

from sqlalchemy import (
    JSON,
    Connection,
    Engine,
    bindparam,
    create_engine,
    func,
    insert,
    make_url,
    select,
    text,
    type_coerce,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

ENQUEUE = text(
    "SELECT hybrid_runner.enqueue('receipt', CAST(:payload AS jsonb), key => :key)"
).bindparams(bindparam("payload", type_=JSON))


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True)


class CardRefused(Exception):
    pass


def place_order_with_core(connection: Connection) -> tuple[int, int]:
    number = connection.execute(insert(Order).returning(Order.number)).scalar_one()
    job_id = connection.execute(
        ENQUEUE, {"payload": {"order": number}, "key": f"receipt:{number}"}
    ).scalar_one()
    return number, job_id


def place_order_with_a_session(session: Session) -> tuple[int, int]:
    session.add(order := Order())
    session.flush()  # the order has its number now
    payload = type_coerce({"order": order.number}, JSONB)
    return order.number, session.scalar(select(func.hybrid_runner.enqueue("receipt", payload)))


def refuse_order(engine: Engine) -> None:
    with Session(engine) as session, session.begin():
        number, _ = place_order_with_a_session(session)
        raise CardRefused(f"order {number}")


def main() -> None:
    dsn = os.environ.get("HYBRID_RUNNER_DSN")
    if not dsn:
        sys.exit("set HYBRID_RUNNER_DSN to a Postgres in which `hybrid-runner migrate` was run")
    # Any driver does; psycopg is the one installed here.
    engine = create_engine(make_url(dsn).set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        print("order {} has job {}".format(*place_order_with_core(connection)))
    with Session(engine) as session, session.begin():
        print("order {} has job {}".format(*place_order_with_a_session(session)))
    try:
        refuse_order(engine)
    except CardRefused as refusal:
        print(f"{refusal} was rolled back, and its job with it")
    engine.dispose()


if __name__ == "__main__":
    main()
