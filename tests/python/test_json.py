"""JSON columns: values come back equal, other values are refused, and no stack overflows."""

from __future__ import annotations

import enum
import json
import random
import sys
from collections import OrderedDict, defaultdict
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from townsquare import Client, InvalidInputError, Space


@pytest.fixture
def space(service: Client) -> Space:
    return service.spaces.create_space("Harbor")


def round_trip(service: Client, space: Space, value: Any) -> Any:
    fidget = service.fidgets.create_fidget(space.id, "x", config=value)
    assert fidget.config == value
    return service.fidgets.get_fidget(fidget.id).config


def nested(depth: int, kind: type) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value] if kind is list else {"a": value}
    return value


VALUES: list[Any] = [
    True, False, 0, -0.0, 1, -1, 0.1, 1e308, 5e-324, 1.5, 5.0, 1e16, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1, 2**63,
    "", "text", "a\u2028b", "🏙️", "\x01\x7f", "\"\\/", [], {}, [None], {"": None}, [[[]]], {"a": {"b": [1, "2", 3.0, None, True]}},
    {"__proto__": 1, "key with space": [{}]}, list(range(1000)), {str(n): n for n in range(1000)}, "x" * 200_000,
    1.7976931348623157e308, 2.2250738585072014e-308, 0.30000000000000004, 123456789.12345679,
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_a_value_comes_back_with_its_value_and_type(service: Client, space: Space, value: Any) -> None:
    back = round_trip(service, space, value)
    assert back == value and type(back) is type(value) and json.dumps(back, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_ten_thousand_random_numbers_come_back_exactly(service: Client, space: Space) -> None:
    chance = random.Random(7)
    numbers = [chance.uniform(-1, 1) * 10.0 ** chance.randint(-300, 300) for _ in range(10_000)]
    numbers += [chance.randint(-(2**63), 2**64 - 1) for _ in range(1000)]
    # A number counts with all its digits: 1,000 of these take 160 KB.
    for start in range(0, len(numbers), 1000):
        some = numbers[start : start + 1000]
        assert round_trip(service, space, some) == some


def test_none_is_sql_null_and_none_within_is_json_null(service: Client, space: Space) -> None:
    assert round_trip(service, space, None) is None
    assert round_trip(service, space, [None, {"a": None}]) == [None, {"a": None}]


def test_subclasses_of_json_types_are_stored_as_json_types(service: Client, space: Space) -> None:
    class Colour(enum.IntEnum):
        RED = 3

    class Loud(str):
        def __str__(self) -> str:
            raise RuntimeError("never called")

    class Odd(float):
        def __float__(self) -> float:
            raise RuntimeError("never called")

    value = OrderedDict(a=Colour.RED, b=defaultdict(list, c=[Loud("d")]), e=Odd(1.5), f=True)
    back = round_trip(service, space, value)
    assert back == {"a": 3, "b": {"c": ["d"]}, "e": 1.5, "f": True}
    assert type(back["a"]) is int and type(back["f"]) is bool and type(back) is dict and type(back["b"]["c"][0]) is str


@pytest.mark.parametrize("kind", [list, dict])
def test_json_may_be_nested_one_hundred_deep(service: Client, space: Space, kind: type) -> None:
    assert round_trip(service, space, nested(100, kind)) == nested(100, kind)
    limit = sys.getrecursionlimit()
    for depth in (101, 1_000, 100_000):
        deep = nested(depth, kind)
        with pytest.raises(InvalidInputError, match="^Create fidget failed: config is JSON nested deeper than 100$"):
            service.fidgets.create_fidget(space.id, "x", config=deep)
        while depth > 0:  # some Pythons free a nested value by recursion and overflow the stack
            deep, depth = (deep[0] if kind is list else deep["a"]), depth - 1
    assert sys.getrecursionlimit() == limit


def test_a_value_that_holds_itself_is_refused(service: Client, space: Space) -> None:
    ring: list[Any] = []
    ring += [ring, ring]
    loop: dict[str, Any] = {}
    loop.update(a=loop, b=loop)
    for value in (ring, loop, {"a": [ring]}):
        with pytest.raises(InvalidInputError, match="deeper than 100"):
            service.fidgets.create_fidget(space.id, "x", position=value)
    wide: Any = []
    for _ in range(60):
        wide = [wide, wide]
    with pytest.raises(InvalidInputError, match="config is JSON of more than 4000000 values"):
        service.fidgets.create_fidget(space.id, "x", config=wide)


class Nasty:
    def __repr__(self) -> str:
        raise RuntimeError("never called")

    def __iter__(self) -> Any:
        raise RuntimeError("never called")

    __str__ = __index__ = __float__ = __len__ = __iter__


@pytest.mark.parametrize(
    "value, complaint",
    [
        (float("nan"), "has a number that is not finite"),
        (float("inf"), "has a number that is not finite"),
        (-float("inf"), "has a number that is not finite"),
        (2**64, "has an integer of more than 64 bits"),
        (-(2**63) - 1, "has an integer of more than 64 bits"),
        (10**5000, "has an integer of more than 64 bits"),
        ({1: 2}, "has a key that is not text but int"),
        ({None: 2}, "has a key that is not text but NoneType"),
        ({b"a": 2}, "has a key that is not text but bytes"),
        ({"a\0": 1}, "contains a NUL character"),
        ("\0", "contains a NUL character"),
        ("\ud83d", "has text with half a surrogate pair"),
        ({"\udc00": 1}, "has text with half a surrogate pair"),
        (b"bytes", "has a value that JSON does not know: bytes"),
        ({1, 2}, "has a value that JSON does not know: set"),
        (1j, "has a value that JSON does not know: complex"),
        (Decimal("1.5"), "has a value that JSON does not know: Decimal"),
        (datetime(2024, 1, 1), "has a value that JSON does not know: datetime"),
        (object, "has a value that JSON does not know: type"),
        (..., "has a value that JSON does not know: ellipsis"),
        (Nasty(), "has a value that JSON does not know: Nasty"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_not_json_is_an_invalid_input(service: Client, space: Space, value: Any, complaint: str) -> None:
    for within in (value, [value], {"a": [1, {"b": value}]}):
        for name in ("config", "position"):
            column: dict[str, Any] = {name: within}
            with pytest.raises(InvalidInputError) as caught:
                service.fidgets.create_fidget(space.id, "x", **column)
            assert str(caught.value).startswith(f"Create fidget failed: {name} {complaint}")
            assert (caught.value.operation, caught.value.kind) == ("create_fidget", "invalid_input")
    assert service.fidgets.get_space_fidgets(space.id) == []
