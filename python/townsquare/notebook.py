"""What a notebook shows as HTML: a gallery of mini apps; tables of spaces, of facets, of the rows of a live query, of figures.

Invariant: all text is escaped and every link is http or https, because catalogs and spaces hold text of strangers. A `MiniApps` has
the methods of a list and is an Arrow table too; apart from `_repr_html_`, a `SpaceList` and a `FacetList` are plain lists.
"""

from __future__ import annotations

from collections import UserList
from datetime import datetime
from typing import TYPE_CHECKING, Any, Iterable, List, Optional, Sequence, Sized, SupportsInt, Tuple, TypeVar

from . import _native  # type: ignore[attr-defined]

if TYPE_CHECKING:
    from ._discovery import Facet, MiniApp
    from ._spaces import Space

    _AppList = UserList[MiniApp]
    _FacetList = List[Facet]
else:
    _AppList, _FacetList = UserList, list

__all__ = ["FacetList", "MiniApps", "SpaceList"]

_CARD = (
    "display:flex;gap:.6em;align-items:flex-start;box-sizing:border-box;width:19em;padding:.6em;"
    "border:1px solid rgba(128,128,128,.35);border-radius:.6em;text-align:left;overflow:hidden"
)
_ICON = "width:3em;height:3em;border-radius:.6em;object-fit:cover;flex:none;background:rgba(128,128,128,.2)"
_SMALL = "font-size:.85em;opacity:.75"
_CELL = "text-align:left;vertical-align:top"
_MAX_SHOWN = 100


def escape(text: str) -> str:
    """The text with `&`, `<`, `>` and quotes escaped."""
    # Imported here: it brings a table of two thousand names along, and most programs show no HTML.
    from html import escape

    return escape(text)


def more(records: Sized) -> str:
    """How many records a notebook leaves out."""
    rest = len(records) - _MAX_SHOWN
    return f'<p style="{_SMALL}">and {rest} more</p>' if rest > 0 else ""


def table(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A table with a head. Escapes and cuts the text of each value."""
    head = "".join(f'<th style="{_CELL}">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def cell(value: object) -> str:
    """A value as the cell of a table."""
    return f'<td style="{_CELL}">{escape(shortened(text_of(value)))}</td>'


def text_of(value: object) -> str:
    """The text of a value: nothing for None, JSON for what JSON is."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M")
    import json

    return json.dumps(value, ensure_ascii=False, default=str)


class MiniApps(_AppList):
    """A list of mini apps: one page of a longer list. A notebook shows it as a gallery.

    It has all methods of a list. It is no `list`, because `pyarrow.table` takes a list for one of columns: `pyarrow.table(apps)`,
    `polars.DataFrame(apps)` and DuckDB take a `MiniApps` as a table, without a Python object for each value. `list(apps)` is a list.
    """

    def __init__(self, apps: Iterable[MiniApp] = (), total: Optional[SupportsInt] = None) -> None:
        super().__init__()
        self.data = list(apps)
        self._total: SupportsInt = len(self) if total is None else total

    @property
    def total(self) -> int:
        """How many apps match without limit and offset. The first read of a filtered or searched list counts them."""
        return int(self._total)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        return list_schema(cls, _native.MiniApp, handler)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The list as an Arrow table: the Arrow PyCapsule interface. The schema is always its own."""
        return _native.mini_apps_stream(self.data)

    def __reduce__(self) -> Tuple[object, ...]:
        return type(self), (self.data, self.total)

    def _repr_html_(self) -> str:
        cards = "".join(card(app) for app in self[:_MAX_SHOWN])
        empty = "" if self else f'<p style="{_SMALL}">No mini apps.</p>'
        return f'<div style="display:flex;flex-wrap:wrap;gap:.6em">{cards}</div>{more(self)}{empty}'


def list_schema(to: Any, record: Any, handler: Any) -> Any:
    """The schema of a list of records for pydantic."""
    from pydantic_core import core_schema

    records = handler.generate_schema(List[record])
    return core_schema.no_info_after_validator_function(
        to,
        records,
        serialization=core_schema.plain_serializer_function_ser_schema(list, return_schema=records),
    )


def card(app: MiniApp) -> str:
    """The card of a mini app."""
    name = escape(app.name)
    home, icon = web_address(app.home_url), web_address(app.icon_url)
    if home is not None:
        name = f'<a href="{home}" target="_blank" rel="noopener noreferrer">{name}</a>'
    image = f'<div style="{_ICON}"></div>'
    if icon is not None:
        image = f'<img src="{icon}" alt="" loading="lazy" referrerpolicy="no-referrer" style="{_ICON}">'
    rank = app.engagement.trending_rank
    facts = [
        f"#{rank}" if rank is not None else None,
        app.category,
        f"@{app.author.username}" if app.author is not None else None,
    ]
    line = " · ".join(escape(fact) for fact in facts if fact)
    text = escape(shortened(app.tagline or app.subtitle or app.description or ""))
    return (
        f'<div style="{_CARD}">{image}<div style="min-width:0"><b>{name}</b>'
        f'<div style="{_SMALL}">{line}</div><div style="{_SMALL}">{text}</div></div></div>'
    )


def web_address(url: str) -> Optional[str]:
    """The escaped address if it is http or https, else None, so that no ``javascript:`` link reaches the page."""
    if url.lower().startswith(("https://", "http://")):
        return escape(url)
    return None


def shortened(text: str, limit: int = 120) -> str:
    """The text, cut to ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"


_Space = TypeVar("_Space", bound="Space")


class SpaceList(List[_Space]):
    """A list of spaces. A notebook shows it as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return f'<p style="{_SMALL}">No spaces.</p>'
        columns = ("name", "about", "owner", "public", "fidgets", "made")
        return table(columns, map(values, self[:_MAX_SHOWN])) + more(self)


def values(space: Space) -> Tuple[object, ...]:
    """The values of a space's table row."""
    owner = getattr(space, "owner", None)
    owner_name = space.owner_id if owner is None or owner.email is None else owner.email
    fidgets = getattr(space, "fidgets", None) or []
    types = ", ".join(shortened(fidget.type, 30) for fidget in fidgets[:5]) + ("…" if len(fidgets) > 5 else "")
    return space.name, space.description, str(owner_name or ""), space.is_public, types, space.created_at


class FacetList(_FacetList):
    """A list of facets. A notebook shows it as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return table(("name", "apps"), ((facet.name, facet.count) for facet in self[:_MAX_SHOWN])) + more(self)


def live_rows(self: Any) -> str:
    """The rows of a live query, as they were when it began."""
    rows = self.rows
    if not rows:
        return f'<p style="{_SMALL}">No rows.</p>'
    return table(list(rows[0]), (row.values() for row in rows[:_MAX_SHOWN])) + more(rows)


def figures(self: Any) -> str:
    """The fields of a record, one a line."""
    return table(("name", "value"), ((name, getattr(self, name)) for name in self.__match_args__))


for _each in (_native.DiscoveryStats, _native.RealtimeStats):
    _each._repr_html_ = figures
for _each in (_native.LiveQuery, _native.AsyncLiveQuery):
    _each._repr_html_ = live_rows
