"""Who may read and write which file: anonymous, the owner, another user, the service (DESIGN 4, SPEC 5.5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import townsquare
from conftest import remote_options
from townsquare import Client, identity_claim, sign_file

KEY = "01" * 32
PUBLIC_KEY: str = sign_file("", KEY)["publicKey"]
CALLERS = ["anonymous", "owner", "other", "service"]
PASSWORD = "correct horse"


class Fixture:
    """A handle for each caller, and files of the owner in every bucket."""

    def __init__(self, client: Client) -> None:
        service = client.as_service()
        self.callers = {"anonymous": client, "service": service}
        self.ids: dict[str, UUID] = {}
        self.tokens: dict[str, str] = {}
        for name in ("owner", "other"):
            self.ids[name] = service.auth.sign_up(f"{name}@town.example", PASSWORD).id
            self.tokens[name] = service.auth.sign_in(f"{name}@town.example", PASSWORD).access_token
            self.callers[name] = client.as_user(self.tokens[name])
        service.auth.sign_out()
        owner = self["owner"]
        self.space = owner.spaces.create_space("Harbor", is_public=True)
        owner.auth.link_identity(identity_claim(self.ids["owner"], KEY, client.auth.identity_audience()))
        self.paths = {
            "spaces": f"{self.space.id}/tabs/Home",
            "private": f"{self.ids['owner']}/homebase",
            "assets": "icons/cat.png",
            "icons": "cat.png",
            "notes": f"{PUBLIC_KEY}/note",
        }
        for bucket, path in self.paths.items():
            owner.storage.upload(bucket, path, b"owner's")

    def __getitem__(self, caller: str) -> Client:
        return self.callers[caller]


@pytest.fixture(params=["embedded", "remote"])
def fixture(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fixture]:
    """On the embedded database and its folder, and on PostgreSQL and S3."""
    options = remote_options() if request.param == "remote" else {}
    with Client.open(tmp_path / "data", buckets={"icons": "public", "notes": "private"}, **options) as client:
        yield Fixture(client)


def outcome(call: Callable[[], Any]) -> Any:
    """`ok`, or the status of the error."""
    try:
        call()
    except townsquare.Error as error:
        return error.status
    return "ok"


PUBLIC, PRIVATE = ["spaces", "assets", "icons"], ["private", "notes"]


@pytest.mark.parametrize("caller", CALLERS)
def test_everybody_reads_public_files_and_the_owner_private_ones(fixture: Fixture, caller: str) -> None:
    files, sees = fixture[caller].storage, caller in ("owner", "service")
    for bucket, path in fixture.paths.items():
        expected = "ok" if sees or bucket in PUBLIC else 404
        for read in (
            lambda: files.download(bucket, path),
            lambda: files.download(bucket, path, range=(0, 2)),
            lambda: files.stat(bucket, path),
            lambda: files.open(bucket, path).close(),
            lambda: files.download_to(bucket, path, "target"),
            lambda: files.signed_url(bucket, path),
        ):
            assert outcome(read) == expected
        assert [info.path for info in files.list(bucket)] == ([path] if expected == "ok" else [])


@pytest.mark.parametrize("caller", CALLERS)
def test_only_the_owner_and_the_service_write(fixture: Fixture, caller: str) -> None:
    files = fixture[caller].storage
    writes, reads = caller in ("owner", "service"), caller in ("owner", "service")
    refused = 401 if caller == "anonymous" else 403
    (Path.cwd() / "source").write_bytes(b"new")

    def write(bucket: str, path: str) -> None:
        with files.open(bucket, path, "wb") as file:
            file.write(b"new")

    for bucket, path in fixture.paths.items():
        expected = "ok" if writes else refused
        for call in (
            lambda: files.upload(bucket, path, b"new"),
            lambda: files.upload_from(bucket, path, "source"),
            lambda: write(bucket, path),
            lambda: files.signed_url(bucket, path, method="PUT"),
        ):
            assert outcome(call) == expected
        # What the caller may not see is missing for it.
        change = "ok" if writes else refused if bucket in PUBLIC else 404
        assert outcome(lambda: files.move(bucket, path, f"{path}-2")) == change
        assert outcome(lambda: files.delete(bucket, f"{path}-2" if writes else path)) == change
        assert (fixture["service"].storage.list(bucket) == []) == (writes and reads)


def test_users_add_assets_and_change_only_their_own(fixture: Fixture) -> None:
    owner, other, anonymous = fixture["owner"].storage, fixture["other"].storage, fixture["anonymous"].storage
    for bucket in ("assets", "icons"):
        assert other.upload(bucket, "dog", b"dog").owner_id == fixture.ids["other"]
        assert outcome(lambda: owner.upload(bucket, "dog", b"x")) == outcome(lambda: owner.delete(bucket, "dog")) == 403
        assert outcome(lambda: anonymous.upload(bucket, "bird", b"x")) == 401
        assert other.copy(bucket, fixture.paths[bucket], "copied").owner_id == fixture.ids["other"]
        assert outcome(lambda: other.copy(bucket, "dog", fixture.paths[bucket], upsert=True)) == 403
        assert anonymous.download(bucket, "dog") == b"dog"


def test_a_private_space_hides_no_files_and_its_new_owner_writes_them(fixture: Fixture) -> None:
    path, service = fixture.paths["spaces"], fixture["service"]
    fixture["owner"].spaces.update_space(fixture.space.id, is_public=False)
    assert fixture["anonymous"].storage.download("spaces", path) == b"owner's"
    assert outcome(lambda: fixture["owner"].storage.upload("spaces", f"{uuid4()}/tabs/Home", b"x")) == 403
    assert outcome(lambda: fixture["owner"].storage.upload("spaces", "no-space", b"x")) == 403
    assert service.storage.upload("spaces", f"{uuid4()}/tabs/Home", b"x").owner_id is None


def test_a_revoked_session_reads_and_writes_nothing(fixture: Fixture) -> None:
    owner = fixture["owner"]
    writer = owner.storage.open("private", fixture.paths["private"], "wb")
    writer.write(b"late")
    fixture["service"].auth.set_password(fixture.ids["owner"], "battery staple")
    for call in (
        lambda: owner.storage.download("private", fixture.paths["private"]),
        lambda: owner.storage.upload("private", fixture.paths["private"], b"x"),
        lambda: owner.storage.delete("private", fixture.paths["private"]),
        lambda: owner.storage.list("private"),
        writer.close,
    ):
        with pytest.raises(townsquare.AuthError, match=" failed: Unauthorized file access: ") as caught:
            call()
        assert (caught.value.kind, caught.value.status) == ("unauthorized", 401)
    assert fixture["service"].storage.download("private", fixture.paths["private"]) == b"owner's"


def test_secure_upload_is_for_the_user_itself(fixture: Fixture) -> None:
    path, owner_id = fixture.paths["private"], fixture.ids["owner"]
    assert fixture["owner"].storage.secure_upload("private", path, b"1", owner_id, cache_control=5).cache_control == 5
    assert fixture["service"].storage.secure_upload("private", path, b"2", str(owner_id)).size == 1
    for caller, kind, status in [("other", "forbidden", 403), ("anonymous", "unauthorized", 401)]:
        with pytest.raises(townsquare.AuthError, match="^Unauthorized file upload$") as caught:
            fixture[caller].storage.secure_upload("private", path, b"3", owner_id)
        assert (caught.value.kind, caught.value.status, caught.value.message) == (kind, status, "Unauthorized file upload")
    # The user itself is still under the policies.
    other = fixture["other"].storage
    assert outcome(lambda: other.secure_upload("private", path, b"3", fixture.ids["other"])) == 403
    assert outcome(lambda: other.secure_upload("private", path, b"3", "no uuid")) == 400
    assert fixture["owner"].storage.download("private", path) == b"2"


@pytest.mark.parametrize("caller", ["anonymous", "owner"])
def test_export_repair_and_the_url_key_are_for_the_service(fixture: Fixture, caller: str, tmp_path: Path) -> None:
    files, kind = fixture[caller].storage, "unauthorized" if caller == "anonymous" else "forbidden"
    for call in (lambda: files.export_files(tmp_path / "out"), files.repair, files.rotate_url_key):
        with pytest.raises(townsquare.AuthError) as caught:
            call()
        assert caught.value.kind == kind
    assert not (tmp_path / "out").exists()


# Serving


def serve(client: Client, method: str, target: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
    with client.storage.handle_file(method, target, body, {name.replace("_", "-"): value for name, value in headers.items()}) as stream:
        return stream.status, stream.headers, b"".join(stream)


def test_the_handler_acts_for_the_bearer_and_for_nobody_else(fixture: Fixture) -> None:
    target = f"/private/{fixture.paths['private']}"
    for name in CALLERS:
        # Not for the caller of the handle, not even for the service.
        assert serve(fixture[name], "GET", target)[0] == 404
        assert serve(fixture[name], "PUT", target, b"x")[0] == 401
        owner = f"Bearer {fixture.tokens['owner']}"
        status, headers, body = serve(fixture[name], "GET", target, Authorization=owner)
        assert (status, body, headers["x-content-type-options"]) == (200, b"owner's", "nosniff")
        assert serve(fixture[name], "GET", target, Authorization=f"Bearer {fixture.tokens['other']}")[0] == 404
        assert serve(fixture[name], "PUT", target, b"x", Authorization=f"Bearer {fixture.tokens['other']}")[0] == 403
        assert serve(fixture[name], "GET", target, Authorization="Bearer wrong")[0] == 401


def test_the_handler_answers_http(fixture: Fixture) -> None:
    client, target = fixture["anonymous"], "/assets/icons/cat.png"
    status, headers, body = serve(client, "GET", target)
    assert (status, body, headers["content-type"], headers["content-length"]) == (200, b"owner's", "image/png", "7")
    assert "max-age=3600" in headers["cache-control"]
    etag = headers["etag"]
    assert serve(client, "HEAD", target)[0::2] == (200, b"")
    assert serve(client, "GET", target, if_none_match=etag)[0::2] == (304, b"")
    partial = serve(client, "GET", target, Range="bytes=2-3")
    assert (partial[0], partial[2], partial[1]["content-range"]) == (206, b"ne", "bytes 2-3/7")
    assert serve(client, "GET", target, Range="bytes=70-80")[0] == 416
    bearer = f"Bearer {fixture.tokens['owner']}"
    assert serve(client, "PUT", target, b"new", Authorization=bearer, If_Match='"other"')[0] == 412
    assert serve(client, "PUT", target, b"new", Authorization=bearer, If_Match=etag)[0] in (200, 201, 204)
    assert serve(client, "PUT", target, b"new", Authorization=bearer, If_None_Match="*")[0] == 412
    assert serve(client, "DELETE", target)[0] == 401
    assert serve(client, "DELETE", target, Authorization=bearer)[0] in (200, 204)
    for method, bad, expected in [("GET", target, 404), ("GET", "/assets/../x", 400), ("GET", "/unknown/x", 404), ("POST", target, 405)]:
        assert serve(client, method, bad)[0] == expected


def test_a_signed_url_acts_for_its_signer(fixture: Fixture) -> None:
    owner, path = fixture["owner"].storage, fixture.paths["private"]
    get, put = owner.signed_url("private", path), owner.signed_url("private", path, method="PUT", expires_in=60)
    stranger = fixture["anonymous"]
    assert serve(stranger, "GET", get)[0::2] == (200, b"owner's")
    assert serve(stranger, "PUT", get, b"x")[0] in (401, 403) and serve(stranger, "DELETE", put)[0] in (401, 403)
    assert serve(stranger, "PUT", put, b"put")[0] in (200, 201, 204)
    assert owner.stat("private", path).owner_id == fixture.ids["owner"]
    assert serve(stranger, "GET", get.replace(path, f"{fixture.ids['other']}/homebase"))[0] in (401, 403, 404)
    fixture["service"].storage.rotate_url_key()
    assert serve(stranger, "GET", get)[0] in (401, 403) and serve(stranger, "PUT", put, b"x")[0] in (401, 403)
    assert owner.download("private", path) == b"put"


def test_a_signed_url_for_put_binds_size_and_type(fixture: Fixture) -> None:
    files, stranger = fixture["owner"].storage, fixture["anonymous"]
    url = files.signed_url("assets", "avatar", method="PUT", max_size=4, content_type="image/png")
    assert serve(stranger, "PUT", url, b"fives", Content_Type="image/png")[0] == 413
    assert serve(stranger, "PUT", url, b"four", Content_Type="text/html")[0] == 415
    assert serve(stranger, "PUT", url.replace("max_size=4", "max_size=9"), b"fives")[0] == 401
    assert serve(stranger, "PUT", url, b"four")[0] == 201 and files.stat("assets", "avatar").content_type == "image/png"
    for wrong in ({"max_size": -1}, {"max_size": 1 << 64}, {"content_type": "png"}, {"method": "GET", "max_size": 1}):
        options: dict[str, Any] = {"method": "PUT", **wrong}
        assert outcome(lambda: files.signed_url("assets", "avatar", **options)) == 400
    with pytest.raises(TypeError):
        files.signed_url("assets", "avatar", max_size="4")  # type: ignore[arg-type]


def test_the_key_of_signed_urls_may_be_an_option(fixture: Fixture, tmp_path: Path) -> None:
    with pytest.raises(townsquare.ConfigError, match="url_signing_key"):
        Client.open(tmp_path / "other", url_signing_key="short")
    with Client.open(tmp_path / "other", url_signing_key="k" * 32) as other:
        service = other.as_service()
        service.storage.upload("private", "a/homebase", b"x")
        assert serve(other, "GET", service.storage.signed_url("private", "a/homebase"))[0] == 200
        assert outcome(service.storage.rotate_url_key) == 400


def test_a_signed_url_has_a_limited_time_and_a_known_method(fixture: Fixture) -> None:
    files = fixture["owner"].storage
    for wrong in ({"expires_in": 0}, {"expires_in": -1}, {"expires_in": float("nan")}, {"expires_in": 10**9}, {"method": "DELETE"}):
        options: dict[str, Any] = dict(wrong)
        assert outcome(lambda: files.signed_url("assets", "icons/cat.png", **options)) == 400
    with pytest.raises(TypeError):
        files.signed_url("assets", "icons/cat.png", expires_in="60")  # type: ignore[arg-type]
