"""Responses and file objects that the host abandons: their files are closed when the last reference goes (DESIGN 7)."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import run, run_python, wait_until
from townsquare import AsyncClient, Client

CONTENT = bytes(2_000_000)


def open_objects(folder: Path) -> list[str]:
    """The objects that are open in this process."""
    names = []
    for descriptor in Path("/proc/self/fd").iterdir():
        try:
            names.append(os.readlink(descriptor))
        except OSError:
            pass
    return [name for name in names if name.startswith(str(folder / "files/assets"))]


@pytest.fixture
def no_collections() -> Iterator[None]:
    """Switches the garbage collector off."""
    if not Path("/proc/self/fd").exists():
        pytest.skip("the open files of a process are not listed on this system")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def test_abandoned_responses_and_files_are_closed_without_a_collection(
    client: Client, data_dir: Path, no_collections: None
) -> None:
    files = client.as_service().storage
    files.upload("assets", "a", CONTENT)
    stream, file = files.handle_file("GET", "/assets/a"), files.open("assets", "a")
    next(stream)
    file.read(10)
    assert len(open_objects(data_dir)) == 2
    del stream, file
    wait_until(lambda: not open_objects(data_dir))


def test_abandoned_async_responses_and_files_are_closed_without_a_collection(tmp_path: Path, no_collections: None) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            files = (await client.as_service()).storage
            await files.upload("assets", "a", CONTENT)
            stream, file = await files.handle_file("GET", "/assets/a"), await files.open("assets", "a")
            await stream.__anext__()
            await file.read(10)
            assert len(open_objects(tmp_path / "data")) == 2
            del stream, file
            wait_until(lambda: not open_objects(tmp_path / "data"))

    run(main())


LEAVING = """
import sys, townsquare
client = townsquare.Client.open(sys.argv[1])
writer = client.as_service().storage.open("assets", "a", "wb")
writer.write(bytes(300_000))
"""


def test_the_interpreter_exits_with_an_open_writer(tmp_path: Path) -> None:
    child = run_python(LEAVING, tmp_path / "data")
    assert (child.returncode, child.stderr) == (0, "")
    with Client.open(tmp_path / "data") as client:
        assert client.as_service().storage.list("assets") == []
