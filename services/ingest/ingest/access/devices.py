"""Browsers in which people have logged in: each keeps a signed cookie, and has counters of its own.

What others do elsewhere keeps nobody out there (see "device cookies" of OWASP). It proves nobody.
"""

import secrets
from typing import NamedTuple

from ingest.access.sessions import Sessions, signed

SALT = "waymark device"
# As for the session: the first where TLS protects it.
# Browsers keep no cookie for longer.
MAX_AGE_SECONDS = 400 * 86_400
# Of a browser that many share, who logged in last: 64 letters each.
MAX_NAMES = 16


class Device(NamedTuple):
    """A browser, and who has logged in there, the last first."""

    id: str
    names: tuple[str, ...]


class Devices:
    """Knows browsers again, all services the same."""

    def __init__(self, sessions: Sessions) -> None:
        self._signer = sessions.signer(SALT)

    def read(self, kept: str) -> Device | None:
        """Return the browser that keeps this, None for one that no service knows."""
        payload = signed(self._signer, kept, max_age=MAX_AGE_SECONDS)
        if payload is None:
            return None
        device, names = payload
        return Device(device, tuple(names))

    def issue(self, device: Device | None, name: str) -> str:
        """Return what a browser keeps in which somebody has logged in."""
        known, names = device or (secrets.token_urlsafe(12), ())
        others = [other for other in names if other != name]
        return str(self._signer.dumps([known, [name, *others][:MAX_NAMES]]))
