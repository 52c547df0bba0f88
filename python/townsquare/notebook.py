"""How lists of records look in a notebook: HTML that trusts nothing.

Invariant: every text is escaped and every address is http or https, because catalogs are written by strangers. A gallery
is a plain `list` in every other respect.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, List, Optional

if TYPE_CHECKING:
    from ._native import MiniApp

__all__ = ["MiniAppList"]

_CARD = (
    "display:flex;gap:.6em;align-items:flex-start;box-sizing:border-box;width:19em;padding:.6em;"
    "border:1px solid rgba(128,128,128,.35);border-radius:.6em;text-align:left;overflow:hidden"
)
_ICON = "width:3em;height:3em;border-radius:.6em;object-fit:cover;flex:none;background:rgba(128,128,128,.2)"
_SMALL = "font-size:.85em;opacity:.75"
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
