"""Sessions of who has logged in: signed, and kept nowhere but in the browser."""

import hashlib
import secrets
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

from itsdangerous import BadData, URLSafeTimedSerializer

from ingest.access.visitor import Visitor
from ingest.errors import without_frames
from ingest.rules.roles import Role

MAX_AGE_SECONDS = 12 * 3600
SALT = "waymark session"
SALT_OF_TOKENS = "waymark session of a token"


class Session(NamedTuple):
    """What a service signed of a person; times are unix seconds."""

    name: str
    role: Role
    epoch: int
    csrf: str
    issued: int

    @property
    def expires_at(self) -> int:
        """Return until when it holds."""
        return self.issued + MAX_AGE_SECONDS


class TokenSession(NamedTuple):
    """What a service signed of who showed a token: nothing of a token changes but its end."""

    visitor: Visitor
    issued: int


class Sessions:
    """Issues sessions, and knows its own again; without a key nobody else's or after a restart."""

    def __init__(self, key_file: str) -> None:
        key = Path(key_file).read_text("utf-8").strip() if key_file else ""
        if key_file and not key:
            raise ValueError(f"{key_file}: holds no key")
        self.possible = bool(key)  # to log in here
        self._key = key or secrets.token_hex()
        self._people, self._tokens = self.signer(SALT), self.signer(SALT_OF_TOKENS)

    def signer(self, salt: str) -> URLSafeTimedSerializer:
        """Return what signs one kind of thing with the key of the sessions."""
        return signer(self._key, salt)

    def issue(self, name: str, role: Role, epoch: int) -> str:
        """Return a new session of a person as the browser keeps it."""
        return str(self._people.dumps([name, role.value, epoch, _csrf()]))

    def issue_to(self, holder: Visitor) -> tuple[str, Visitor]:
        """Return a new session of who showed a token, and its visitor.

        A wall screen's lasts as long as its token. Who may write has to show theirs every day.
        """
        until = holder.expires_at
        if holder.role is not Role.READ:
            until = min(until or sys.maxsize, int(time.time()) + MAX_AGE_SECONDS)
        made = holder._replace(expires_at=until, csrf=_csrf())
        payload = [made.token_id, made.name, made.role.value, made.level, until, made.csrf]
        payload += [] if made.team is None else [made.team]  # as older releases have it
        return str(self._tokens.dumps(payload)), made

    def read(self, text: str) -> Session | TokenSession | None:
        """Return a session that was issued here or by another service, and has not expired."""
        payload = signed(self._people, text, max_age=MAX_AGE_SECONDS, return_timestamp=True)
        if payload is None:
            return self._read_of_token(text)
        (name, role, epoch, csrf), when = payload
        return Session(name, Role(role), epoch, csrf, int(when.timestamp()))

    def _read_of_token(self, text: str) -> TokenSession | None:
        payload = signed(self._tokens, text, return_timestamp=True)
        if payload is None:
            return None
        (token_id, name, role, level, until, csrf, *team), when = payload
        if until is not None and until <= time.time():
            return None
        visitor = Visitor(name, "token", Role(role), until, csrf, level, token_id, *team)
        return TokenSession(visitor, int(when.timestamp()))


def signer(key: str, salt: str) -> URLSafeTimedSerializer:
    """Return what signs one kind of thing that browsers keep."""
    signing = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
    return URLSafeTimedSerializer(key, salt, signer_kwargs=signing)


def signed(by: URLSafeTimedSerializer, text: str, **how: Any) -> Any:
    """Return what was signed, None when it was not or is too old."""
    try:
        return by.loads(text, **how)
    except BadData as error:
        without_frames(error)  # the signer's own refer to it
        return None


def _csrf() -> str:
    return secrets.token_urlsafe(16)
