"""The file with the list of erasures, which all services of a machine and the command share."""

import fcntl
import logging
import math
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from common import erasures
from common.erasures import MAX_ERASURES, NOBODY, DamagedList, Erasures
from ingest.errors import StoreUnavailable
from ingest.rules.request_parameters import StaffId

log = logging.getLogger(__name__)

_SALT_BYTES = 32


class ErasureList:
    """Tells who was forgotten; a look at the file's time costs 2 µs."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / erasures.FILE_NAME
        self._known = NOBODY
        self._seen: tuple[int, int] | None = None  # the file as it was read

    def current(self) -> Erasures:
        """Return the list as it is now, the same object while nobody writes it.

        Where it cannot be read, what was known holds.
        """
        try:
            status = self.path.stat()
            seen = (status.st_ino, status.st_mtime_ns)
        except OSError:
            seen = None
        if seen != self._seen:
            self._seen = seen
            try:
                self._known = self._read()
            except (OSError, DamagedList):
                log.exception("the list of erasures cannot be read: %s", self.path)
        return self._known

    def add(self, staff_id: StaffId) -> float:
        """Add somebody; return the time until which all of them is gone, in unix seconds.

        Raises StoreUnavailable: it cannot be written, or it is full.
        """
        with self._changing() as known:
            salt = known.salt or secrets.token_hex(_SALT_BYTES)
            name = known._replace(salt=salt).name(staff_id)
            if name not in known.times and len(known.times) >= MAX_ERASURES:
                raise StoreUnavailable(f"{MAX_ERASURES} people are forgotten: {self.path} is full")
            until = round(time.time(), 3)
            self._write(Erasures(salt, {**known.times, name: until}))
        return until

    def take(self, copy: Erasures) -> None:
        """Take a copy of this list, where it may have been lost since.

        Raises StoreUnavailable: it cannot be written, or there is one of its own here.
        """
        with self._changing() as known:
            if known.times and known.salt != copy.salt:
                raise StoreUnavailable(f"{self.path} is no later state of that list")
            names = {*known.times, *copy.times}
            never = -math.inf
            newer = {n: max(known.times.get(n, never), copy.times.get(n, never)) for n in names}
            self._write(Erasures(copy.salt, newer))

    def touch(self) -> None:
        """Have all services look again. Raises StoreUnavailable."""
        with self._changing() as known:
            self._write(known)

    @contextmanager
    def _changing(self) -> Iterator[Erasures]:
        """Give what is stored, while nobody else changes it."""
        try:
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield self._read()
                os.fsync(folder)
            finally:
                os.close(folder)
        except (OSError, DamagedList) as error:
            raise StoreUnavailable(f"the list of erasures {self.path}: {error}") from error

    def _read(self) -> Erasures:
        try:
            return erasures.parse(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return NOBODY

    def _write(self, known: Erasures) -> None:
        """Write it whole or not at all."""
        aside = self.path.with_name(f".{self.path.name}.new")
        aside.unlink(missing_ok=True)  # of one that was killed
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(known.text())
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self.path)
