"""The session of a person who has logged in: signed, and kept nowhere but in the browser."""

import hashlib
import secrets
from pathlib import Path
from typing import NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from ingest.rules.roles import Role

MAX_AGE_SECONDS = 12 * 3600
SALT = "waymark session"


class Session(NamedTuple):
    """What a service signed; times are unix seconds."""

    name: str
    role: Role
    epoch: int
    csrf: str
    issued: int

    @property
    def expires_at(self) -> int:
        """Return until when it holds."""
        return self.issued + MAX_AGE_SECONDS


class Sessions:
    """Issues sessions, and knows its own again; without a key it does neither."""

    def __init__(self, key_file: str) -> None:
        key = Path(key_file).read_text("utf-8").strip() if key_file else ""
        if key_file and not key:
            raise ValueError(f"{key_file}: holds no key")
        signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        self._signer = URLSafeTimedSerializer(key, SALT, signer_kwargs=signing) if key else None

    @property
    def possible(self) -> bool:
        """Tell whether people can log in here."""
        return self._signer is not None

    def issue(self, name: str, role: Role, epoch: int) -> str:
        """Return a new session as the browser keeps it."""
        if self._signer is None:
            raise RuntimeError("there is no key to sign sessions with")
        csrf = secrets.token_urlsafe(16)
        return str(self._signer.dumps([name, role.value, epoch, csrf]))

    def read(self, text: str) -> Session | None:
        """Return a session that was issued here or by another service, and has not expired."""
        if self._signer is None:
            return None
        try:
            (name, role, epoch, csrf), when = self._signer.loads(
                text, max_age=MAX_AGE_SECONDS, return_timestamp=True
            )
        except BadData:
            return None
        return Session(name, Role(role), epoch, csrf, int(when.timestamp()))
