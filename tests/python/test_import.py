"""What `import townsquare` loads, and the names that it loads later."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import townsquare
from conftest import run_python

LATE = {"NewCredential", "NewFidget", "NewSpace", "OpenOptions", "asgi", "wsgi"}
"""The names of the package whose modules the first use loads."""

HEAVY = """
    argparse ast asyncio base64 concurrent copy ctypes dataclasses decimal email html http importlib.metadata inspect ipaddress json
    multiprocessing pathlib pickle pkgutil random select selectors shutil signal socket sqlite3 ssl subprocess tempfile urllib zipfile
    duckdb fastapi flask numpy pandas polars pyarrow pydantic starlette typing_extensions
    townsquare._typed townsquare._web townsquare.fastapi townsquare.pytest_plugin townsquare.testing
""".split()
"""Modules that the import does without."""


def loaded_by(program: str) -> set[str]:
    """The modules that a program has loaded at its end. `-S`: without those that installed packages load at each start."""
    site = str(Path(townsquare.__file__).parent.parent)
    program = f"import sys\nsys.path.insert(0, {site!r})\n{program}\nprint(*sys.modules)"
    child = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, timeout=60)
    assert child.returncode == 0, child.stderr
    return set(child.stdout.split())


def test_the_import_loads_no_heavy_module() -> None:
    loaded = loaded_by("import townsquare")
    assert "townsquare._native" in loaded
    assert not loaded & set(HEAVY)


def test_the_first_use_loads_the_rest() -> None:
    assert {"asyncio", "townsquare._web"} <= loaded_by("import townsquare; townsquare.asgi")
    assert "townsquare._typed" in loaded_by("from townsquare import NewSpace")


def test_names_that_are_loaded_later_look_like_the_others() -> None:
    site = str(Path(townsquare.__file__).parent.parent)
    program = f"""
import sys
sys.path.insert(0, {site!r})
import townsquare
assert set(townsquare.__all__) <= set(dir(townsquare))
assert not {LATE!r} & set(vars(townsquare))
from townsquare import *
assert {LATE!r} <= set(vars(townsquare)) and asgi is townsquare.asgi
print("done")
"""
    child = run_python(program)
    assert child.stdout == "done\n", child.stderr


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'townsquare' has no attribute 'clint'"):
        townsquare.clint  # type: ignore[attr-defined]
    assert not hasattr(townsquare, "_web_")
