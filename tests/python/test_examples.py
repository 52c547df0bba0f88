"""The examples that users start from: programs for FastAPI and Flask, a page in a real browser, and a notebook."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import townsquare
from conftest import package, wait_until
from servers import serving

EXAMPLES = Path(__file__).parents[2] / "python" / "examples"
PASSWORD = "correct horse"


def test_the_example_for_fastapi_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    testing = package("fastapi.testclient")
    monkeypatch.setenv("TOWNSQUARE_DATA_DIR", str(tmp_path / "data"))
    example = EXAMPLES / "fastapi_app.py"
    assert len(example.read_text().splitlines()) <= 60
    module: dict[str, Any] = {"__name__": "fastapi_app", "__file__": str(example)}
    exec(compile(example.read_text(), str(example), "exec"), module)
    ann = {"email": "ann@town.example", "password": PASSWORD}
    with testing.TestClient(module["app"]) as http:
        assert http.post("/sign-up", json=ann).status_code == 201
        wrong = http.post("/sign-in", json={**ann, "password": "wrong horse"})
        assert wrong.status_code == 401 and wrong.json()["success"] is False
        bearer = {"authorization": f"Bearer {http.post('/sign-in', json=ann).json()['access_token']}"}
        assert http.post("/spaces", params={"name": "Harbor"}).status_code == 403
        assert http.post("/spaces", params={"name": "Harbor"}, headers=bearer).status_code == 201
        assert [space["name"] for space in http.get("/spaces").json()] == ["Harbor"]
        assert http.put("/files/assets/a", content=b"x", headers=bearer).status_code == 201
        assert http.get("/files/assets/a").content == b"x"
        assert http.get("/api/miniapp-discovery").json()["apps"]
        assert http.get("/health").status_code == 200
        assert http.get("/").text == (EXAMPLES / "community.html").read_text()
        schemas = http.get("/openapi.json").json()["components"]["schemas"]
        assert set(schemas["PublicSpace"]["properties"]) == set(townsquare.PublicSpace.__match_args__)


def test_the_example_for_flask_works(tmp_path: Path) -> None:
    package("flask")
    assert len((EXAMPLES / "flask_app.py").read_text().splitlines()) <= 60
    (tmp_path / "flask_app.py").write_text((EXAMPLES / "flask_app.py").read_text())
    server = ["-m", "gunicorn", "flask_app:app", "--bind", "127.0.0.1:{port}", "--threads", "4", "--graceful-timeout", "1"]
    ann = {"email": "ann@town.example", "password": PASSWORD}
    with serving(server, tmp_path, TOWNSQUARE_DATA_DIR=str(tmp_path / "data")) as http:
        made = http.post("/sign-up", json=ann)
        assert made.status_code == 201 and set(made.json()) == {"id"}
        wrong = http.post("/sign-in", json={**ann, "password": "wrong horse"})
        assert wrong.status_code == 401 and "explanation" in wrong.json()
        headers = {"authorization": f"Bearer {http.post('/sign-in', json=ann).json()['access_token']}"}
        assert http.post("/spaces", params={"name": "Harbor"}).status_code == 403
        for wrong in ["Bearer wrong", "Bearer", "Basic YTpi", "wrong"]:
            assert http.get("/spaces", headers={"authorization": wrong}).status_code == 401, wrong
        assert http.get("/spaces", headers={"authorization": headers["authorization"].replace("Bearer", "bearer")}).status_code == 200
        assert http.post("/spaces", params={"name": "Harbor"}, headers=headers).status_code == 201
        (space,) = http.get("/spaces").json()
        assert (space["name"], space["owner"]["email"]) == ("Harbor", None)  # not verified
        assert http.put("/town/files/assets/a", content=b"x", headers=headers).status_code == 201
        assert http.get("/town/files/assets/a").content == b"x"
        assert http.get("/town/api/miniapp-discovery").json()["apps"]
        with http.stream("GET", "/town/events?table=files") as events:
            assert events.status_code == 200 and next(events.iter_lines()).startswith("id: ")


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    """A headless Chromium with a profile of its own."""
    webdriver = package("selenium.webdriver")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        assert os.environ.get("TOWNSQUARE_REQUIRE_ALL") != "1", "there is no chromium with chromedriver"
        pytest.skip("there is no chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"):
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path / 'profile'}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield browser
    browser.quit()


def test_a_visitor_of_the_page_signs_up_and_creates_a_space(browser: Any, tmp_path: Path) -> None:
    for name in ("fastapi_app.py", "community.html"):
        shutil.copy(EXAMPLES / name, tmp_path)
    server = ["-m", "uvicorn", "fastapi_app:app", "--port", "{port}", "--log-level", "warning", "--timeout-graceful-shutdown", "1"]

    def find(selector: str) -> Any:
        return browser.find_element("css selector", selector)

    def says(text: str) -> None:
        wait_until(lambda: find("#status").text == text)

    def spaces() -> list[str]:
        # In one script: the page may replace the items between two commands.
        script = "return Array.from(document.querySelectorAll('#spaces li'), (item) => item.innerText)"
        items: list[str] = browser.execute_script(script)
        return items

    with serving(server, tmp_path, TOWNSQUARE_DATA_DIR=str(tmp_path / "data")) as http:
        browser.get(str(http.base_url))
        # Nobody is signed in: a visitor may look at the spaces, and create none.
        find("#space input").send_keys("Harbor")
        find("#space button").click()
        wait_until(lambda: "row-level security policy" in find("#status").text)
        assert spaces() == []
        find("[name=email]").send_keys("ann@town.example")
        find("[name=password]").send_keys(PASSWORD)
        find("[name=sign-up]").click()
        says("Signed up. Now sign in.")
        find("[name=sign-in]").click()
        says("Signed in as ann@town.example")
        find("#space button").click()
        says("Created Harbor")
        # The page has it from the events.
        wait_until(lambda: spaces() == ["Harbor by somebody"])
        # Of somebody else, with a name that is markup.
        bob = {"email": "bob@town.example", "password": PASSWORD}
        assert http.post("/sign-up", json=bob).status_code == 201
        bearer = {"authorization": f"Bearer {http.post('/sign-in', json=bob).json()['access_token']}"}
        assert http.post("/spaces", params={"name": "<img src=x>"}, headers=bearer).status_code == 201
        assert http.post("/spaces", params={"name": "Diary", "is_public": False}, headers=bearer).status_code == 201
        wait_until(lambda: set(spaces()) == {"Harbor by somebody", "<img src=x> by somebody"})
        assert not browser.find_elements("css selector", "img")
        # The refused request is an error of the console, and there is no other of the page.
        errors = [entry["message"] for entry in browser.get_log("browser") if "favicon" not in entry["message"]]
        assert len(errors) == 1 and "403" in errors[0], errors
        # The server ends while the page has its stream of events open.


def test_the_notebook_runs_and_shows_html() -> None:
    nbformat, nbclient = package("nbformat"), package("nbclient")
    package("ipykernel")
    notebook = nbformat.read(EXAMPLES / "first_steps.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    # The file has no outputs, so that a change of it is a change of the source.
    assert all(cell.outputs == [] and cell.execution_count is None for cell in cells)
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    shown = {cell.source.splitlines()[-1]: output.data for cell in cells for output in cell.outputs if output.output_type == "execute_result"}
    gallery = shown["client.discovery.get_trending_mini_apps(limit=6)"]["text/html"]
    assert gallery.count("<a href=") == 6 and "<script" not in gallery
    assert "Harbor Chess" in shown["found"]["text/html"] and "Harbor Chess" in shown["found[0]"]["text/html"]
    assert shown["client.spaces.get_user_spaces(harbor.owner_id)"]["text/html"].count("<tr") == 3
    assert "Diary" not in shown["client.as_anonymous().spaces.get_public_spaces()"]["text/html"]
    assert shown["await town.discovery.get_new_mini_apps(3)"]["text/html"].count("<a href=") == 3
    assert any("403" in output.get("text", "") for cell in cells for output in cell.outputs)
