"""What a notebook shows for facets, live queries and figures: tables with escaped text."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import townsquare
from townsquare import Client

from conftest import body, frame, run

NASTY = '<script>alert("x")</script>'
ESCAPED = "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;"


def is_safe(page: str) -> bool:
    return "<script" not in page and 'alert("x")' not in page


def test_facets_are_tables(client: Client, tmp_path: Path) -> None:
    for facets in (client.discovery.categories(), client.discovery.networks()):
        page = facets._repr_html_()
        assert type(facets) is townsquare.FacetList and isinstance(facets, list) and len(facets) == 2
        assert page.count("<tr>") == 3 and all(f">{facet.name}<" in page and f">{facet.count}<" in page for facet in facets)
    file = tmp_path / "nasty.json"
    file.write_bytes(body([frame("Nasty", category=NASTY)]))
    with Client.open(tmp_path / "nasty", catalog_url=file.as_uri()) as nasty:
        page = nasty.discovery.categories()._repr_html_()
    # The catalog writes categories in lower case.
    assert is_safe(page) and ESCAPED in page
    many = townsquare.FacetList([townsquare.Facet(NASTY, number) for number in range(150)])
    assert many._repr_html_().count("<tr>") == 101 and "and 50 more" in many._repr_html_() and is_safe(many._repr_html_())


def test_live_queries_are_tables_of_their_rows(service: Client, data_dir: Path) -> None:
    with service.realtime.live(table="fidgets") as empty:
        assert "No rows" in empty._repr_html_()
    space = service.spaces.create_space(NASTY, description="a & b", is_public=True)
    service.fidgets.create_fidget(space.id, NASTY, config={NASTY: [NASTY]})
    with service.realtime.live(table="spaces") as spaces, service.realtime.live(table="fidgets") as fidgets:
        for live in (spaces, fidgets):
            page = live._repr_html_()
            assert is_safe(page) and ESCAPED in page and page.count("<tr>") == 2
            assert all(f">{column}</th>" in page for column in live.rows[0])
        assert ">a &amp; b<" in spaces._repr_html_() and ">yes<" in spaces._repr_html_()

    async def awaited() -> str:
        async with townsquare.AsyncClient.open(data_dir) as client:
            async with await client.realtime.live(table="spaces") as live:
                return live._repr_html_()

    page = run(awaited())
    assert is_safe(page) and ESCAPED in page


def test_figures_are_tables(client: Client) -> None:
    client.discovery.categories()
    stats = dataclasses.replace(client.discovery.stats(), last_error=NASTY, stale_lists=[NASTY])
    page = stats._repr_html_()
    assert is_safe(page) and ESCAPED in page
    assert all(f">{name}</td>" in page for name in type(stats).__match_args__) and page.count("<tr>") == 13
    assert f">{stats.total}</td>" in client.discovery.stats()._repr_html_()
    assert ">subscriptions</td>" in client.as_service().realtime.stats()._repr_html_()
