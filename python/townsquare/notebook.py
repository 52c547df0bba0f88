"""How lists of records look in a notebook: HTML that trusts nothing.

Invariant: every text is escaped and every address is http or https, because catalogs and spaces are written by strangers.
A gallery or a table is a plain `list` in every other respect.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, List, Optional, TypeVar

if TYPE_CHECKING:
    from ._native import MiniApp, Space

__all__ = ["MiniAppList", "SpaceList"]

_CARD = (
    "display:flex;gap:.6em;align-items:flex-start;box-sizing:border-box;width:19em;padding:.6em;"
    "border:1px solid rgba(128,128,128,.35);border-radius:.6em;text-align:left;overflow:hidden"
)
_ICON = "width:3em;height:3em;border-radius:.6em;object-fit:cover;flex:none;background:rgba(128,128,128,.2)"
_SMALL = "font-size:.85em;opacity:.75"
_CELL = "text-align:left;vertical-align:top"
_SHOWN = 100


class MiniAppList(List["MiniApp"]):
    """A list of mini apps that shows itself as a gallery in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        cards = "".join(card(app) for app in self[:_SHOWN])
        rest = len(self) - _SHOWN
        more = f'<p style="{_SMALL}">and {rest} more</p>' if rest > 0 else ""
        empty = "" if self else f'<p style="{_SMALL}">No mini apps.</p>'
        return f'<div style="display:flex;flex-wrap:wrap;gap:.6em">{cards}</div>{more}{empty}'


def card(app: MiniApp) -> str:
    """One mini app as a card of HTML."""
    name = escape(app.name)
    home, icon = web_address(app.home_url), web_address(app.icon_url)
    if home is not None:
        name = f'<a href="{home}" target="_blank" rel="noopener noreferrer">{name}</a>'
    picture = f'<div style="{_ICON}"></div>'
    if icon is not None:
        picture = f'<img src="{icon}" alt="" loading="lazy" referrerpolicy="no-referrer" style="{_ICON}">'
    rank = app.engagement.trending_rank
    facts = [
        f"#{rank}" if rank is not None else None,
        app.category,
        f"@{app.author.username}" if app.author is not None else None,
    ]
    line = " · ".join(escape(fact) for fact in facts if fact)
    text = escape(shortened(app.tagline or app.subtitle or app.description or ""))
    return (
        f'<div style="{_CARD}">{picture}<div style="min-width:0"><b>{name}</b>'
        f'<div style="{_SMALL}">{line}</div><div style="{_SMALL}">{text}</div></div></div>'
    )


def web_address(url: str) -> Optional[str]:
    """The escaped address when it is http or https, else None: a ``javascript:`` link never reaches the page."""
    if url.lower().startswith(("https://", "http://")):
        return escape(url)
    return None


def shortened(text: str, most: int = 120) -> str:
    """The text, cut at ``most`` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


_Space = TypeVar("_Space", bound="Space")


class SpaceList(List[_Space]):
    """A list of spaces that shows itself as a table in a notebook."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        if not self:
            return f'<p style="{_SMALL}">No spaces.</p>'
        head = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("name", "about", "owner", "public", "fidgets", "made"))
        rows = "".join(f"<tr>{row(space)}</tr>" for space in self[:_SHOWN])
        rest = len(self) - _SHOWN
        more = f'<p style="{_SMALL}">and {rest} more</p>' if rest > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def row(space: Space) -> str:
    """One space as the cells of a table's row."""
    owner = getattr(space, "owner", None)
    whose = space.owner_id if owner is None or owner.email is None else owner.email
    fidgets = getattr(space, "fidgets", None)
    texts = [
        shortened(space.name),
        shortened(space.description or ""),
        str(whose or ""),
        "yes" if space.is_public else "no",
        "" if fidgets is None else ", ".join(shortened(fidget.type, 30) for fidget in fidgets[:5]) + ("…" if len(fidgets) > 5 else ""),
        space.created_at.strftime("%Y-%m-%d %H:%M"),
    ]
    return "".join(f'<td style="{_CELL}">{escape(text)}</td>' for text in texts)
