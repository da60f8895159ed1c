"""Enqueue in your own SQLAlchemy transaction, with Core and with a Session."""

import os

from sqlalchemy import JSON, Connection, Engine, bindparam, create_engine, func, insert, make_url, select, text, type_coerce
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

ENQUEUE = text("SELECT hybrid_runner.enqueue('receipt', CAST(:payload AS jsonb), key => :key)").bindparams(
    bindparam("payload", type_=JSON)
)


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)


class CardRefused(Exception):
    pass


def place_order_with_core(connection: Connection, number: int) -> int:
    connection.execute(insert(Order).values(number=number))
    return connection.execute(ENQUEUE, {"payload": {"order": number}, "key": f"receipt:{number}"}).scalar_one()


def place_order_with_a_session(session: Session, number: int) -> int:
    session.add(Order(number=number))
    return session.scalar(select(func.hybrid_runner.enqueue("receipt", type_coerce({"order": number}, JSONB))))


def refuse_order(engine: Engine, number: int) -> None:
    with Session(engine) as session, session.begin():
        place_order_with_a_session(session, number)
        raise CardRefused


def main() -> None:
    # Any driver does; psycopg is the one installed here.
    engine = create_engine(make_url(os.environ["HYBRID_RUNNER_DSN"]).set(drivername="postgresql+psycopg"))
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        print(f"order 1 has job {place_order_with_core(connection, 1)}")
    with Session(engine) as session, session.begin():
        print(f"order 2 has job {place_order_with_a_session(session, 2)}")
    try:
        refuse_order(engine, 3)
    except CardRefused:
        print("order 3 was rolled back, and its job with it")
    engine.dispose()


if __name__ == "__main__":
    main()
