"""Discovery: defaults, filters, records and the endpoint (SPEC 3.1, 4.1, 4.2)."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import townsquare
from conftest import Upstream, frame, body, wait_until
from townsquare import Client, InvalidInputError


def names(apps: Sequence[townsquare.MiniApp]) -> list[str]:
    return [app.name for app in apps]


def test_trending_is_a_list_of_mini_apps_best_first(client: Client) -> None:
    apps = client.discovery.get_trending_mini_apps()
    assert isinstance(apps, townsquare.MiniApps) and isinstance(apps, Sequence)
    assert names(apps) == ["Harbor Chess", "Lantern Quiz", "Tidepool", "Slow Chess Club"]
    assert [app.engagement.trending_rank for app in apps] == [1, 2, 3, 4]
    assert all(type(app) is townsquare.MiniApp for app in apps)


@pytest.mark.parametrize("timeframe", ["1h", "6h", "12h", "24h", "7d"])
def test_every_timeframe_is_taken(client: Client, timeframe: str) -> None:
    assert len(client.discovery.get_trending_mini_apps(timeframe, 2)) == 2  # type: ignore[arg-type]


def test_an_unknown_timeframe_is_an_invalid_input(client: Client) -> None:
    with pytest.raises(InvalidInputError, match="Get trending mini apps failed: Unknown timeframe") as caught:
        client.discovery.get_trending_mini_apps("2h")  # type: ignore[arg-type]
    assert caught.value.operation == "get_trending_mini_apps"
    assert caught.value.message.startswith("Unknown timeframe")


def test_filters_combine(client: Client) -> None:
    discovery = client.discovery
    assert names(discovery.get_mini_apps_by_category(["social"])) == ["Tidepool", "Slow Chess Club"]
    assert names(discovery.get_mini_apps_by_category(["social"], networks=["base"])) == ["Slow Chess Club"]
    assert names(discovery.get_trending_mini_apps(categories=("games",), limit=1)) == ["Harbor Chess"]
    assert names(discovery.search_mini_apps("chess", categories=["social", "social"])) == ["Slow Chess Club"]
    assert names(discovery.get_trending_mini_apps(categories=[], networks=[])) == names(discovery.get_trending_mini_apps())


def test_search_matches_prefixes_and_typos(client: Client) -> None:
    assert "Lantern Quiz" in names(client.discovery.search_mini_apps("lant"))
    assert "Lantern Quiz" in names(client.discovery.search_mini_apps("lentern"))
    assert client.discovery.search_mini_apps("zebra") == []
    assert client.discovery.search_mini_apps("  ") == []


def test_pages_have_a_total(client: Client) -> None:
    page = client.discovery.get_trending_mini_apps("24h", 2, offset=1)
    assert (names(page), page.total) == (["Lantern Quiz", "Tidepool"], 4)
    assert client.discovery.search_mini_apps("chess", 1).total == 2
    assert client.discovery.get_mini_apps_by_category(["social"], offset=5).total == 2
    assert client.discovery.get_new_mini_apps(limit=1, collapse=True).total == 4
    assert townsquare.MiniApps(page).total == 2
    assert copy.copy(page) == page and copy.copy(page).total == 4
    with pytest.raises(InvalidInputError, match="offset"):
        client.discovery.get_trending_mini_apps(offset=-1)


def test_near_copies_are_returned_once_when_asked(tmp_path: Path) -> None:
    file = tmp_path / "copies.json"
    file.write_bytes(body([frame("Remix", host=host) for host in ("remix.example", "play.remix.example")]))
    with Client.open(tmp_path / "data", catalog_url=file.as_uri()) as client:
        discovery = client.discovery
        for apps in (
            discovery.get_trending_mini_apps(collapse=True),
            discovery.get_new_mini_apps(collapse=True),
            discovery.search_mini_apps("remix", collapse=True),
        ):
            assert ([app.domain for app in apps], apps.total) == (["remix.example"], 1)
        assert discovery.search_mini_apps("remix").total == 2
        assert discovery.get_mini_app("play.remix.example") is not None


def test_an_app_is_found_by_its_address_and_has_similar_ones(client: Client) -> None:
    discovery = client.discovery
    app = discovery.get_mini_app("HTTPS://Harbor-Chess.example:443/")
    assert app is not None and app.name == "Harbor Chess"
    assert isinstance(app.first_seen, datetime) and app.first_seen <= app.last_fetched
    assert discovery.get_mini_app("unknown.example") is None
    similar = discovery.get_similar_mini_apps(app.id)
    assert app not in similar and names(similar)[0] == "Slow Chess Club"
    with pytest.raises(townsquare.NotFoundError, match="Get similar mini apps failed: "):
        discovery.get_similar_mini_apps("unknown.example")


def test_facets_count_crosswise(client: Client) -> None:
    facets = client.discovery.categories()
    assert [(facet.name, facet.count) for facet in facets] == [("games", 2), ("social", 2)]
    assert [(facet.name, facet.count) for facet in client.discovery.categories(networks=["optimism"])] == [("social", 1)]
    assert [facet.to_dict() for facet in client.discovery.networks(categories=["games"])] == [{"name": "base", "count": 2}]


def test_suggestions_and_highlights_have_character_ranges(client: Client) -> None:
    suggestion = client.discovery.suggest_mini_apps("lant", 3)[0]
    assert (suggestion.text, suggestion.matches, suggestion.app.name) == ("Lantern Quiz", [(0, 4)], "Lantern Quiz")
    assert suggestion.to_dict()["app"]["name"] == "Lantern Quiz"
    app = client.discovery.search_mini_apps("ches")[0]
    highlight = app.highlights("ches")[0]
    assert (highlight.field, highlight.text, highlight.matches) == ("name", "Harbor Chess", [(7, 12)])
    assert app.highlights("zebra") == []


def test_changes_of_the_catalog_are_told(client: Client) -> None:
    changes: list[townsquare.DiscoveryStats] = []
    subscription = client.discovery.on_catalog_change(changes.append)
    client.discovery.refresh()
    wait_until(lambda: changes)
    assert changes[0].total == 4
    subscription.unsubscribe()


def test_a_string_instead_of_a_list_is_a_type_error(client: Client) -> None:
    with pytest.raises(TypeError, match=r"write \['games'\]"):
        client.discovery.get_mini_apps_by_category("games")
    with pytest.raises(TypeError, match="list of strings"):
        client.discovery.search_mini_apps("chess", networks="base")
    with pytest.raises(TypeError):
        client.discovery.get_mini_apps_by_category(b"games")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.discovery.get_mini_apps_by_category([1])  # type: ignore[list-item]


@pytest.mark.parametrize("limit", [0, -1, 1001, 2**31, -(2**63), 2**64, 10**40, -(10**40)])
def test_a_limit_out_of_range_is_an_invalid_input(client: Client, limit: int) -> None:
    for call in (client.discovery.get_trending_mini_apps, client.discovery.search_mini_apps):
        with pytest.raises(InvalidInputError, match="limit is 1 to 1000"):
            call("24h", limit)
    with pytest.raises(InvalidInputError, match="limit is 1 to 1000"):
        client.discovery.get_mini_apps_by_category(["games"], limit)


def test_a_limit_that_is_not_an_integer_is_a_type_error(client: Client) -> None:
    for limit in ("5", 5.0, None):
        with pytest.raises(TypeError):
            client.discovery.get_trending_mini_apps("24h", limit)  # type: ignore[arg-type]


def test_filters_are_keyword_only(client: Client) -> None:
    with pytest.raises(TypeError):
        client.discovery.get_trending_mini_apps("24h", 5, ["games"])  # type: ignore[call-arg, arg-type]


def test_a_mini_app_has_every_attribute_of_the_contract(client: Client) -> None:
    app = client.discovery.get_trending_mini_apps(limit=1)[0]
    assert (app.id, app.domain, app.name) == ("harbor-chess.example", "harbor-chess.example", "Harbor Chess")
    assert (app.description, app.category, app.version) == (None, "games", "1")
    assert (app.icon_url, app.home_url) == ("https://harbor-chess.example/icon.png", "https://harbor-chess.example/")
    assert (app.networks, app.tags, app.screenshots) == (["base"], ["chess", "board"], [])
    assert (app.hero_image_url, app.tagline, app.subtitle) == (None, "One move a day", None)
    assert app.last_fetched.tzinfo is not None and app.last_fetched.utcoffset() == timedelta(0)
    assert abs(datetime.now(timezone.utc) - app.last_fetched) < timedelta(minutes=5)
    assert app.author is not None
    author = app.author
    assert (author.fid, author.username, author.display_name, author.pfp_url) == (7, "ada", None, None)
    assert (author.follower_count, author.score, author.is_power_user) == (10, 0.5, False)
    assert (app.engagement.follower_count, app.engagement.trending_rank) == (10, 1)


def test_records_are_frozen_equal_by_value_and_hashable(client: Client) -> None:
    first, second = (client.discovery.get_trending_mini_apps(limit=2) for _ in range(2))
    assert first == second and first[0] is not second[0]
    assert hash(first[0]) == hash(second[0]) and len({*first, *second}) == 2
    assert first[0] != first[1] and first[0] != "Harbor Chess"
    assert first[0].author == second[0].author and hash(first[0].author) == hash(second[0].author)
    assert first[0].engagement != first[1].engagement
    assert copy.copy(first[0]) is first[0] and copy.deepcopy(first[0]) is first[0]
    for record, attribute in ((first[0], "name"), (first[0], "colour"), (first[0].engagement, "trending_rank")):
        with pytest.raises(AttributeError):
            setattr(record, attribute, "x")
    with pytest.raises(TypeError):
        townsquare.MiniApp()  # type: ignore[call-arg]


def test_repr_names_the_record(client: Client) -> None:
    app = client.discovery.get_trending_mini_apps(limit=1)[0]
    assert repr(app).startswith("MiniApp(id='harbor-chess.example', domain='harbor-chess.example', name='Harbor Chess', ")
    assert repr(app.author).startswith("Author(fid=7, username='ada', ") and repr(app.author) in repr(app)
    assert repr(app.engagement) == "Engagement(follower_count=10, trending_rank=1)"


def test_to_dict_equals_the_endpoints_json(client: Client) -> None:
    response = client.discovery.handle("GET", "/api/miniapp-discovery?limit=1")
    assert response.status == 200
    assert response.headers["content-type"].startswith("application/json")
    assert isinstance(response.body, bytes)
    sent = json.loads(response.body)["apps"][0]
    app = client.discovery.get_trending_mini_apps(limit=1)[0]
    assert app.to_dict() == sent
    assert app.author is not None and app.author.to_dict() == sent["author"]
    assert app.engagement.to_dict() == sent["engagement"]


def test_the_endpoint_answers_bad_requests_instead_of_raising(client: Client) -> None:
    handle = client.discovery.handle
    assert handle("GET", "/elsewhere").status == 404
    assert handle("DELETE", "/api/miniapp-discovery").status == 405
    assert handle("GET", "/api/miniapp-discovery?limit=-1").status == 400
    assert handle("POST", "/api/miniapp-discovery", b"not JSON").status == 400


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_body_is_any_bytes_like_object(client: Client, kind: type) -> None:
    response = client.discovery.handle("POST", "/api/miniapp-discovery", kind(b'{"action": "search", "query": "chess"}'))
    assert json.loads(response.body)["count"] == 2


@pytest.mark.parametrize("wrong", ["text", 5, ["a"]])
def test_a_body_that_is_not_bytes_like_is_a_type_error(client: Client, wrong: object) -> None:
    with pytest.raises(TypeError):
        client.discovery.handle("POST", "/api/miniapp-discovery", wrong)  # type: ignore[arg-type]


def test_stats_describe_the_catalog(client: Client) -> None:
    before = client.discovery.stats()
    assert (before.total, before.source, before.fetched_at) == (0, "none", None)
    client.discovery.refresh()
    stats = client.discovery.stats()
    assert (stats.total, stats.received, stats.skipped, stats.duplicates) == (4, 5, 1, 0)
    assert (stats.source, stats.is_stale, stats.last_error) == ("file", False, None)
    assert stats.fetched_at is not None and stats.fetched_at.utcoffset() == timedelta(0)
    assert stats.to_dict()["total"] == 4 and stats.to_dict()["fetched_at"] == stats.fetched_at


def test_without_a_key_lists_are_empty_and_no_request_is_sent(tmp_path: Path, upstream: Upstream) -> None:
    with Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="") as client:
        assert client.discovery.get_trending_mini_apps() == []
        assert client.discovery.search_mini_apps("chess") == []
        assert client.discovery.refresh().has_api_key is False
    assert upstream.requests == []


def test_the_key_is_sent_and_a_fresh_catalog_is_not_fetched_again(tmp_path: Path, upstream: Upstream) -> None:
    with Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k") as client:
        for _ in range(3):
            assert len(client.discovery.get_trending_mini_apps()) == 4
        assert client.discovery.stats().source == "upstream"
        assert client.discovery.stats().has_api_key
        assert [key for _, key in upstream.requests] == ["k"]
        client.discovery.refresh()
        assert len(upstream.requests) == 2


def test_a_failed_refresh_raises_and_keeps_the_catalog(tmp_path: Path, upstream: Upstream) -> None:
    with Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k", catalog_tries=1) as client:
        client.discovery.refresh()
        upstream.status = 503
        with pytest.raises(townsquare.UnavailableError, match="^Refresh mini apps failed: ") as caught:
            client.discovery.refresh()
        assert caught.value.is_retryable
        assert len(client.discovery.get_trending_mini_apps()) == 4
        stats = client.discovery.stats()
        assert stats.is_stale and stats.last_error


def test_a_collapsed_catalog_is_accepted_only_by_force(tmp_path: Path, upstream: Upstream) -> None:
    upstream.frames = [frame(f"App {number}") for number in range(60)]
    with Client.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k") as client:
        assert client.discovery.refresh().total == 60
        upstream.frames = upstream.frames[:3]
        with pytest.raises(townsquare.UnavailableError):
            client.discovery.refresh()
        assert client.discovery.stats().total == 60
        assert client.discovery.refresh(force=True).total == 3


def test_a_gallery_escapes_text_and_links_only_http(tmp_path: Path) -> None:
    nasty = '<script>alert("x")</script>'
    file = tmp_path / "nasty.json"
    row = frame("Nasty", tagline=nasty, category=nasty, icon_url="javascript:alert(1)", home_url='https://n.example/"><b>')
    row["manifest"]["miniapp"]["name"] = nasty
    row["author"]["username"] = nasty
    file.write_bytes(body([row, frame("Fine & dandy", host="fine.example")]))
    with Client.open(tmp_path / "data", catalog_url=file.as_uri()) as client:
        apps = client.discovery.get_trending_mini_apps()
        page = apps._repr_html_()
    assert "<script" not in page and 'alert("x")' not in page and "javascript:" not in page and "<b>\"" not in page
    assert "&lt;script&gt;" in page and "Fine &amp; dandy" in page
    assert 'href="https://fine.example/"' in page
    assert apps[1]._repr_html_() in page


def test_an_empty_gallery_says_so(client: Client) -> None:
    assert "No mini apps" in client.discovery.search_mini_apps("zebra")._repr_html_()
