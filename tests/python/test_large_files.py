"""A large file goes up and down with little memory, and Ctrl-C stops a download (SPEC 2.8, 4.4)."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ENABLE_CTRL_C, wait_until

MIB = 1 << 20
SIZE = int(os.environ.get("TOWNSQUARE_TEST_FILE_MIB", "256")) * MIB
"""The size of the file. The test needs three times this size on the disk."""

TRANSFER = """
import shutil, sys, townsquare

def memory(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith(name + ":"))

folder, size = sys.argv[1], int(sys.argv[2])
client = townsquare.Client.open(folder + "/data", max_file_size=1 << 40)
files = client.as_service().storage
files.upload("assets", "small", bytes(100))
files.download("assets", "small")
idle = memory("VmRSS")
assert memory("VmHWM") < idle + (32 << 20), "opening the client hides the peak"
for transfer in (
    lambda seen: files.upload_from("assets", "large", folder + "/source", progress=lambda *step: seen.append(step)),
    lambda seen: files.download_to("assets", "large", folder + "/target", progress=lambda *step: seen.append(step)),
):
    seen = []
    assert transfer(seen).size == size
    assert len(seen) >= size >> 22 and seen == sorted(seen), len(seen)
    assert seen[-1] == (size, size) and {total for _, total in seen} == {size}
with files.open("assets", "large") as source, open(folder + "/read", "wb") as target:
    shutil.copyfileobj(source, target)
with open(folder + "/read", "rb") as source, files.open("assets", "large", "wb") as target:
    shutil.copyfileobj(source, target)
assert files.stat("assets", "large").size == size
print((memory("VmHWM") - idle) >> 10)
client.close()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a transfer: there is no /proc")
def test_a_large_file_goes_up_and_down_with_32_mib(tmp_path: Path) -> None:
    with open(tmp_path / "source", "wb") as file:
        file.truncate(SIZE)
        for number in range(SIZE // MIB):
            os.pwrite(file.fileno(), (number + 1).to_bytes(8, "little"), number * MIB + number)
    command = [sys.executable, "-c", TRANSFER, str(tmp_path), str(SIZE)]
    # With more arenas glibc keeps freed memory for each thread, and which threads work depends on the load.
    environment = os.environ | {"MALLOC_ARENA_MAX": "1"}
    child = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert (child.returncode, child.stderr) == (0, "")
    assert int(child.stdout) < 32 << 10, f"the peak is {child.stdout} KiB over the idle client"
    for name in ("target", "read"):
        subprocess.run(["cmp", tmp_path / "source", tmp_path / name], check=True)


CTRL_C = f"""{ENABLE_CTRL_C}
import sys, townsquare
folder, how = sys.argv[1:]
client = townsquare.Client.open(folder + "/data", max_file_size=1 << 30)
files = client.as_service().storage
files.upload_from("assets", "large", folder + "/source")
def progress(done, total):
    if done < 64 << 20:
        print(done, total, flush=True)
print("begins", flush=True)
try:
    files.download_to("assets", "large", folder + "/out/target", progress=progress if how == "callback" else None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("completed", flush=True)
except KeyboardInterrupt:
    # The signal may have ended a print in the middle of its line.
    print()
    print("interrupted", client.closed, files.stat("assets", "large").size, flush=True)
client.close()
"""


@pytest.mark.parametrize("how", ["callback", "no callback"])
def test_ctrl_c_stops_a_download_and_leaves_the_old_target(tmp_path: Path, how: str) -> None:
    size = 400 * MIB
    with open(tmp_path / "source", "wb") as file:
        file.truncate(size)
    target = tmp_path / "out" / "target"
    target.parent.mkdir()
    command = [sys.executable, "-c", CTRL_C, str(tmp_path), how]
    # On a loaded machine a download may end before the signal.
    for _ in range(20):
        target.write_bytes(b"old")
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            wait_until(lambda: len(list(target.parent.iterdir())) == 2 or child.poll() is not None, seconds=120)
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=60)
        finally:
            child.kill()
            child.wait()
        assert (child.returncode, err) == (0, "")
        if out.splitlines()[-1] != "completed":
            break
        shutil.rmtree(tmp_path / "data")
    assert out.splitlines()[-1] == f"interrupted False {size}"
    assert [path.name for path in target.parent.iterdir()] == ["target"] and target.read_bytes() == b"old"
