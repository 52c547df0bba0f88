"""Opening, options, closing and the shared client."""

from __future__ import annotations

import asyncio
import gc
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import townsquare
from conftest import run_python
from townsquare import Client, ClosedError, ConfigError


def test_open_creates_its_folder_and_a_with_block_closes_the_client(tmp_path: Path) -> None:
    with Client.open(tmp_path / "deep" / "town") as client:
        assert not client.closed and repr(client) == "<townsquare.Client open>"
        assert (tmp_path / "deep" / "town" / "townsquare.db").exists()
    assert client.closed and repr(client) == "<townsquare.Client closed>"


def test_the_default_folder_is_townsquare_data_or_the_environment_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Client.open().close()
    assert (tmp_path / "townsquare-data").is_dir()
    monkeypatch.setenv("TOWNSQUARE_DATA_DIR", str(tmp_path / "named"))
    Client.open().close()
    assert (tmp_path / "named").is_dir()


def test_a_closed_client_raises_closed_error_and_may_be_closed_again(client: Client) -> None:
    client.close()
    client.close()
    for call in (
        client.discovery.get_trending_mini_apps,
        client.discovery.stats,
        client.discovery.refresh,
        lambda: client.discovery.search_mini_apps("x"),
        lambda: client.discovery.handle("GET", "/"),
    ):
        with pytest.raises(ClosedError) as caught:
            call()
        assert caught.value.kind == "closed" and not caught.value.is_retryable
        assert caught.value.explanation is not None and caught.value.explanation.startswith("Open a new client")


def test_a_closed_handle_makes_no_handle_and_says_what_to_do(client: Client) -> None:
    service = client.as_service()
    service.close()
    for call in (service.as_service, service.as_anonymous, lambda: service.with_client_key("x"), service.spaces.get_public_spaces):
        with pytest.raises(ClosedError, match="The handle is closed") as caught:
            call()
        assert caught.value.explanation is not None and caught.value.explanation.startswith("Make a new handle")
    assert client.as_service().spaces.get_public_spaces() == []


def test_a_with_block_propagates_exceptions(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with Client.open(tmp_path / "data") as client:
            raise ZeroDivisionError
    assert client.closed


def test_an_area_keeps_its_client_open(tmp_path: Path, catalog: str) -> None:
    discovery = Client.open(tmp_path / "data", catalog_url=catalog).discovery
    gc.collect()
    assert len(discovery.get_trending_mini_apps()) == 4


def test_an_area_is_the_same_object_each_time(client: Client) -> None:
    assert client.discovery is client.discovery


@pytest.mark.parametrize("interval", [60, 60.5, timedelta(minutes=1), "60", None])
def test_durations_are_numbers_timedeltas_or_text(tmp_path: Path, interval: Any) -> None:
    Client.open(tmp_path / "data", refresh_interval=interval, catalog_timeout=timedelta(milliseconds=1500)).close()


@pytest.mark.parametrize(
    "options",
    [
        {"colour": "red"},
        {"refresh_interval": -1},
        {"refresh_interval": 0},
        {"refresh_interval": float("nan")},
        {"refresh_interval": float("inf")},
        {"refresh_interval": timedelta(seconds=-5)},
        {"refresh_interval": True},
        {"refresh_interval": [900]},
        {"refresh_interval": object()},
        {"catalog_timeout": "soon"},
        {"catalog_page_size": 101},
        {"catalog_page_size": 2**200},
        {"catalog_page_size": 10.5},
        {"durability": "maybe"},
        {"persist_session": "perhaps"},
        {"adopt": "perhaps"},
        {"database_pooler": "carrier"},
        {"max_connections": 0},
        {"operation_timeout": 0},
        {"database_url": "mysql://x"},
        {"catalog_url": "gopher://x"},
    ],
)
def test_an_invalid_option_is_a_config_error_that_names_it(tmp_path: Path, options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(ConfigError, match=name) as caught:
        Client.open(tmp_path / "data", **options)
    assert isinstance(caught.value, ValueError)
    assert (caught.value.kind, caught.value.operation) == ("config", "open")
    assert not (tmp_path / "data").exists()


def test_none_means_the_default_of_an_option(tmp_path: Path) -> None:
    Client.open(tmp_path / "data", database_url=None, catalog_api_key=None, durability=None, catalog_tries=None).close()


def test_options_are_keyword_only(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        Client.open(tmp_path / "data", "sqlite:x")  # type: ignore[call-arg]


def test_data_dir_is_a_string_or_a_path(tmp_path: Path) -> None:
    Client.open(str(tmp_path / "text")).close()
    Client.open(tmp_path / "ünïcode path").close()
    with pytest.raises(TypeError):
        Client.open(5)  # type: ignore[arg-type]


def test_the_catalog_key_is_never_shown(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data", catalog_api_key="MARKED", catalog_url="http://127.0.0.1:9", catalog_tries=1) as client:
        assert "MARKED" not in repr(client)
        with pytest.raises(townsquare.UnavailableError) as caught:
            client.discovery.refresh()
        assert "MARKED" not in str(caught.value) + repr(caught.value.__dict__)


SHARED_BY_THREADS = """
import threading, townsquare

def ask():
    townsquare.shared(":memory:", catalog_url="sample:")

for _ in range(50):
    townsquare.shared(":memory:", catalog_url="sample:").close()
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
townsquare.shared().close()
"""


def test_threads_that_ask_for_the_shared_client_after_its_end_do_not_wait_for_each_other() -> None:
    ended = run_python(SHARED_BY_THREADS)
    assert ended.returncode == 0, ended.stderr


def test_shared_returns_one_client_until_it_is_closed(tmp_path: Path) -> None:
    first = townsquare.shared(tmp_path / "data", refresh_interval=60)
    try:
        assert townsquare.shared(tmp_path / "data", refresh_interval=60) is first
        assert townsquare.shared() is first
        with pytest.raises(ConfigError):
            townsquare.shared(tmp_path / "data", refresh_interval=61)
        with pytest.raises(ConfigError):
            townsquare.shared(tmp_path / "other", refresh_interval=60)
    finally:
        first.close()
    second = townsquare.shared(tmp_path / "other")
    try:
        assert second is not first and not second.closed
    finally:
        second.close()


def test_classes_can_be_neither_instantiated_nor_subclassed() -> None:
    for each in (Client, townsquare.AsyncClient, townsquare.Discovery, townsquare.DiscoveryStats):
        with pytest.raises(TypeError):
            each()  # type: ignore[call-arg]
        with pytest.raises(TypeError):
            type("Sub", (each,), {})
        assert each.__module__ == "townsquare"


@pytest.mark.parametrize("ending", ["pass", "del client", "client.discovery.get_trending_mini_apps()", "raise SystemExit(0)"])
def test_the_interpreter_exits_with_an_open_client(tmp_path: Path, catalog: str, ending: str) -> None:
    program = f"import townsquare; client = townsquare.Client.open({str(tmp_path / 'data')!r}, catalog_url={catalog!r}); {ending}"
    child = run_python(program)
    assert (child.returncode, child.stderr) == (0, "")


def test_the_error_of_a_call_of_the_class_names_open(tmp_path: Path) -> None:
    for arguments in ((), (tmp_path,)):
        with pytest.raises(TypeError, match=r"Client\.open\(data_dir"):
            Client(*arguments)
        with pytest.raises(TypeError, match=r"AsyncClient\.open\(data_dir"):
            townsquare.AsyncClient(*arguments, migrate=True)  # type: ignore[call-arg]
    assert not list(tmp_path.iterdir())


def test_a_closed_client_enters_no_with_block(tmp_path: Path) -> None:
    client = Client.open(":memory:")
    service = client.as_service()
    service.close()
    for closed in (service, client):
        closed.close()
        with pytest.raises(townsquare.ClosedError), closed:
            raise AssertionError("the block ran")

    async def main() -> None:
        opened = await townsquare.AsyncClient.open(":memory:")
        await opened.close()
        with pytest.raises(townsquare.ClosedError):
            async with opened:
                raise AssertionError("the block ran")

    asyncio.run(main())


def test_an_async_client_opens_in_async_with_and_by_await(tmp_path: Path) -> None:
    async def main() -> None:
        async with townsquare.AsyncClient.open(":memory:") as client:
            assert isinstance(client, townsquare.AsyncClient) and not client.closed
        assert client.closed
        async with await townsquare.AsyncClient.open(":memory:") as client:
            assert not client.closed
        tasks = [asyncio.create_task(townsquare.AsyncClient.open(":memory:")) for _ in range(2)]
        for opened in await asyncio.gather(*tasks, townsquare.AsyncClient.open(":memory:")):
            assert isinstance(opened, townsquare.AsyncClient)
            await opened.close()
        with pytest.raises(ZeroDivisionError):
            async with townsquare.AsyncClient.open(":memory:") as client:
                raise ZeroDivisionError
        assert client.closed
        (tmp_path / "taken").write_text("")
        with pytest.raises(townsquare.ConfigError, match="^Open failed: "):
            async with townsquare.AsyncClient.open(tmp_path / "taken"):
                raise AssertionError("the block ran")
        opening = townsquare.AsyncClient.open(":memory:")
        assert asyncio.iscoroutine(opening)
        opening.close()
        with pytest.raises(RuntimeError, match="already awaited"):
            await opening

    asyncio.run(main())
    asyncio.run(townsquare.AsyncClient.open(":memory:")).closed  # noqa: B018


def test_a_position_is_empty_on_sqlite_and_other_texts_are_refused(client: Client) -> None:
    assert client.read_position() == ""
    client.read_after(client.read_position())
    client.as_anonymous().read_after("6b0f-1-16b3748")
    for text in ("yesterday", "1-1", "1-1-1-1", "-"):
        with pytest.raises(townsquare.InvalidInputError, match="^Read after failed: "):
            client.read_after(text)
    with pytest.raises(TypeError):
        client.read_after(7)  # type: ignore[arg-type]


def test_positions_have_async_twins(tmp_path: Path) -> None:
    async def use() -> str:
        async with townsquare.AsyncClient.open(tmp_path / "town") as client:
            await client.read_after("")
            return await client.read_position()

    assert asyncio.run(use()) == ""
