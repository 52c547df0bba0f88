"""Options by keyword, by URL and from environment variables."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import townsquare

TABLE = [line.split("|") for line in (Path(__file__).parent.parent / "options.txt").read_text(encoding="utf-8").splitlines()]
"""Name, refused value and accepted value of each option. `DIR` is a folder."""


@pytest.mark.parametrize(("name", "refused", "accepted"), TABLE, ids=[row[0] for row in TABLE])
def test_a_variable_holds_until_the_caller_gives_the_option(
    name: str, refused: str, accepted: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"TOWNSQUARE_{name.upper()}", refused)
    options: dict[str, Any] = {} if name == "data_dir" else {"data_dir": tmp_path / "data"}
    for opening in (townsquare.Client.open, townsquare.shared):
        with pytest.raises(townsquare.ConfigError, match=f"Option {name}"):
            opening(**options)
    options[name] = accepted.replace("DIR", str(tmp_path))
    townsquare.Client.open(**options).close()


@pytest.mark.parametrize(("name", "refused", "accepted"), TABLE, ids=[row[0] for row in TABLE])
def test_a_url_sets_each_option(name: str, refused: str, accepted: str, tmp_path: Path) -> None:
    def url(value: str) -> str:
        value = value.replace("DIR", str(tmp_path))
        return f"townsquare:{value}" if name == "data_dir" else f"townsquare:{tmp_path / 'data'}?{urlencode({name: value})}"

    with pytest.raises(townsquare.ConfigError, match=f"Option {name}"):
        townsquare.Client.open(url(refused))
    townsquare.Client.open(url(accepted)).close()


def test_the_database_url_of_the_environment_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOWNSQUARE_DATABASE_URL", f"sqlite:{tmp_path / 'own.db'}")
    townsquare.Client.open(tmp_path / "data").close()
    assert (tmp_path / "own.db").exists()
    (tmp_path / "own.db").unlink()
    townsquare.shared(tmp_path / "data").close()
    assert (tmp_path / "own.db").exists()


def test_a_url_of_options_stands_in_place_of_the_folder(tmp_path: Path) -> None:
    url = f"townsquare:{tmp_path / 'data'}?catalog_tries=2&migrate=true"
    townsquare.Client.open(url, catalog_tries=2).close()
    assert (tmp_path / "data" / "townsquare.db").exists()
    for options in ({"catalog_tries": 3}, {"migrate": False}):
        with pytest.raises(townsquare.ConfigError, match=f"Option {next(iter(options))} is given twice"):
            townsquare.Client.open(url, **options)
    for twice in (f"{url}&catalog_tries=3", f"{url}&data_dir=elsewhere"):
        with pytest.raises(townsquare.ConfigError, match="is given twice"):
            townsquare.Client.open(twice)


def test_without_migrate_a_new_database_is_refused_and_nothing_is_created(tmp_path: Path) -> None:
    with pytest.raises(townsquare.ConfigError, match="migrate"):
        townsquare.Client.open(tmp_path / "data", migrate=False)
    assert not (tmp_path / "data").exists()
    townsquare.Client.open(tmp_path / "data").close()
    townsquare.Client.open(tmp_path / "data", migrate=False).close()


@pytest.mark.parametrize("opening", [townsquare.Client.open, townsquare.shared])
def test_a_misspelt_option_is_refused_by_name(opening: Any, tmp_path: Path) -> None:
    with pytest.raises(townsquare.ConfigError, match='"durabilty".*durability'):
        opening(tmp_path / "data", durabilty="full")
    assert not (tmp_path / "data").exists()


def test_the_sample_catalog_and_a_catalog_file_by_its_path(tmp_path: Path, catalog: str) -> None:
    with townsquare.Client.open(":memory:", catalog_url="sample:") as client:
        apps = client.discovery.get_trending_mini_apps(limit=100)
        assert len(apps) == 40 and all(app.domain.endswith(".example") for app in apps)
        assert client.discovery.search_mini_apps("harbour ches")[0].name == "Harbor Chess"
    (tmp_path / "apps").write_bytes((tmp_path / "catalog.json").read_bytes())
    for path in (tmp_path / "catalog.json", str(tmp_path / "catalog.json"), "catalog.json", Path("apps")):
        with townsquare.Client.open(":memory:", catalog_url=path) as client:
            assert client.discovery.refresh().total == 4
    with pytest.raises(townsquare.ConfigError, match="Option catalog_url"):
        townsquare.Client.open(":memory:", catalog_url="apps")
