"""The secret of a token: shown once, and kept only as its digest."""

import hashlib
import secrets

from ingest.rules.roles import Role
from ingest.storage.access.tokens import Token

# What a token may be for, and how long it may hold.
ROLES = tuple(role.value for role in Role if role is not Role.NOBODY)
MAX_DAYS = 3650
MAX_HOURS = 24 * MAX_DAYS
HOUR_SECONDS = 3600
PREFIX = "wm_"  # so that a scanner for leaked secrets, and its finder, know what it is
_BYTES = 32


def generate() -> str:
    """Return a new secret of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def issue(
    label: str,
    role: Role,
    hours: int | None,
    now: int,
    level: str | None = None,
    team: str | None = None,
) -> tuple[str, Token]:
    """Return a new secret, and its token to store; None: until it is revoked, of all that is."""
    secret = generate()
    token = Token(
        token_id=secrets.token_hex(4),
        digest=digest(secret),
        label=label,
        role=role,
        created_at=now,
        expires_at=None if hours is None else now + hours * HOUR_SECONDS,
        level=level,
        team=team,
    )
    return secret, token


def digest(secret: str) -> str:
    """Return what is stored of a secret, in hexadecimal.

    A plain hash does: nobody can try 2^256 secrets. The look-up by digest leaks nothing by its
    time, since nobody can choose a digest's first bytes.
    """
    return hashlib.sha256(secret.encode()).hexdigest()
