"""AsyncClient: coroutines, ready answers, cancellation and closing."""

from __future__ import annotations

import asyncio
import gc
import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import townsquare
from conftest import Upstream, run, run_python
from townsquare import AsyncClient, Client, ClosedError


def test_the_async_classes_have_the_methods_of_the_blocking_ones() -> None:
    def methods(owner: type) -> set[str]:
        return {name for name in dir(owner) if not name.startswith("_")}

    assert methods(AsyncClient) == methods(Client)
    for area in ("Discovery", "Spaces", "Fidgets", "Communities", "Auth", "Storage", "HttpStream"):
        assert methods(getattr(townsquare, f"Async{area}")) == methods(getattr(townsquare, area))


def names(apps: Sequence[townsquare.MiniApp]) -> list[str]:
    return [app.name for app in apps]


def test_async_results_equal_blocking_results(tmp_path: Path, client: Client, catalog: str) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "async", catalog_url=catalog) as other:
            here, there = client.discovery, other.discovery
            assert names(await there.get_trending_mini_apps("7d", 3)) == names(here.get_trending_mini_apps("7d", 3))
            assert names(await there.get_mini_apps_by_category(["social"])) == ["Tidepool", "Slow Chess Club"]
            assert names(await there.search_mini_apps("chess", limit=1)) == names(here.search_mini_apps("chess", limit=1))
            assert (await there.refresh(force=True)).total == (await there.stats()).total == 4
            assert (await there.handle("GET", "/api/miniapp-discovery")).status == 200
        assert other.closed
        with pytest.raises(ClosedError):
            await other.discovery.stats()
        await other.close()

    run(main())


def test_methods_return_coroutines_for_tasks_and_gather(tmp_path: Path, catalog: str) -> None:
    async def main() -> None:
        opening = AsyncClient.open(tmp_path / "data", catalog_url=catalog)
        assert asyncio.iscoroutine(opening) and inspect.isawaitable(opening) and isinstance(opening, Coroutine)
        client = await asyncio.create_task(opening)
        search = client.discovery.search_mini_apps
        found = await asyncio.gather(search("chess"), asyncio.create_task(search("quiz")), asyncio.wait_for(search("tide"), 20))
        assert [len(apps) for apps in found] == [2, 1, 1]
        await client.close()

    run(main())


def test_a_ready_answer_needs_no_event_loop(tmp_path: Path, catalog: str) -> None:
    async def prepare() -> AsyncClient:
        client = await AsyncClient.open(tmp_path / "data", catalog_url=catalog)
        await client.discovery.refresh()
        return client

    client = run(prepare())
    with pytest.raises(StopIteration) as caught:
        client.discovery.stats().send(None)
    assert caught.value.value.total == 4
    run(client.close())


def test_one_client_serves_one_event_loop_after_another(tmp_path: Path, upstream: Upstream) -> None:
    client = run(AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k"))
    for _ in range(3):
        assert run(client.discovery.refresh()).total == 4
    run(client.close())


def test_failures_are_raised_at_the_await(tmp_path: Path, catalog: str) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data", catalog_url=catalog) as client:
            for wrong in (-1, 0, 10**30):
                coroutine = client.discovery.search_mini_apps("chess", wrong)
                with pytest.raises(townsquare.InvalidInputError, match="^Search mini apps failed: limit"):
                    await coroutine
            with pytest.raises(townsquare.InvalidInputError, match="^Get trending mini apps failed: "):
                await client.discovery.get_trending_mini_apps("2h")  # type: ignore[arg-type]

    run(main())


def test_a_config_error_creates_no_folder(tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(townsquare.ConfigError, match="durability"):
            await AsyncClient.open(tmp_path / "data", durability="maybe")  # type: ignore[arg-type]

    run(main())
    assert not (tmp_path / "data").exists()


def test_a_slow_upstream_does_not_block_the_event_loop(tmp_path: Path, upstream: Upstream) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k") as client:
            upstream.hold()
            first = asyncio.create_task(client.discovery.get_trending_mini_apps(limit=1))
            await wait_until(lambda: upstream.requests)
            assert not first.done()
            upstream.release()
            assert len(await first) == 1

    run(main())


async def times_out(call: Coroutine[Any, Any, object], limit: float) -> bool:
    try:
        await asyncio.wait_for(call, limit)
    except asyncio.TimeoutError:
        return True
    return False


def test_later_calls_wait_for_a_cancelled_one(data_dir: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(data_dir) as client:
            storage, auth = (await client.as_service()).storage, client.auth
            for email in ("a@town.example", "b@town.example"):
                await auth.sign_up(email, "correct horse")
            cancelled = 0
            for turn in range(60):
                limit = 0.0004 * (turn % 15)
                await storage.upload("assets", "a", b"first")
                if await times_out(storage.upload("assets", "a", b"A" * 400_000), limit):
                    cancelled += 1
                    await storage.delete("assets", "a")
                    await asyncio.sleep(0.03)
                    assert not await storage.exists("assets", "a")
                if await times_out(storage.upload("assets", "a", b"B" * 400_000), limit):
                    newer = await storage.upload("assets", "a", b"newer")
                    await asyncio.sleep(0.03)
                    assert (await storage.stat("assets", "a")).etag == newer.etag
            for turn in range(10):
                if await times_out(auth.sign_in("a@town.example", "correct horse"), 0.004 * turn):
                    cancelled += 1
                    session = await auth.sign_in("b@town.example", "correct horse")
                    await asyncio.sleep(0.15)
                    held = await auth.get_session()
                    assert held is not None and held.user.id == session.user.id
            assert cancelled > 0

    run(main())


def test_an_answer_that_nobody_gets_is_not_lost(tmp_path: Path) -> None:
    async def cancel(waiting: Awaitable[object]) -> None:
        task = asyncio.ensure_future(waiting)
        await asyncio.sleep(0)
        # The loop is busy while the answer comes.
        time.sleep(0.3)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
            ready.append(True)

    ready: list[bool] = []

    async def main() -> None:
        async with AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            storage = service.storage
            for number in range(3):
                await storage.upload("assets", f"f{number}", b"x")
                await service.spaces.create_space(f"s{number}", is_public=True)
            files = storage.iter("assets")
            await cancel(files.__anext__())
            assert [file.path async for file in files] == [f"f{number}" for number in range(len(ready), 3)]
            ready.clear()
            rows = service.export_rows(["spaces"])
            await cancel(rows.__anext__())
            assert len([row async for row in rows]) == 3 - len(ready)
            ready.clear()
            spaces = service.spaces.iter_public_spaces()
            await cancel(spaces.__anext__())
            assert len([space async for space in spaces]) == 3 - len(ready)
            ready.clear()
            content = bytes(range(256)) * 4096
            await storage.upload("assets", "large", content)
            reader = await storage.open("assets", "large")
            await cancel(reader.read(300_000))
            assert (await reader.tell(), await reader.read()) == (300_000 * len(ready), content[300_000 * len(ready) :])
            ready.clear()
            writer = await storage.open("assets", "written", "wb")
            await cancel(writer.write(b"a" * 300_000))
            if not ready:
                with pytest.raises(townsquare.Error):
                    await writer.write(b"a" * 300_000)
            assert not await storage.exists("assets", "written")
            ready.clear()
            await service.realtime.start()
            response = await client.realtime.handle_events("/events?table=spaces")
            await service.spaces.create_space("first", is_public=True)
            await cancel(response.__anext__())
            await service.spaces.create_space("second", is_public=True)
            events = b""
            while b'"second"' not in events:
                events += await asyncio.wait_for(response.__anext__(), 20)
            assert ready or b'"first"' in events
            await response.close()

    run(main())


def test_cancelling_a_task_leaves_other_tasks_running(tmp_path: Path, upstream: Upstream) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k") as client:
            upstream.hold()
            patient = asyncio.create_task(client.discovery.get_trending_mini_apps())
            hasty = asyncio.create_task(client.discovery.get_trending_mini_apps())
            await wait_until(lambda: upstream.requests)
            hasty.cancel()
            with pytest.raises(asyncio.CancelledError):
                await hasty
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.discovery.refresh(), 0.05)
            upstream.release()
            assert len(await patient) == 4

    run(main())


def test_close_ends_waiting_tasks(tmp_path: Path, upstream: Upstream) -> None:
    async def main() -> None:
        client = await AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k")
        upstream.hold()
        waiting = asyncio.create_task(client.discovery.get_trending_mini_apps())
        await wait_until(lambda: upstream.requests)
        await client.close()
        with pytest.raises(townsquare.Error) as caught:
            await waiting
        assert caught.value.kind == "closed"

    run(main())


def test_a_waiting_task_keeps_a_dropped_client_open(tmp_path: Path, upstream: Upstream) -> None:
    async def main() -> None:
        client = await AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k")
        upstream.hold()
        waiting = asyncio.create_task(client.discovery.get_trending_mini_apps())
        await wait_until(lambda: upstream.requests)
        del client
        gc.collect()
        upstream.release()
        assert len(await waiting) == 4

    run(main())


def test_a_client_outlives_an_event_loop_that_ends_early(tmp_path: Path, upstream: Upstream) -> None:
    client = run(AsyncClient.open(tmp_path / "data", catalog_url=upstream.url, catalog_api_key="k"))
    upstream.hold()
    with pytest.raises(asyncio.TimeoutError):
        run(client.discovery.refresh(), 0.05)
    upstream.release()
    assert run(client.discovery.refresh()).total == 4
    run(client.close())


def test_a_coroutine_can_be_awaited_once(client: Client, tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "once") as other:
            coroutine: Any = other.discovery.stats()
            await coroutine
            with pytest.raises(RuntimeError, match="cannot reuse"):
                await coroutine
            closed: Any = other.discovery.stats()
            closed.close()
            with pytest.raises(RuntimeError, match="cannot reuse"):
                await closed
            thrown: Any = other.discovery.stats()
            with pytest.raises(KeyError):
                thrown.throw(KeyError("x"))
            with pytest.raises(KeyError):
                other.discovery.stats().throw(KeyError)

    run(main())


def test_a_coroutine_without_await_warns(tmp_path: Path) -> None:
    client = run(AsyncClient.open(tmp_path / "data"))
    with pytest.warns(RuntimeWarning, match="coroutine 'refresh' was never awaited"):
        client.discovery.refresh()  # type: ignore[unused-coroutine]
        gc.collect()
    run(client.close())


def test_a_forgotten_await_is_named(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            space: Any = (await client.as_service()).spaces.create_space("Harbor")
            with pytest.raises(AttributeError, match="'create_space' has no attribute 'id' before it is awaited: write `await`"):
                space.id
            assert (await space).name == "Harbor"
            spaces: Any = client.spaces.get_public_spaces()
            with pytest.raises(TypeError, match="'get_public_spaces' is not iterable before it is awaited: write `await`"):
                list(spaces)
            assert await spaces == []
            with pytest.raises(AttributeError, match="the coroutine 'get_public_spaces' has no attribute 'id'"):
                spaces.id
            assert not hasattr(client.spaces.get_public_spaces(), "_asyncio_future_blocking")

    with pytest.warns(RuntimeWarning, match="never awaited"):
        run(main())


def test_an_awaitable_around_a_call_can_be_awaited_in_each_way(tmp_path: Path) -> None:
    class Around:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __await__(self) -> Generator[Any, Any, Any]:
            return (yield from self.inner.__await__())

    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            service = await client.as_service()
            await service.storage.upload("assets", "a", b"x")
            assert await Around(service.storage.download("assets", "a")) == b"x"
            (opened,) = await asyncio.gather(service.storage.open("assets", "a"))
            assert await opened.read() == b"x"
            await opened.close()
            opened = await asyncio.wait_for(service.storage.open("assets", "a"), 5)
            await opened.close()


    run(main())


def test_an_answer_that_is_not_ready_needs_a_running_loop(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        AsyncClient.open(tmp_path / "data").send(None)


def test_the_interpreter_exits_while_tasks_wait(tmp_path: Path, upstream: Upstream) -> None:
    upstream.hold()
    program = f"""
import asyncio, townsquare
async def main():
    client = await townsquare.AsyncClient.open({str(tmp_path / "data")!r}, catalog_url={upstream.url!r}, catalog_api_key="k")
    task = asyncio.ensure_future(client.discovery.refresh())
    while not (await client.discovery.stats()).is_refreshing:
        await asyncio.sleep(0)
    globals().update(client=client, task=task)
loop = asyncio.new_event_loop()
loop.run_until_complete(main())
"""
    child = run_python(program)
    assert child.returncode == 0 and "panicked" not in child.stderr, child.stderr


async def wait_until(condition: Callable[[], object], seconds: float = 20) -> None:
    """`conftest.wait_until` for coroutines."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        assert asyncio.get_running_loop().time() < deadline, f"the condition was not true within {seconds} s"
        await asyncio.sleep(0.005)
