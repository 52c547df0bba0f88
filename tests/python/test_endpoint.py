"""The discovery endpoint as a document and over HTTP (SPEC 4.1): OpenAPI 3.1, caches, compression, CORS."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from openapi_schema_validator import OAS31Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

from townsquare import Client

PATH = "/api/miniapp-discovery"


def get(client: Client, target: str, headers: dict[str, str] | None = None) -> Any:
    response = client.discovery.handle("GET", target, headers=headers)
    body = gzip.decompress(response.body) if response.headers.get("content-encoding") == "gzip" else response.body
    return json.loads(body)


def test_the_document_is_valid_openapi_and_every_body_fits_it(client: Client) -> None:
    document = get(client, f"{PATH}/openapi.json")
    assert list(OpenAPIV31SpecValidator(document).iter_errors()) == []

    def check(name: str, body: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        OAS31Validator(schema).validate(body)

    app = get(client, PATH)["apps"][0]
    for route, name in [
        ("", "List"),
        ("?limit=0", "Error"),
        (f"/apps/{app['id']}", "OneApp"),
        ("/apps/nobody.example", "Error"),
        ("/categories", "Categories"),
        ("/networks", "Networks"),
        (f"/suggest?query={app['name'][:4]}", "Suggestions"),
    ]:
        check(name, get(client, PATH + route))
    for action, name in [("trending", "TrendingApps"), ("search", "SearchResults"), ("refresh", "Refreshed")]:
        response = client.discovery.handle("POST", PATH, json.dumps({"action": action, "query": "a"}).encode())
        check(name, json.loads(response.body))
    with pytest.raises(Exception, match="required"):
        check("List", {"success": True})


def test_headers_of_the_request_are_read_in_any_case(client: Client) -> None:
    first = client.discovery.handle("GET", PATH, headers={"ACCEPT-ENCODING": "gzip"})
    assert first.headers["content-encoding"] == "gzip"
    again = client.discovery.handle("GET", PATH, b"", {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_origins_are_allowed_by_option(tmp_path: Path, catalog: str) -> None:
    with Client.open(tmp_path / "data", catalog_url=catalog, endpoint_origins="https://a.example") as client:
        allowed = client.discovery.handle("GET", PATH, headers={"Origin": "https://a.example"})
        other = client.discovery.handle("GET", PATH, headers={"Origin": "https://b.example"})
    assert allowed.headers["access-control-allow-origin"] == "https://a.example"
    assert "access-control-allow-origin" not in other.headers


def test_stats_name_stale_lists_and_a_truncated_catalog(client: Client) -> None:
    stats = client.discovery.refresh()
    assert (stats.stale_lists, stats.truncated) == ([], False)
