"""Types that a payload or a result may have, with values of each: what pydantic can do to a field,
alone and within each other.
"""

from __future__ import annotations

import dataclasses
import enum
import ipaddress
import math
import re
import uuid
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from zoneinfo import ZoneInfo

from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    Field,
    Json,
    PlainSerializer,
    PrivateAttr,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    computed_field,
    create_model,
    field_serializer,
    field_validator,
    model_serializer,
)
from pydantic.alias_generators import to_camel
from pydantic.dataclasses import dataclass as pydantic_dataclass
from typing_extensions import TypedDict

T = TypeVar("T")
BERLIN = ZoneInfo("Europe/Berlin")


class Colour(enum.Enum):
    RED = "red"
    DEEP = 3


class Level(enum.IntEnum):
    LOW = 1


class Word(enum.StrEnum):
    A = "a"


class Plain(BaseModel):
    url: str
    width: int = 320


class Wider(Plain):
    height: int = 1


class Numbers(BaseModel):
    x: float
    y: float | None = None


class Aliased(BaseModel):
    order_id: int = Field(alias="orderId")


class ReadByAlias(BaseModel):
    order_id: int = Field(validation_alias="orderId")


class WrittenByAlias(BaseModel):
    order_id: int = Field(serialization_alias="orderId")


class WrittenOtherwise(BaseModel):
    order_id: int = Field(validation_alias="orderId", serialization_alias="id")


class WrittenOtherwiseIfAtAll(BaseModel):
    order_id: int | None = Field(None, validation_alias="orderId", serialization_alias="id")


class EitherName(BaseModel):
    model_config = ConfigDict(populate_by_name=True)
    order_id: int = Field(validation_alias="orderId", serialization_alias="id")


class Choices(BaseModel):
    order_id: int = Field(validation_alias=AliasChoices("a", AliasPath("b", 0)))


class Deep(BaseModel):
    order_id: int = Field(validation_alias=AliasPath("orders", 0))


class Swapped(BaseModel):
    a: int = Field(0, alias="b")
    b: int = Field(0, alias="a")


class Camel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid")
    order_id: int
    of_customer: Aliased


class Computed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    width: int

    @computed_field  # type: ignore[prop-decorator]  # as pydantic's own documentation writes it
    @property
    def area(self) -> int:
        return self.width**2


class Excluded(BaseModel):
    name: str
    token: str = Field("", exclude=True)


class ExcludedRequired(BaseModel):
    token: str = Field(exclude=True)


class WithJson(BaseModel):
    settings: Json[Any]
    counts: Json[dict[str, int]]


class WithSecret(BaseModel):
    password: SecretStr


class WithOpenSecret(BaseModel):
    password: SecretStr

    @field_serializer("password")
    def open(self, value: SecretStr) -> str:
        return value.get_secret_value()


class Forbidding(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    a: int


class Allowing(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: int


class BytesAsBase64(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    raw: bytes


class BytesHalfAsBase64(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")
    raw: bytes


class NanAsText(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    x: float
    y: int | None = None


class NanAsConstant(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")
    x: float
    y: int | None = None


class Seconds(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")
    span: timedelta


class EnumValues(BaseModel):
    model_config = ConfigDict(use_enum_values=True)
    colour: Colour


class WholeHidden(BaseModel):
    a: int

    @model_serializer
    def write(self) -> str:
        return "hidden"


class Halved(BaseModel):
    a: int

    @field_serializer("a")
    def write(self, value: int) -> int:
        return value // 2


class Changing(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def one_more(cls, value: int) -> int:
        return value + 1


class Lower(BaseModel):
    a: str

    @field_validator("a")
    @classmethod
    def lower(cls, value: str) -> str:
        return value.lower()


class Private(BaseModel):
    a: int
    _seen: list[int] = PrivateAttr(default_factory=list)


class Root(RootModel[list[int]]):
    pass


class Box(BaseModel, Generic[T]):
    inside: T


class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    name: str


class Loose(BaseModel):
    lives: Any = None


class Tree(BaseModel):
    value: int
    below: list[Tree] = []


@dataclass
class Area:
    width: int
    height: float = 1.0


@dataclass(eq=False)
class NeverEqual:
    width: int

    def __repr__(self) -> str:
        return f"NeverEqual({self.width})"


@dataclass(frozen=True, slots=True)
class Slotted:
    at: datetime
    tags: frozenset[str] = frozenset()


@dataclass
class OnlyForInit:
    width: int
    factor: dataclasses.InitVar[int]


@dataclass
class NotForInit:
    width: int
    twice: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.twice = 2 * self.width


@dataclass
class ChangedOnTheWay:
    width: int

    def __post_init__(self) -> None:
        self.width += 1


@pydantic_dataclass
class AliasedArea:
    width: int = Field(alias="Width")


@pydantic_dataclass
class AreaReadByAlias:
    width: int = Field(validation_alias="Width")


class Named(TypedDict):
    name: str
    size: NotRequired[int]


class Point(NamedTuple):
    x: int
    y: str = "y"


Pet = Annotated[Cat | Dog, Field(discriminator="kind")]
Masked = Annotated[str, PlainSerializer(lambda _: "***")]


def _mutated(value: Any, **changes: Any) -> Any:
    for name, change in changes.items():
        setattr(value, name, change)
    return value


SCALARS: list[tuple[Any, list[Any]]] = [
    (int, [0, -1, 2**63, 2**64, -(2**200)]),
    (bool, [True, False]),
    (None, [None]),
    (str, ["", "é\u202e\n\x1b[2J", "null", '"\\u0000"', "\x00", "\ud800", "**********"]),
    (float, [0.5, -0.0, 1e300, 5e-324, 1e22, math.nan, math.inf, -math.inf]),
    (Decimal, [Decimal("1.10"), Decimal("1E+400"), Decimal("-0"), Decimal(2) ** 100]),
    (bytes, [b"", b"ab", b"\xff"]),
    (
        datetime,
        [
            datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
            datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN),
            datetime(2026, 10, 25, 2, 30, tzinfo=BERLIN, fold=1),
            datetime(2026, 1, 2, 3, 4),  # noqa: DTZ001  # a user's may have no zone
            datetime(1890, 1, 1, tzinfo=ZoneInfo("Europe/Amsterdam")),
            datetime.max.replace(tzinfo=UTC),
        ],
    ),
    (date, [date(2026, 1, 2), date.min]),
    (time, [time(1, 2, 3, 4), time(1, 2, tzinfo=UTC)]),
    (timedelta, [timedelta(0), timedelta(days=400, microseconds=1), -timedelta(seconds=1.5)]),
    (uuid.UUID, [uuid.UUID(int=7)]),
    (Path, [Path("a/b"), Path("/")]),
    (Colour, list(Colour)),
    (Level, [Level.LOW]),
    (Word, [Word.A]),
    (Literal["a", 1], ["a", 1]),
    (ipaddress.IPv4Address, [ipaddress.IPv4Address("10.0.0.1")]),
    (re.Pattern, [re.compile("a+")]),
    (complex, [1 + 2j]),
    (Annotated[int, Field(ge=0)], [0, 3]),
    (Masked, ["a", "***"]),
]
UNIONS: list[tuple[Any, list[Any]]] = [
    (bytes | str, [b"ab", "ab"]),
    (datetime | str, [datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00Z", "x"]),
    (int | float, [1, 1.0, 0.5, math.nan]),
    (float | None, [None, 1.5, math.nan]),
    (Decimal | float, [Decimal("1.5"), 1.5]),
    (Decimal | str, [Decimal("1.5"), "1.5", "x"]),
    (uuid.UUID | str, [uuid.UUID(int=7), str(uuid.UUID(int=7)), "x"]),
    (Word | str, [Word.A, "a", "b"]),
    (tuple[int, ...] | list[int], [(1,), [1]]),
    (Cat | Dog, [Cat(lives=9), Dog(name="Rex")]),
    (Pet, [Cat(lives=9), Dog(name="Rex")]),
    (Loose | Cat, [Cat(lives=9), Loose(lives=9)]),
]
CONTAINERS: list[tuple[Any, list[Any]]] = [
    (list[int], [[], [1, 2]]),
    (set[Decimal], [{Decimal("1.10")}]),
    (frozenset[str], [frozenset({"a", "b"})]),
    (tuple[int, Path], [(1, Path("a"))]),
    (deque[int], [deque([1, 2])]),
    (dict[str, Any], [{}, {"a": [1, None, {"b": 0.5}]}, {"a": (1, 2)}, {"a": math.nan}]),
    (dict[str, Any], [{"at": datetime(2026, 1, 2, tzinfo=UTC)}, {"p": Plain(url="u")}]),
    (dict[str, Any], [{"p": WithSecret(password=SecretStr("a"))}, {"p": Numbers(x=math.nan)}]),
    (dict[int, str], [{1: "a"}]),
    (dict[date, int], [{date(2026, 1, 2): 1}]),
    (dict[str, float], [{"a": 1.0}, {"a": math.inf}]),
    (Named, [{"name": "a"}, {"name": "a", "size": 1}]),
    (Point, [Point(1), Point(1, "z")]),
]
MODELS: list[tuple[Any, list[Any]]] = [
    (Plain, [Plain(url="a"), Wider(url="a", height=2), {"url": "a"}]),
    (Plain, [_mutated(Plain(url="a"), width="wide"), Plain.model_construct(width=1)]),
    (Numbers, [Numbers(x=1), Numbers(x=math.nan), Numbers(x=1, y=math.inf)]),
    (Aliased, [Aliased(orderId=3), {"orderId": 3}]),
    (ReadByAlias, [ReadByAlias.model_validate({"orderId": 3})]),
    (WrittenByAlias, [WrittenByAlias(order_id=3)]),
    (WrittenOtherwise, [WrittenOtherwise.model_validate({"orderId": 3})]),
    (WrittenOtherwiseIfAtAll, [{}, {"orderId": 3}]),
    (EitherName, [EitherName(order_id=3)]),
    (Choices, [{"a": 3}, {"b": [3]}]),
    (Deep, [{"orders": [3]}]),
    (Swapped, [Swapped(a=1, b=2), {"a": 1}, {"b": 1}]),
    (Camel, [Camel(order_id=1, of_customer=Aliased(orderId=3))]),
    (Computed, [Computed(width=3)]),
    (Excluded, [Excluded(name="a", token=""), Excluded(name="a", token="t")]),
    (ExcludedRequired, [ExcludedRequired(token="t")]),
    (WithJson, [{"settings": '{"a": 1}', "counts": '{"a": 1}'}, {"settings": "1", "counts": "{}"}]),
    (WithSecret, [WithSecret(password=SecretStr("a"))]),
    (WithOpenSecret, [WithOpenSecret(password=SecretStr("a"))]),
    (SecretStr, [SecretStr("a")]),
    (SecretBytes, [SecretBytes(b"a")]),
    (Secret[int], [Secret(1)]),
    (Forbidding, [Forbidding(a=1)]),
    (Allowing, [Allowing(a=1), {"a": 1, "b": (1, 2)}, {"a": 1, "b": math.nan}]),
    (BytesAsBase64, [BytesAsBase64(raw=b"\xff")]),
    (BytesHalfAsBase64, [BytesHalfAsBase64(raw=b"ab")]),
    (NanAsText, [NanAsText(x=math.nan), NanAsText(x=math.inf)]),
    (NanAsConstant, [NanAsConstant(x=1), NanAsConstant(x=math.nan)]),
    (Seconds, [Seconds(span=timedelta(days=1, microseconds=1))]),
    (EnumValues, [EnumValues(colour=Colour.RED)]),
    (WholeHidden, [WholeHidden(a=1)]),
    (Halved, [Halved(a=3), Halved(a=0)]),
    (Changing, [Changing(a=3)]),
    (Lower, [Lower(a="AB")]),
    (Private, [Private(a=1)]),
    (Root, [Root([1, 2])]),
    (Box[int], [Box[int](inside=1)]),
    (Box[Aliased], [Box[Aliased](inside=Aliased(orderId=3))]),
    (Tree, [Tree(value=1, below=[Tree(value=2)])]),
    (Area, [Area(1, 2.5), Area(1, math.nan), Area("x", 1)]),  # type: ignore[arg-type]  # the fault
    (NeverEqual, [NeverEqual(3)]),
    (Slotted, [Slotted(datetime(2026, 1, 2, tzinfo=UTC), frozenset({"a"}))]),
    (OnlyForInit, [OnlyForInit(1, 2)]),
    (NotForInit, [NotForInit(2)]),
    (ChangedOnTheWay, [ChangedOnTheWay(1)]),
    (AliasedArea, [AliasedArea(Width=3)]),
    (AreaReadByAlias, [{"Width": 3}]),
]
ALONE = [*SCALARS, *UNIONS, *CONTAINERS, *MODELS]


def everywhere() -> Iterator[tuple[str, Any, Any]]:
    """Each type with each of its values, alone and within others, under a name for the test."""
    for at, (kind, values) in enumerate(ALONE):
        model = create_model(f"Holder{at}", part=(kind, ...))
        held = dataclasses.make_dataclass(f"Held{at}", [("part", kind)])
        for number, value in enumerate(values):
            name = f"{getattr(kind, '__name__', kind)}[{number}]"
            yield name, kind, value
            yield f"list of {name}", list[kind], [value]  # type: ignore[valid-type]
            yield f"dict of {name}", dict[str, kind], {"a": value}  # type: ignore[valid-type]
            yield f"optional {name}", kind | None if kind else kind, value
            yield f"model with {name}", model, {"part": value}
            yield f"dataclass with {name}", held, {"part": value}
            yield f"box of {name}", Box[kind], {"inside": value}  # type: ignore[valid-type]
