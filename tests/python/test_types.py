"""The types of the stubs under basedpyright: `typed_sample.py` has the errors that its comments name, and no other."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import townsquare

from conftest import package

SAMPLE = Path(__file__).with_name("typed_sample.py")


def test_basedpyright_refuses_what_is_misspelt_and_nothing_else(tmp_path: Path) -> None:
    package("basedpyright")
    site = Path(townsquare.__file__).parent.parent
    shutil.copy(SAMPLE, tmp_path)
    settings = {"extraPaths": [str(site)], "enableTypeIgnoreComments": False, "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--level", "error", "--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    errors = {each["range"]["start"]["line"]: each["message"] for each in report["generalDiagnostics"]}
    lines = SAMPLE.read_text().splitlines()
    expected = {number: line for number, line in enumerate(lines) if "# type: ignore[" in line}
    assert set(errors) == set(expected), errors
    assert report["summary"]["filesAnalyzed"] == 1 and len(expected) == 13
    for misspelt in ("durabilty", "refresh_intervall", "nam", "colour", "space", "users "):
        assert any(f'"{misspelt}"' in each or f"'{misspelt}'" in each for each in errors.values()), (misspelt, errors)
