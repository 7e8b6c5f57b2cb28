import threading
import time
from collections.abc import Callable
from typing import Any


class SharedResult:
    """One reading of the database for all who ask within some seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._held: tuple[object, Any] = (None, None)
        self._read_at = -seconds

    def get(self, key: object, read: Callable[[], Any]) -> Any:
        """Return what was read for the same key not long ago, else read it, one at a time.

        Who comes meanwhile gets what was read before, if that was for the same key.
        """
        if self._lock.locked() and self._held[0] == key:
            return self._held[1]
        with self._lock:
            if key != self._held[0] or time.monotonic() - self._read_at >= self._seconds:
                self._held = (key, read())
                self._read_at = time.monotonic()
            return self._held[1]
