"""A typed program that mypy --strict and basedpyright accept, apart from `misspelt`. It is never run."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import shutil
import zipfile
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Any, Literal, Optional
from uuid import UUID

import townsquare
from townsquare import (
    AsyncClient,
    AsyncHttpStream,
    AsyncStorage,
    Author,
    Client,
    CommunityConfig,
    CommunityDomain,
    DiscoveryStats,
    Fidget,
    FileInfo,
    Finding,
    MiniApp,
    PublicSpace,
    RepairReport,
    Session,
    Space,
    SpaceRegistration,
    SpaceWithFidgets,
    Storage,
    Subscription,
    User,
    decrypt_file,
    encrypt_file,
    sign_file,
    verify_file,
)


def blocking(folder: Path) -> list[MiniApp]:
    with Client.open(folder, refresh_interval=timedelta(minutes=5), catalog_timeout=2.5, catalog_tries=2) as client:
        apps: townsquare.MiniApps = client.discovery.get_trending_mini_apps("7d", 20, categories=["games"], networks=("base",))
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
    return list(apps)


def tables(folder: Path, backup: Path, ada: UUID) -> dict[str, Any]:
    Client.restore(backup, folder)
    with Client.open(folder, expose_owner_email="verified") as client:
        service: Client = client.with_client_key("203.0.113.7").as_service()
        space: Space = service.spaces.create_space("Harbor", description=None, is_public=True, owner_id=ada)
        made: list[Space] = service.spaces.create_spaces([{"name": "a"}, {"name": "b", "is_public": True}])
        space = service.spaces.update_space(str(space.id), name="Haven", description=None)
        public: list[PublicSpace] = client.spaces.get_public_spaces(10, offset=0)
        public = client.spaces.get_public_spaces(10, after=public[-1])
        public = client.spaces.get_public_spaces(10, after=public[-1].id)
        for each in client.spaces.iter_public_spaces(page_size=50):
            print(each.owner)
        full: list[SpaceWithFidgets] = client.spaces.get_user_spaces(ada)
        for each in public:
            email: Optional[str] = each.owner.email if each.owner is not None else None
            print(each.name, email, each.created_at.isoformat())
        fidget: Fidget = service.fidgets.create_fidget(space.id, "clock", config={"zone": "UTC"})
        service.fidgets.save_positions(space.id, {fidget.id: {"x": 1}})
        service.fidgets.save_positions(space.id, {str(fidget.id): None})
        client.backup(folder / "copy.db")
        state: Literal["new", "empty", "unfinished"] = client.check_move(data_dir=folder / "moved", max_owner_files=5)
        print(state)
        moved: int = client.move_to(data_dir=folder / "moved", sessions=False, max_owner_files=5).rows["users"]
        print(moved)
        findings: list[Finding] = client.check(full=True)
        severity: Literal["error", "warning", "note"] = findings[0].severity
        print(severity, findings[0].code, findings[0].message, findings[0].advice)
        print(full[0].fidgets[0].config, public._repr_html_() if isinstance(public, townsquare.SpaceList) else made)
        config: CommunityConfig = service.communities.save_community_config("town", brand_config={}, is_published=True)
        domain: CommunityDomain = service.communities.save_community_domain("town", "town.example", "custom")
        kind: Literal["blank_subdomain", "custom", "other"] = domain.domain_type
        row: Optional[SpaceRegistration] = client.communities.get_space_registration(space.id)
        print(config.admin_identity_public_keys, kind, row.fid if row is not None else None)
        return client.communities.get_active_community_config("town") or {}


def files(client: Client, user_id: UUID, key: str) -> bytes:
    storage: Storage = client.storage
    info: FileInfo = storage.upload("assets", "a", b"1", cache_control=60, metadata={"k": "v"}, if_match="")
    info = storage.upload_from("assets", "b", Path("source"), progress=lambda done, total: print(done, total), verify=True)
    info = storage.secure_upload("private", f"{user_id}/homebase", memoryview(b"{}"), user_id, upsert=False)
    content: bytes = storage.download("assets", "a", range=(0, 4)) + storage.download("assets", "a", range=(4, None))
    with open("source", "rb") as source:
        info = storage.upload("assets", "a", source)
    info = storage.upload("assets", "a", (bytes([byte]) for byte in content))
    client.realtime.handle_events("/events?table=files", [("authorization", "Bearer …"), (b"accept", b"*/*")]).close()
    size: int = storage.download_to("assets", "a", "target").size
    page: list[FileInfo] = storage.list("assets", "images/", 20, after=info.path)
    print(storage.copy("assets", "a", "c").etag, storage.move("assets", "c", "d", upsert=True).updated_at, page, size)
    reader: IO[bytes] = storage.open("assets", "a")
    with storage.open("assets", "a", "rb") as file, storage.open("assets", "e", "wb", content_type="text/plain") as target:
        shutil.copyfileobj(file, target)
        print(json.load(file), zipfile.ZipFile(file).namelist(), file.info.size, target.info)
    url: str = storage.signed_url("assets", "a", expires_in=timedelta(hours=1), method="GET")
    url = storage.signed_url("assets", "a", method="PUT", max_size=1024, content_type="text/plain") or url
    with storage.handle_file("GET", url, headers={"range": "bytes=0-3"}) as stream:
        body: Iterator[bytes] = stream
        print(stream.status, stream.headers, b"".join(body), reader.read(5))
    report: RepairReport = storage.repair()
    signed: dict[str, Any] = encrypt_file(content, key, file_name="homebase")
    print(report.mismatched, storage.export_files("out"), verify_file(signed), sign_file("{}", key, timestamp=None))
    storage.delete("assets", "a")
    return decrypt_file(signed, key)


async def async_files(client: AsyncClient) -> list[bytes]:
    storage: AsyncStorage = client.storage
    async with storage.open("assets", "a", "wb", metadata={"k": "v"}) as target:
        written: int = await target.write(b"x")
    async with storage.open("assets", "a") as file:
        lines = [line async for line in file]
    reader = await storage.open("assets", "a", "rb")
    content: bytes = await reader.read()
    stream: AsyncHttpStream = await storage.handle_file("GET", "/assets/a")
    async with storage.handle_file("GET", "/assets/a") as response, client.realtime.handle_events("/events?table=files") as events:
        print(response.status, events.headers)

    async def chunks() -> AsyncIterator[bytes]:
        yield content

    print((await storage.upload("assets", "a", chunks())).size)
    print(written, content, (await storage.stat("assets", "a")).size, stream.status)
    return lines + [chunk async for chunk in stream]


def signing_in(folder: Path, key: str) -> Optional[User]:
    with Client.open(folder, persist_session=True) as client:
        user: User = client.auth.sign_up("ann@town.example", "correct horse")
        session: Session = client.auth.sign_in("ann@town.example", "correct horse")
        print(session.expires_at.isoformat(), session.user.email, client.as_user(session.access_token).spaces)
        subscription: Subscription = client.auth.on_auth_state_change(lambda event, session: print(event, session))
        claim: dict[str, Any] = townsquare.identity_claim(user.id, key, client.auth.identity_audience(), timestamp=datetime.now().astimezone())
        client.auth.link_identity(claim)
        keys: list[str] = client.as_service().auth.identities_of(user.id)
        print([change.cursor for change in client.realtime.changes(table="users", until=client.realtime.cursor())], keys)
        session = client.auth.refresh_session()
        session = client.auth.set_session(client.auth.refresh_session(session.refresh_token).refresh_token)
        user = client.auth.update_user(current_password="correct horse", email="ann@new.example")
        subscription.unsubscribe()
        client.auth.delete_user(current_password="correct horse")
        client.as_service().auth.delete_user(user.id)
        current: Optional[Session] = client.auth.get_session()
        client.auth.sign_out()
        return current.user if current is not None else None


def records(space: PublicSpace, apps: list[MiniApp]) -> list[dict[str, Any]]:
    renamed: PublicSpace = dataclasses.replace(space, name="Quay")
    owner = townsquare.Owner(space.id, email=None)
    match renamed.owner:
        case townsquare.Owner(id, email):
            print(id, email, owner.to_json())
    return [dataclasses.asdict(app) for app in apps]


def listener(event: str, session: Optional[Session]) -> None:
    print(event, session.user.id if session is not None else None)


async def awaiting_sign_in(client: AsyncClient) -> None:
    session: Session = await client.auth.sign_in("ann@town.example", "correct horse")
    handle: AsyncClient = await client.as_user(session.access_token)
    subscription: Subscription = await handle.auth.on_auth_state_change(listener)
    await asyncio.to_thread(subscription.unsubscribe)
    await client.auth.sign_out()


async def awaiting_tables(client: AsyncClient) -> str:
    service = await client.as_service()
    space, fidgets = await asyncio.gather(service.spaces.create_space("Harbor"), client.fidgets.get_space_fidgets("…"))
    community: Optional[str] = await client.communities.resolve_community("town.example")
    return f"{space.name} {len(fidgets)} {community}"


def misspelt(rows: list[dict[str, int]]) -> None:
    """What a type checker refuses: each comment is an error of mypy --strict where there is nothing to ignore.

    test_types.py checks that each of these lines is an error of basedpyright too.
    """
    Client()  # type: ignore[call-arg]
    AsyncClient()  # type: ignore[call-arg]
    Client.open("town", durabilty="full")  # type: ignore[call-arg]
    Client.open("town", durability="fully")  # type: ignore[arg-type]
    AsyncClient.open("town", refresh_intervall=5)  # type: ignore[call-arg]
    townsquare.Owner("ann")  # type: ignore[call-arg,arg-type]
    townsquare.shared("town", max_owner_space=5)  # type: ignore[call-arg]
    client = townsquare.shared("town")
    client.spaces.create_spaces([{"nam": "Harbor"}])  # type: ignore[typeddict-item,typeddict-unknown-key]
    client.fidgets.create_fidgets("…", [{"type": "clock", "colour": "red"}])  # type: ignore[typeddict-unknown-key]
    client.realtime.changes(table="space")  # type: ignore[arg-type]
    client.realtime.changes(table="spaces", until=5)  # type: ignore[arg-type]
    client.check_move(data_dir="moved", sessions=False)  # type: ignore[call-arg]
    client.realtime.live(table="users ")  # type: ignore[arg-type]


def rows_and_options() -> None:
    space: townsquare.NewSpace = {"name": "Harbor", "is_public": True, "description": None}
    fidget: townsquare.NewFidget = {"type": "clock", "config": {"zone": "UTC"}}
    login: townsquare.NewCredential = {"email": "ann@town.example", "password_hash": "$2b$…"}
    options: townsquare.OpenOptions = {"durability": "normal", "catalog_url": Path("apps.json"), "event_heartbeat": 5}
    client = townsquare.shared("town", **options)
    with Client.open("town", max_owner_spaces=5, change_retention=timedelta(days=1), identity_audience=None) as client:
        client.fidgets.create_fidgets(client.spaces.create_spaces([space])[0].id, [fidget])
        client.auth.import_credentials([login])
        found: Iterator[FileInfo] = client.storage.iter("assets")
        exists: bool = client.storage.exists("assets", next(found).path)
        count: int = client.storage.delete_prefix("assets", "old/")
        print(exists, count)


async def opening() -> int:
    async with AsyncClient.open("town") as client:
        async for file in client.storage.iter("assets", "images/"):
            print(file.path)
        return await client.storage.delete_prefix("assets", "images/")


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
