"""A program as its author would type it: mypy --strict must find nothing. It is checked, never run."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Optional

import townsquare
from townsquare import AsyncClient, Author, Client, DiscoveryStats, MiniApp


def blocking(folder: Path) -> list[MiniApp]:
    with Client.open(folder, refresh_interval=timedelta(minutes=5), catalog_timeout=2.5, catalog_tries=2) as client:
        apps: list[MiniApp] = client.discovery.get_trending_mini_apps("7d", 20, categories=["games"], networks=("base",))
        apps += client.discovery.get_mini_apps_by_category(["social"], networks=None)
        apps.extend(client.discovery.search_mini_apps("chess", limit=3))
        stats: DiscoveryStats = client.discovery.refresh(force=True)
        source: Literal["upstream", "file", "database", "none"] = stats.source
        fetched: Optional[datetime] = stats.fetched_at
        response = client.discovery.handle("POST", "/api/miniapp-discovery", b"{}")
        body: bytes = response.body
        headers: dict[str, str] = response.headers
        print(source, fetched, response.status, body, headers, client.closed)
    for app in apps:
        author: Optional[Author] = app.author
        score: Optional[float] = author.score if author is not None else None
        rank: Optional[int] = app.engagement.trending_rank
        print(app.name.upper(), score, rank, app.last_fetched.isoformat(), app.to_dict()["id"])
    return apps


async def awaiting() -> int:
    async with await AsyncClient.open("town", durability="normal") as client:
        one, other = await asyncio.gather(client.discovery.stats(), client.discovery.search_mini_apps("quiz"))
        task: asyncio.Task[DiscoveryStats] = asyncio.create_task(client.discovery.refresh())
        return one.total + len(other) + (await task).total


def failing() -> Optional[float]:
    try:
        townsquare.shared("town")
    except townsquare.RateLimitedError as error:
        seconds: float = error.retry_after
        return seconds
    except townsquare.Error as error:
        code: Optional[str] = error.code
        print(error.kind, code, error.status, error.operation, error.message, error.is_retryable)
        return error.retry_after
    return None
