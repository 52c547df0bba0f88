"""Files: storing, reading, listing, errors and arguments (SPEC 2.8, 4.4, 7)."""

from __future__ import annotations

import array
import mmap
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import townsquare
from conftest import remote_options, run
from townsquare import AsyncClient, Client, FileInfo, Storage

LARGE = bytes(range(256)) * 1_024
"""256 KiB: over the default of `inline_file_limit`."""


@pytest.fixture(scope="module")
def remote(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """A client on PostgreSQL and S3."""
    with Client.open(tmp_path_factory.mktemp("remote"), **remote_options()) as client:
        yield client


@pytest.fixture(params=["default", "0", "unlimited", "remote"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """The service's files, with the small ones, none or all of them in the database, and on PostgreSQL and S3."""
    if request.param == "remote":
        client: Client = request.getfixturevalue("remote")
        storage = client.as_service().storage
        yield storage
        for bucket in ("spaces", "private", "assets"):
            for info in storage.list(bucket, limit=1_000):
                storage.delete(bucket, info.path)
        return
    limits = {"default": None, "0": 0, "unlimited": 1_000_000_000}
    with Client.open(tmp_path / "files", inline_file_limit=limits[request.param]) as client:
        yield client.as_service().storage


def failure(call: Callable[[], Any]) -> tuple[str, int, str]:
    """Kind, status and sentence, without a reason, of the error that `call` raises."""
    with pytest.raises(townsquare.Error) as caught:
        call()
    assert caught.value.explanation
    sentence = re.sub("(Invalid file or request|(Unauthorized|Forbidden) file access|File too large|File not found): .*", r"\1", str(caught.value))
    return caught.value.kind, caught.value.status, sentence


@pytest.mark.parametrize("data", [b"", b"x", b"a" * 65_536, b"b" * 65_537, LARGE], ids=len)
def test_a_file_comes_back_whole(files: Storage, data: bytes) -> None:
    info = files.upload("assets", "images/cat", data)
    assert (info.bucket, info.path, info.size, info.cache_control) == ("assets", "images/cat", len(data), 3600)
    assert (info.metadata, info.owner_id) == ({}, None)
    assert files.download("assets", "images/cat") == data
    assert files.stat("assets", "images/cat") == info and files.list("assets") == [info]
    files.delete("assets", "images/cat")
    assert files.list("assets") == []
    assert failure(lambda: files.download("assets", "images/cat")) == ("not_found", 404, "Download failed: File not found")


def test_options_are_kept_and_upload_replaces_all_of_them(files: Storage) -> None:
    metadata = {"author": "Ann", "year-2": "2024"}
    first = files.upload("assets", "a", b"1", cache_control=60, content_type="text/plain", metadata=metadata)
    assert (first.cache_control, first.content_type, first.metadata) == (60, "text/plain", metadata)
    assert isinstance(first.updated_at, datetime) and first.updated_at.tzinfo == timezone.utc
    second = files.upload("assets", "a", b"1", content_type=None, metadata=None, if_match=None)
    assert (second.cache_control, second.metadata) == (3600, {})
    assert second.etag != first.etag and second.updated_at > first.updated_at
    assert first != second and files.stat("assets", "a") == second


def test_the_content_type_is_guessed_from_name_and_content(files: Storage) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(20)
    for path, data, expected in [
        ("images/cat.png", b"x", "image/png"),
        ("images/cat", png, "image/png"),
        ("town/tabs/Home", b'{"a": 1}', "application/json"),
        ("data", b"\x00\x01", "application/octet-stream"),
    ]:
        assert files.upload("assets", path, data).content_type == expected


def test_upsert_false_refuses_an_existing_file(files: Storage) -> None:
    info = files.upload("assets", "a", b"1", upsert=False)
    kind, status, sentence = failure(lambda: files.upload("assets", "a", b"2", upsert=False))
    assert (kind, status) == ("already_exists", 409) and sentence.startswith("Upload failed: Storage error: ")
    assert files.stat("assets", "a") == info


def test_if_match_makes_edits_safe(files: Storage) -> None:
    first = files.upload("assets", "a", b"1", if_match="")
    with pytest.raises(townsquare.ConflictError) as caught:
        files.upload("assets", "a", b"2", if_match="")
    assert (caught.value.kind, caught.value.status, caught.value.operation) == ("conflict", 412, "upload")
    second = files.upload("assets", "a", b"2", if_match=first.etag)
    for stale in (first.etag, "no etag"):
        assert failure(lambda: files.upload("assets", "a", b"3", if_match=stale))[:2] == ("conflict", 412)
    assert failure(lambda: files.upload("assets", "b", b"3", if_match=second.etag))[:2] == ("conflict", 412)
    assert files.download("assets", "a") == b"2"


def test_every_buffer_can_be_uploaded_and_strings_cannot(files: Storage, tmp_path: Path) -> None:
    (tmp_path / "mapped").write_bytes(b"abcd")
    with open(tmp_path / "mapped", "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        strided = memoryview(b"aXbXcXdX")[::2]
        sources: list[Any] = [bytearray(b"abcd"), memoryview(b"abcd"), strided, array.array("B", b"abcd"), mapped]
        for source in sources:
            files.upload("assets", "a", source)
            assert files.download("assets", "a") == b"abcd"
    for wrong in ("abcd", 4, [1, 2], None):
        with pytest.raises(TypeError, match="bytes"):
            files.upload("assets", "a", wrong)  # type: ignore[arg-type]


def test_a_buffer_may_change_after_the_upload(files: Storage) -> None:
    buffer = bytearray(LARGE)
    files.upload("assets", "a", buffer)
    buffer[:4] = b"XXXX"
    buffer.clear()
    assert files.download("assets", "a") == LARGE


def test_a_range_is_start_to_before_end(files: Storage) -> None:
    for data in (b"0123456789", LARGE):
        files.upload("assets", "a", data)
        for start, end in [(0, 4), (3, 4), (0, 0), (5, 5), (2, len(data)), (4, 10**15), (len(data) - 1, len(data))]:
            assert files.download("assets", "a", range=(start, end)) == data[start:end]
        for wrong in [(4, 3), (len(data) + 1, len(data) + 2), (-1, 3), (0, -1), (0, 2**64)]:
            assert failure(lambda: files.download("assets", "a", range=wrong))[:2] == ("invalid_input", 400)
    with pytest.raises(TypeError):
        files.download("assets", "a", range=5)  # type: ignore[arg-type]


def test_list_pages_in_path_order(files: Storage) -> None:
    paths = ["a", "b/1", "b/10", "b/2", "b2", "Ä", "中"]
    for path in reversed(paths):
        files.upload("assets", path, path.encode())
    files.upload("spaces", "b/other-bucket", b"")

    def listed(*arguments: Any, **keywords: Any) -> list[str]:
        return [info.path for info in files.list("assets", *arguments, **keywords)]

    assert listed() == listed("") == paths
    assert listed("b/") == ["b/1", "b/10", "b/2"] and listed("b") == ["b/1", "b/10", "b/2", "b2"] and listed("x") == []
    pages: list[str] = []
    while page := listed("", 2, after=pages[-1] if pages else None):
        pages += page
    assert pages == paths
    assert listed("b/", 1, after="b/1") == ["b/10"]
    for limit in (0, -1, 1001, 2**70):
        assert failure(lambda: files.list("assets", "", limit))[:2] == ("invalid_input", 400)


def test_copy_keeps_the_attributes_and_move_takes_the_file_away(files: Storage) -> None:
    for data in (b"small", LARGE):
        source = files.upload("assets", "from/a", data, cache_control=5, content_type="text/plain", metadata={"k": "v"})
        copied = files.copy("assets", "from/a", "to/b", upsert=True)
        moved = files.move("assets", "from/a", "to/c", upsert=True)
        for info in (copied, moved):
            assert (info.size, info.cache_control, info.content_type, info.metadata) == (len(data), 5, "text/plain", {"k": "v"})
            assert files.download("assets", info.path) == data
        assert copied.etag != source.etag
        assert [info.path for info in files.list("assets")] == ["to/b", "to/c"]
    for call in (files.copy, files.move):
        assert failure(lambda: call("assets", "to/b", "to/c"))[:2] == ("already_exists", 409)
        assert failure(lambda: call("assets", "gone", "to/d"))[:2] == ("not_found", 404)


@pytest.mark.parametrize("path", ["", "../a", "a\0b", "e\u0301", "\ud800"], ids=ascii)
def test_a_bad_path_is_refused_with_its_reason(files: Storage, path: str) -> None:
    calls: list[Callable[[], Any]] = [
        lambda: files.upload("assets", path, b"x"),
        lambda: files.download("assets", path),
        lambda: files.stat("assets", path),
        lambda: files.delete("assets", path),
        lambda: files.open("assets", path),
        lambda: files.open("assets", path, "wb"),
    ]
    for call in calls:
        with pytest.raises(townsquare.InvalidInputError, match=" failed: Invalid file or request: ") as caught:
            call()
        assert caught.value.status == 400 and caught.value.__cause__ is None
    assert files.list("assets") == []


@pytest.mark.parametrize("path", ["%2e%2e/a", "Café", "😀"])
def test_other_names_are_only_names(files: Storage, path: str) -> None:
    for data in (b"x", LARGE):
        assert files.upload("assets", path, data).path == path
        assert files.download("assets", path) == data


BAD_OPTIONS: list[dict[str, Any]] = [
    {"cache_control": -1},
    {"cache_control": 31_536_001},
    {"cache_control": 2**40},
    {"content_type": "text/é"},
    {"metadata": {"a": "b\n"}},
    {"metadata": {"a": "\ud800"}},
]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=str)
def test_a_bad_option_is_refused(files: Storage, options: dict[str, Any]) -> None:
    sentence = "Upload failed: Invalid file or request"
    assert failure(lambda: files.upload("assets", "a", b"x", **options)) == ("invalid_input", 400, sentence)
    assert failure(lambda: files.open("assets", "a", "wb", **options)) == ("invalid_input", 400, sentence)
    assert files.list("assets") == []


def test_options_of_a_wrong_type_and_unknown_ones_raise_type_error(files: Storage) -> None:
    wrong: list[dict[str, Any]] = [
        {"cache_control": "60"}, {"upsert": "yes"}, {"content_type": 5}, {"metadata": ["a"]}, {"metadata": {"a": 1}},
        {"if_match": 5}, {"verify": 1}, {"unknown": True}, {"content-type": "text/plain"},
    ]  # fmt: skip
    for options in wrong:
        with pytest.raises(TypeError):
            files.upload("assets", "a", b"x", **options)
        with pytest.raises(TypeError):
            files.upload_from("assets", "a", "x", **options)
    for mode in ("r", "w", "ab", "rb+", ""):
        with pytest.raises(ValueError):
            files.open("assets", "a", mode)  # type: ignore[call-overload]
    with pytest.raises(ValueError):
        files.open("assets", "a", "rb", upsert=True)  # type: ignore[call-overload]


def test_the_status_table_of_the_specification(client: Client, files: Storage) -> None:
    client.auth.sign_up("ann@town.example", "correct horse")
    anonymous = client.as_service()
    user = client.as_user(anonymous.auth.sign_in("ann@town.example", "correct horse").access_token)
    with Client.open("limited", max_file_size=10) as limited:
        too_large = failure(lambda: limited.as_service().storage.upload("assets", "a", b"x" * 11))
    expected = [
        (lambda: user.storage.upload("assets", "..", b""), "invalid_input", 400, "Upload failed: Invalid file or request"),
        (lambda: client.storage.upload("assets", "a", b""), "unauthorized", 401, "Upload failed: Unauthorized file access"),
        (lambda: user.storage.upload("spaces", "a", b""), "forbidden", 403, "Upload failed: Forbidden file access"),
        (lambda: user.storage.download("assets", "a"), "not_found", 404, "Download failed: File not found"),
        (lambda: user.storage.delete("assets", "a"), "not_found", 404, "Delete failed: File not found"),
    ]
    for call, kind, status, sentence in expected:
        assert failure(call) == (kind, status, sentence)
    assert too_large == ("too_large", 413, "Upload failed: File too large")
    for call, prefix in [
        (lambda: files.stat("assets", "a"), "Get file"),
        (lambda: files.copy("assets", "a", "b"), "Copy"),
        (lambda: files.move("assets", "a", "b"), "Move"),
        (lambda: files.list("unknown"), "List files"),
        (lambda: files.download_to("assets", "a", "target"), "Download"),
        (lambda: files.open("assets", "a"), "Download"),
        (lambda: files.signed_url("assets", "a"), "Sign URL"),
    ]:
        assert failure(call) == ("not_found", 404, f"{prefix} failed: File not found")


def test_records_are_frozen_and_equal_by_value(files: Storage) -> None:
    info = files.upload("assets", "a", b"1", metadata={"k": "v"})
    again = files.stat("assets", "a")
    assert info == again and hash(info) == hash(again) and repr(info).startswith("FileInfo(bucket='assets', path='a', size=1,")
    assert set(info.to_dict()) == {
        "bucket", "path", "size", "content_type", "cache_control", "etag", "metadata", "owner_id", "updated_at",
    }  # fmt: skip
    with pytest.raises(AttributeError):
        info.size = 5  # type: ignore[misc]


def test_declared_buckets_are_a_mapping(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data", buckets={"icons": "public", "notes": "private"}) as client:
        files = client.as_service().storage
        for bucket in ("icons", "notes"):
            assert files.upload(bucket, "a/b", b"1").bucket == bucket
        assert client.storage.download("icons", "a/b") == b"1"
        assert failure(lambda: client.storage.download("notes", "a/b"))[:2] == ("not_found", 404)
        assert failure(lambda: files.upload("other", "a", b"1"))[:2] == ("not_found", 404)
    wrong: list[Any] = [
        {"icons": "open"}, {"assets": "private"}, {"Icons": "public"}, {"a,b": "public"}, {"a=b": "public"}, {1: "public"},
        {"notes": "public"},
    ]  # fmt: skip
    for buckets in wrong:
        with pytest.raises(townsquare.ConfigError, match="bucket"):
            Client.open(tmp_path / "data", buckets=buckets)


def test_files_survive_a_restart_and_lie_where_other_tools_find_them(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data") as client:
        info = client.as_service().storage.upload("assets", "videos/tour", LARGE)
    assert (tmp_path / "data/files/assets/videos/tour").read_bytes() == LARGE
    with Client.open(tmp_path / "data") as client:
        assert client.storage.stat("assets", "videos/tour") == info
        assert client.storage.download("assets", "videos/tour") == LARGE


def test_a_memory_store_forgets_and_a_file_url_names_a_folder(tmp_path: Path) -> None:
    with Client.open(tmp_path / "one", storage_url="memory:///") as client:
        client.as_service().storage.upload("assets", "a", LARGE)
        assert client.storage.download("assets", "a") == LARGE
    with Client.open(tmp_path / "two", storage_url=(tmp_path / "store").as_uri()) as client:
        client.as_service().storage.upload("assets", "a", b"small")
    assert (tmp_path / "store/assets/a").read_bytes() == b"small"
    with pytest.raises(townsquare.ConfigError, match="storage_url"):
        Client.open(tmp_path / "three", storage_url="ftp://x")


def test_export_writes_every_file_and_repair_reports_nothing(files: Storage, tmp_path: Path) -> None:
    stored = {"assets/a/b": b"1", "spaces/s/tabs/Home": LARGE, "private/u/homebase": b""}
    for name, data in stored.items():
        bucket, path = name.split("/", 1)
        files.upload(bucket, path, data)
    seen: list[tuple[int, int]] = []
    assert files.export_files(tmp_path / "out", progress=lambda done, total: seen.append((done, total))) == 3
    assert {name: (tmp_path / "out" / name).read_bytes() for name in stored} == stored and seen[-1] == (3, 3)
    report = files.repair()
    assert (report.finished, report.orphans_removed, report.rows_removed, report.mismatched) == (0, 0, 0, [])
    assert failure(lambda: files.export_files(tmp_path / "out"))[:2] == ("invalid_input", 400)


def test_repair_removes_an_orphan_and_reports_a_changed_file(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data") as client:
        files = client.as_service().storage
        for name in ("kept", "changed", "gone"):
            files.upload("assets", name, LARGE)
        folder = tmp_path / "data/files/assets"
        (folder / "orphan").write_bytes(b"x")
        (folder / "changed").write_bytes(b"other bytes")
        (folder / "gone").unlink()
        assert failure(lambda: files.download("assets", "gone"))[:2] == ("not_found", 404)
        assert failure(lambda: files.download("assets", "changed"))[:2] == ("internal", 500)
        report = files.repair()
        assert (report.orphans_removed, report.rows_removed, report.mismatched) == (1, 1, ["assets/changed"])
        assert not (folder / "orphan").exists() and [info.path for info in files.list("assets")] == ["changed", "kept"]


def test_async_methods_answer_as_the_blocking_ones(tmp_path: Path) -> None:
    async def main() -> None:
        async with await AsyncClient.open(tmp_path / "data") as client:
            files = (await client.as_service()).storage
            for data in (b"small", LARGE):
                info: FileInfo = await files.upload("assets", "a", bytearray(data), metadata={"k": "v"})
                assert await files.download("assets", "a") == data and await files.stat("assets", "a") == info
                assert await files.download("assets", "a", range=(1, 3)) == data[1:3]
            moved = await files.move("assets", "a", "b")
            copied = await files.copy("assets", "b", "c")
            assert await files.list("assets", "", 10, after="a") == [moved, copied]
            await files.delete("assets", "b")
            with pytest.raises(townsquare.NotFoundError, match="^Delete failed: File not found$"):
                await files.delete("assets", "b")
            assert await files.export_files(tmp_path / "out", progress=lambda done, total: None) == 1
            assert (await files.repair()).mismatched == []
            with pytest.raises(TypeError):
                await files.upload("assets", "a", "text")  # type: ignore[arg-type]
            user = UUID(int=5)
            assert (await files.secure_upload("private", f"{user}/homebase", b"{}", user)).size == 2

    run(main())


def test_a_database_knows_its_store_and_repair_deletes_nothing_in_another_one(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data") as client:
        files = client.as_service().storage
        files.upload("assets", "a", LARGE)
        (tmp_path / "data/files").rename(tmp_path / "away")
        with pytest.raises(townsquare.ConfigError, match="^Repair failed: Option storage_url: the object store"):
            files.repair()
        (tmp_path / "away").rename(tmp_path / "data/files")
        assert files.repair().rows_removed == 0 and files.download("assets", "a") == LARGE
    with pytest.raises(townsquare.ConfigError, match="^Open failed: Option storage_url: the object store"):
        Client.open(tmp_path / "data", storage_url=(tmp_path / "empty").as_uri())
    with Client.open(tmp_path / "data") as client:
        assert client.storage.download("assets", "a") == LARGE


def test_a_download_replaces_regular_files_only(files: Storage, tmp_path: Path) -> None:
    files.upload("assets", "a", b"new")
    (tmp_path / "folder").mkdir()
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    for target in (tmp_path / "folder", Path("/dev/null")):
        assert failure(lambda: files.download_to("assets", "a", target))[:2] == ("invalid_input", 400)
    files.download_to("assets", "a", tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "real").stat().st_mode & 0o777 == 0o640


def test_an_export_names_the_files_that_it_lacks(tmp_path: Path) -> None:
    with Client.open(tmp_path / "data") as client:
        files = client.as_service().storage
        for name in ("gone", "kept"):
            files.upload("assets", name, LARGE)
        (tmp_path / "data/files/assets/gone").unlink()
        kind, status, sentence = failure(lambda: files.export_files(tmp_path / "out"))
        assert (kind, status) == ("internal", 500) and "assets/gone" in sentence
        assert (tmp_path / "out/assets/kept").read_bytes() == LARGE
        with pytest.raises(townsquare.Error, match="assets/gone"):
            client.backup(tmp_path / "backup.db")
        assert not (tmp_path / "backup.db").exists()


@pytest.mark.parametrize("prefix", ["/", "a//", "..", "../"])
def test_a_prefix_that_no_path_can_have_is_refused(files: Storage, prefix: str) -> None:
    assert failure(lambda: files.list("assets", prefix)) == ("invalid_input", 400, "List files failed: Invalid file or request")
