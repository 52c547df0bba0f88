"""Compresses the files of a wheel anew with zopfli, which takes longer and makes the wheel smaller: recompress_wheel.py WHEEL.

Names, contents, modes and times stay, so the RECORD of the wheel stays true.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import zopfli.zlib

# Around the deflated data, zlib's format has a header of 2 bytes and a checksum of 4.
HEADER, CHECKSUM = 2, 4


class Zopfli:
    """A compressor for `zipfile`, with the methods of `zlib.compressobj`."""

    def __init__(self) -> None:
        self.data = bytearray()

    def compress(self, data: bytes) -> bytes:
        """Takes data. What it becomes is known at the end."""
        self.data += data
        return b""

    def flush(self) -> bytes:
        """Returns all that was taken, deflated."""
        return zopfli.zlib.compress(bytes(self.data), numiterations=5)[HEADER:-CHECKSUM]


def main(wheel: Path) -> None:
    """Replaces the wheel."""
    # `zipfile` has no public way to name a compressor.
    zipfile._get_compressor = lambda kind, level=None: Zopfli() if kind == zipfile.ZIP_DEFLATED else None
    smaller = wheel.with_suffix(".smaller")
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(smaller, "w") as target:
        for file in source.infolist():
            target.writestr(file, source.read(file))
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(smaller) as target:
        for name in source.namelist():
            if target.read(name) != source.read(name):
                sys.exit(f"{name} has changed")
    smaller.replace(wheel)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
