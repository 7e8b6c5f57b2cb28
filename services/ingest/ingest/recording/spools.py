"""The spool of this service, and those of services that are gone."""

import fcntl
import logging
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from common.erasures import Erasures
from ingest.recording.spool import Spool
from ingest.storage.detections.documents import DamagedDocument

log = logging.getLogger(__name__)

# How often is looked for spools whose service is gone.
LOOK_SECONDS = 3.0


class Spools:
    """Adopts each spool beside our own whose lock is free, as services/ingest/start.sh takes one.

    Whoever has the lock of `N.lock` has the spool `N.db`. It is adopted until it is empty, then its
    file is deleted; one with detections that were set aside is kept, so that somebody reports them.
    """

    def __init__(self, own: Spool, path: Path) -> None:
        self.own = own
        self._own_path = path
        self._adopted: dict[Path, tuple[Spool, int]] = {}  # with the lock's file descriptor
        self._failed: set[Path] = set()
        self._look_at = 0.0

    def __iter__(self) -> Iterator[Spool]:
        """Yield our own spool, then the adopted ones."""
        yield self.own
        yield from [spool for spool, _ in list(self._adopted.values())]

    @property
    def queued(self) -> int:
        """Return how many detections wait in all of them."""
        return sum(len(spool) for spool in self)

    def waits_since(self) -> float | None:
        """Return when what waits longest in any of them came; None: nothing that can be read."""
        times = []
        for spool in self:
            with suppress(sqlite3.Error, OSError, DamagedDocument):  # the drain tells of it
                times.append(spool.waits_since())
        return min((since for since in times if since is not None), default=None)

    @property
    def set_aside(self) -> int:
        """Return how much all of them have set aside."""
        return sum(spool.set_aside for spool in self)

    @property
    def empty(self) -> bool:
        """Tell whether it is certain that nothing waits."""
        return all(spool.empty for spool in self)

    def rewind(self) -> None:
        """Begin with what waits longest again."""
        for spool in self:
            spool.rewind()

    def forget(self, erasures: Erasures) -> None:
        """Delete what is in any of them of the forgotten; what fails is tried at the next look."""
        for spool in self:
            try:
                spool.forget(erasures)
            except (sqlite3.Error, OSError):
                log.exception("the forgotten are still in a spool")

    def look(self) -> None:
        """Give back what is empty, and adopt what nobody holds; not more often than is useful."""
        if time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        for path, (spool, _) in list(self._adopted.items()):
            if spool.empty and not spool.set_aside:
                spool.delete()
                self._release(path)
        folder = self._own_path.parent
        for lock in folder.glob("*.lock"):
            path = lock.with_suffix(".db")
            taken = {self._own_path, *self._adopted, *self._failed}
            if path not in taken and any(folder.glob(f"{path.name}*")):
                self._adopt(path, lock)

    def close(self) -> None:
        """Close all of them; what was adopted is anybody's again."""
        for path, (spool, _) in list(self._adopted.items()):
            spool.close()
            self._release(path)
        self.own.close()

    def _adopt(self, path: Path, lock: Path) -> None:
        held = -1
        try:
            held = os.open(lock, os.O_RDWR)
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            spool = Spool(path, max_detections=0)
        except OSError as error:
            if held >= 0:
                os.close(held)
            if not isinstance(error, BlockingIOError):  # else its service lives
                log.exception("the spool %s cannot be adopted", path)
                self._failed.add(path)
            return
        log.warning("%d detections are adopted of a service that is gone: %s", len(spool), path)
        self._adopted[path] = spool, held

    def _release(self, path: Path) -> None:
        _, held = self._adopted.pop(path)
        os.close(held)
