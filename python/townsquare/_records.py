"""What makes Python see records as dataclasses: their fields, a schema for pydantic, and JSON.

Invariant: the extension module names the fields of each record and their types (`__match_args__`, `__annotations__`); nothing
here lists them again. `dataclasses`, `json` and pydantic are imported when they are needed.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Dict, Final, Iterator, List, Literal, Optional, Sequence, Tuple, get_args
from uuid import UUID

from . import _native  # type: ignore[attr-defined]

_RECORDS: List[Any] = [each for each in vars(_native).values() if hasattr(each, "__match_args__")]
_TYPES: Dict[Any, Dict[str, Any]] = {}
"""The types of the fields that each record class adds to its base."""


def types_of(record: Any) -> Dict[str, Any]:
    """The types of a record's fields, by name."""
    return {name: kind for each in reversed(record.__mro__) for name, kind in _TYPES.get(each, {}).items()}


class _OfDataclass:
    """An attribute that a class has as a dataclass. The first read makes it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, record: object, owner: Any) -> Any:
        # A class that inherits from a record and is no record has the fields of that record.
        owner = next(each for each in owner.__mro__ if each in _TYPES)
        value = getattr(_twin(owner, types_of(owner)), self.name)
        setattr(owner, self.name, value)
        return value


def _twin(record: Any, types: Dict[str, Any]) -> Any:
    """A dataclass with the name and the fields of a record."""
    from dataclasses import make_dataclass

    twin = make_dataclass(record.__name__, list(types.items()), frozen=True)
    twin.__module__ = record.__module__
    twin.__doc__ = record.__doc__
    return twin


def _pydantic_schema(record: Any, source: Any, handler: Any) -> Any:
    """The schema of a record: pydantic accepts the record, or its fields, and writes its fields."""
    from pydantic import Field
    from pydantic_core import core_schema

    try:
        from typing import Annotated
    except ImportError:  # pragma: no cover
        from typing_extensions import Annotated

    types = types_of(record)
    described = {name: Annotated[types[name], Field(description=getattr(record, name).__doc__)] for name in types}
    twin = _twin(record, described)
    twin.__pydantic_config__ = {"ser_json_bytes": "base64", "val_json_bytes": "base64"}
    fields = handler.generate_schema(twin)

    def copied(value: Any, to: Any) -> Any:
        return to(*(getattr(value, name) for name in types))

    return core_schema.no_info_wrap_validator_function(
        lambda value, validate: value if isinstance(value, record) else copied(validate(value), record),
        fields,
        serialization=core_schema.plain_serializer_function_ser_schema(
            lambda value: copied(value, twin), return_schema=fields
        ),
    )


class _Secret:
    """What `rich_repr` yields for a value that `repr` does not show."""

    def __repr__(self) -> str:
        return "<secret>"


def rich_repr(record: Any, secret: Sequence[str]) -> Iterator[Tuple[str, Any]]:
    """The names and values of a record's fields, for the package rich. Hides the values of the fields in `secret`."""
    for name in record.__match_args__:
        yield name, _Secret() if name in secret else getattr(record, name)


def to_json(record: Any) -> str:
    """`to_dict()` of a record as JSON text."""
    import json

    return json.dumps(record.to_dict(), default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """A value that JSON does not know: a time in RFC 3339, bytes in Base64, the text of an id."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="microseconds").replace("+00:00", "Z")
    if isinstance(value, bytes):
        from base64 import b64encode

        return b64encode(value).decode()
    if hasattr(value, "to_dict"):
        return value.to_dict()
    return str(value)


_METADATA = (
    "version screenshots button_title hero_image_url tagline subtitle image_url splash_image_url splash_background_color"
).split()


def endpoint_dict(record: Any) -> Dict[str, Any]:
    """`to_dict()` of a record that Python code made, where the core's shape is not that of the fields."""
    fields = {name: getattr(record, name) for name in record.__match_args__}
    if isinstance(record, _native.Change):
        fields["eventType"] = fields.pop("event_type")
        fields["commit_timestamp"] = record.commit_timestamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {name: fields[name] for name in ("schema", "table", "eventType", "new", "old", "commit_timestamp", "cursor")}
    if not isinstance(record, _native.MiniApp):
        return _present(fields)
    fields["metadata"] = _present({name.replace("image_url", "image"): fields.pop(name) for name in _METADATA})
    del fields["first_seen"]
    fields["last_fetched"] = _shortest(_plain(fields.pop("last_fetched")))
    return _present({name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in fields.items()})


def _shortest(time: str) -> str:
    """A time in RFC 3339 without zeros at the end of its fraction, as the core writes it."""
    return time.removesuffix("Z").rstrip("0").rstrip(".") + "Z" if "." in time else time


def _present(fields: Dict[str, Any]) -> Dict[str, Any]:
    """The fields that are not None, by their names in camelCase."""
    return {_camel(name): value for name, value in fields.items() if value is not None}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _hint(kind: Any) -> Any:
    """The type of a field for `typing.get_type_hints`, which polars reads to choose the type of a column.

    polars takes `datetime` for a time without a zone, but looks at the values behind `Final`. It cannot store an id within a
    record, so the column of such records is one of objects.
    """
    parts = (kind, *get_args(kind))
    if datetime in parts:
        return Final[kind]
    return object if any(UUID in types_of(part).values() for part in parts if part in _TYPES) else kind


def _become_dataclasses() -> None:
    names = {"Any": Any, "Literal": Literal, "Optional": Optional, "UUID": UUID, "datetime": datetime}
    names.update((record.__name__, record) for record in _RECORDS)
    evaluated: Dict[str, Any] = {}
    for record in _RECORDS:
        # By the attribute: Python 3.14 keeps the dict elsewhere.
        written: Dict[str, str] = dict(record.__annotations__)
        for text in written.values():
            if text not in evaluated:
                evaluated[text] = eval(text, names)
        _TYPES[record] = {name: evaluated[text] for name, text in written.items()}
    for record in _RECORDS:
        record.__annotations__ = {name: _hint(kind) for name, kind in _TYPES[record].items()}
        for name in ("__dataclass_fields__", "__dataclass_params__"):
            setattr(record, name, _OfDataclass(name))
        record.__get_pydantic_core_schema__ = classmethod(_pydantic_schema)


_become_dataclasses()
