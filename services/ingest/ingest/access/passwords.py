"""Passwords: hashed with Argon2id, one at a time, since one takes 7 MiB of the service's 64."""

import secrets
import threading
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager

import argon2
from argon2.exceptions import InvalidHashError, VerificationError

from ingest import process
from ingest.errors import Busy
from ingest.turns import turn

# OWASP's cheapest in memory of equal strength: 40 ms of CPU.
MEMORY_KIB, ROUNDS = 7 * 1024, 5
# Those who wait for the one that is hashed; others are told to come again. With the lane's threads
# (web/lanes.py) one is always left to say so.
WAITING = 2
WAIT_SECONDS = 2.0


class Passwords:
    """Hashes and verifies. Raises Busy when too many want that at once."""

    def __init__(self) -> None:
        self._argon2 = argon2.PasswordHasher(
            time_cost=ROUNDS, memory_cost=MEMORY_KIB, parallelism=1, hash_len=32, salt_len=16
        )
        # What no password has, for names that nobody has: to find that out takes as long.
        salt, nothing = (b64encode(secrets.token_bytes(n)).decode().rstrip("=") for n in (16, 32))
        self._nobodys = f"$argon2id$v=19$m={MEMORY_KIB},t={ROUNDS},p=1${salt}${nothing}"
        self._places = threading.BoundedSemaphore(1 + WAITING)
        self._turn = threading.Lock()

    def hash(self, password: str) -> str:
        """Return what is stored of a password."""
        with self._alone():
            return self._argon2.hash(password)

    def verify(self, stored: str | None, password: str) -> bool:
        """Tell whether a password is the one that was stored; None: nothing was."""
        with self._alone():
            try:
                return self._argon2.verify(stored or self._nobodys, password)
            except (VerificationError, InvalidHashError):
                return False

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if not self._places.acquire(blocking=False):
            raise Busy
        try:
            if not self._turn.acquire(timeout=WAIT_SECONDS):
                raise Busy
            try:
                with turn():
                    yield
            finally:
                process.give_back_memory()  # these 7 MiB, too
                self._turn.release()
        finally:
            self._places.release()
