"""The secret of a token: shown once, and kept only as its digest."""

import hashlib
import secrets

PREFIX = "wm_"  # so that a scanner for leaked secrets, and its finder, know what it is
_BYTES = 32


def generate() -> str:
    """Return a new secret of 256 random bits."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def digest(secret: str) -> str:
    """Return what is stored of a secret, in hexadecimal.

    A plain hash does: nobody can try 2^256 secrets. The look-up by digest leaks nothing by its
    time, since nobody can choose a digest's first bytes.
    """
    return hashlib.sha256(secret.encode()).hexdigest()
