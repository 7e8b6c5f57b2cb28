"""The log of requests: NGINX writes it, here it is rotated, compressed, and kept within a bound."""

import zlib
from collections.abc import Callable
from pathlib import Path

NAME = "requests.log"  # as in nginx/log.conf
# A day of 35 requests/s is 100 MB: a line takes 31 bytes when it is compressed.
SEGMENT_BYTES = 8 * 2**20
KEPT_BYTES = 128 * 2**20
_GZIP = 31  # zlib's number for gzip's own form; its window is 32 kB
PIECE_BYTES = 64 * 1024  # the gateway's memory is short
_UNFINISHED = ".new"


class RequestLog:
    """The file NAME in a folder, and what was rotated: NAME.0000000001.gz and so on.

    `reopen` makes NGINX open the file anew. No line is lost: NGINX writes to the renamed file until
    then, and it is compressed a look later.
    """

    def __init__(self, folder: Path, reopen: Callable[[], None]) -> None:
        self._folder = folder
        self._file = folder / NAME
        self._reopen = reopen

    def look(self) -> None:
        """Compress what was rotated, delete the oldest, rotate what is long. Raises OSError."""
        if not self._file.exists():  # NGINX had no room for it: it still writes to the last one
            self._reopen()
            return
        self._make_room()
        for segment in segments(self._folder):
            if segment.suffix != ".gz":
                _compress(segment)
        if self._file.stat().st_size >= SEGMENT_BYTES:
            numbers = [int(segment.name.split(".")[2]) for segment in segments(self._folder)]
            number = max(numbers, default=0) + 1
            self._file.rename(self._file.with_name(f"{NAME}.{number:010}"))
            self._reopen()

    def _make_room(self) -> None:
        """Delete the oldest of what was rotated until the rest is within the bound."""
        for unfinished in self._folder.glob(f"{NAME}.*{_UNFINISHED}"):  # of one that was killed
            unfinished.unlink()
        kept = segments(self._folder)
        size = sum(segment.stat().st_size for segment in kept)
        for segment in kept:
            if size <= KEPT_BYTES:
                return
            size -= segment.stat().st_size
            segment.unlink()


def segments(folder: Path) -> list[Path]:
    """Return what was rotated, the oldest first; one that is not compressed yet has no `.gz`."""
    rotated = folder.glob(f"{NAME}.*")
    return sorted(segment for segment in rotated if segment.suffix != _UNFINISHED)


def _compress(segment: Path) -> None:
    """Replace a file by its compressed form, in one step. Raises OSError."""
    packer = zlib.compressobj(wbits=_GZIP)
    new = segment.with_name(f"{segment.name}{_UNFINISHED}")
    with segment.open("rb") as lines, new.open("wb") as file:
        while piece := lines.read(PIECE_BYTES):
            file.write(packer.compress(piece))
        file.write(packer.flush())
    new.replace(segment.with_name(f"{segment.name}.gz"))
    segment.unlink()
