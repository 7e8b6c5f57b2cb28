"""What a service knows of tokens and accounts: in memory, and in a file for a start alone."""

import json
import logging
import os
import threading
import time
from collections.abc import Iterable, KeysView
from pathlib import Path
from typing import NamedTuple

from ingest.access.sessions import Session, TokenSession
from ingest.access.visitor import Visitor
from ingest.errors import StoreUnavailable
from ingest.rules.roles import Role
from ingest.storage.access.accounts import Account, Accounts
from ingest.storage.access.tokens import Token, Tokens
from ingest.tasks.repeated import Repeated, Rest

# A revoked token is refused by all services at the latest so much later, and what asks them may
# itself remember an answer for 10 s: within the 30 s that are promised.
REFRESH_SECONDS = 10.0
# An unknown token may have been made at another service just now: all are read soon, but no oftener
# than this, whoever asks.
UNKNOWN_SECONDS = 2.0
FAILED_SECONDS = 1.0  # then it is tried again
# When a token was last used is told to the minute.
USE_SECONDS = 60

log = logging.getLogger(__name__)


class _Snapshot(NamedTuple):
    as_of: float  # unix seconds
    holders: dict[str, Visitor]  # by digest; made once, not for each request
    token_ids: frozenset[str]
    accounts: dict[str, Account]  # by name

    @classmethod
    def of(cls, as_of: float, tokens: Iterable[Token], accounts: Iterable[Account]) -> "_Snapshot":
        holders = {token.digest: _holder(token) for token in tokens}
        token_ids = frozenset(visitor.token_id for visitor in holders.values())
        return cls(as_of, holders, token_ids, {account.name: account for account in accounts})

    def knew(self, session: Session | TokenSession) -> bool:
        """Tell whether it was read after a session was issued, a whole number, rounded down.

        Our signature tells what held then: what is older gives way to it, or somebody who logs in
        could do so at one service only for a while.
        """
        return session.issued + 1 <= self.as_of


def _holder(token: Token) -> Visitor:
    return Visitor(
        token.label,
        "token",
        token.role,
        token.expires_at,
        level=token.level,
        token_id=token.token_id,
        team=token.team,
    )


class AccessCache:
    """What was last read; while the database is away, what was known holds."""

    def __init__(self, tokens: Tokens, accounts: Accounts, file: Path) -> None:
        self._tokens = tokens
        self._accounts = accounts
        self._file = file
        self._snapshot: _Snapshot | None = None
        self._used: dict[str, int] = {}
        self._noted: dict[str, int] = {}  # the part of it that the database has
        self._kept: tuple[KeysView[str], dict[str, Account]] | None = None  # what the file holds
        self._refreshing = threading.Lock()
        failure = "tokens are not read: what was known holds"
        self._reads = Repeated("access", self._read_again, failure, FAILED_SECONDS)

    def start(self) -> None:
        """Read once, else take what the file holds; then read again and again in a thread."""
        is_read = self.refresh()
        if not is_read:
            self._snapshot = self._restored()
        self._reads.start(_rest() if is_read else Rest(FAILED_SECONDS))

    def close(self) -> None:
        """End the thread soon."""
        self._reads.close()

    @property
    def as_of(self) -> float | None:
        """Return when all of this was true, in unix seconds; None: never."""
        return self._snapshot.as_of if self._snapshot else None

    def visitor(self, digest: str) -> Visitor | None:
        """Return whose token has that digest, None for no valid one's.

        Raises StoreUnavailable: nothing is known, and so nobody can be told from a stranger.
        """
        snapshot = self._snapshot or self._read()  # asked for each detection: without a call
        visitor = snapshot.holders.get(digest)
        if visitor is None:
            self._reads.wake()
            return None
        now = int(time.time())
        if visitor.expires_at is not None and visitor.expires_at <= now:
            return None
        self._used[visitor.token_id] = now
        return visitor

    def holder(self, session: TokenSession) -> Visitor | None:
        """Return whose token began a session, None when it has ended. Raises StoreUnavailable."""
        snapshot = self._read()
        if session.visitor.token_id not in snapshot.token_ids and snapshot.knew(session):
            return None
        self._used[session.visitor.token_id] = int(time.time())
        return session.visitor

    def person(self, session: Session) -> Visitor | None:
        """Return who a session belongs to, None when it has ended. Raises StoreUnavailable."""
        snapshot = self._read()
        account = snapshot.accounts.get(session.name)
        newer = not snapshot.knew(session)
        if (account and session.epoch < account.epoch) or not (account or newer):
            return None
        role = account.role if account and not newer else session.role
        return Visitor(session.name, "person", role, session.expires_at, session.csrf)

    def admins(self) -> list[str]:
        """Return who may change things, by name."""
        accounts = self._snapshot.accounts.values() if self._snapshot else ()
        return sorted(account.name for account in accounts if account.role is Role.ADMIN)

    def refresh(self) -> bool:
        """Read all of it; tell whether that could be done."""
        try:
            self._read_all()
        except StoreUnavailable as error:
            self._reads.tell(error)
            return False
        return True

    def _read_again(self) -> Rest:
        self._read_all()
        return _rest()

    def _read_all(self) -> None:
        """Raises StoreUnavailable."""
        with self._refreshing:
            began = time.time()
            tokens, accounts = self._tokens.valid(began), self._accounts.everyone()
            snapshot = _Snapshot.of(began, tokens, accounts)
            self._snapshot = snapshot
            self._note_use()
            if (snapshot.holders.keys(), snapshot.accounts) != self._kept:
                self._keep(snapshot, tokens)

    def _read(self) -> _Snapshot:
        if self._snapshot is None:
            raise StoreUnavailable("no token was ever read")
        return self._snapshot

    def _note_use(self) -> None:
        due = {
            token_id: when
            for token_id, when in list(self._used.items())
            if when - self._noted.get(token_id, 0) >= USE_SECONDS
        }
        if due:
            self._tokens.note_use(due)
            self._noted |= due

    def _keep(self, known: _Snapshot, tokens: Iterable[Token]) -> None:
        """Write the file, whole or not at all; it holds digests and no secret."""
        documents = {
            "tokens": [token.document() for token in tokens],
            "accounts": [account.document() for account in known.accounts.values()],
        }
        new = self._file.with_name(self._file.name + ".new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
                json.dump(documents, out)
                out.flush()
                os.fsync(out.fileno())
            new.replace(self._file)
            self._kept = known.holders.keys(), known.accounts
        except OSError as error:
            log.warning("%s is not written: %s", self._file, error)

    def _restored(self) -> _Snapshot | None:
        try:
            as_of = self._file.stat().st_mtime
            documents = json.loads(self._file.read_text("utf-8"))
            tokens = [Token.from_document(document) for document in documents["tokens"]]
            accounts = [Account.from_document(document) for document in documents["accounts"]]
            return _Snapshot.of(as_of, tokens, accounts)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("%s cannot be read: %s", self._file, error)
            return None


def _rest() -> Rest:
    return Rest(UNKNOWN_SECONDS, REFRESH_SECONDS - UNKNOWN_SECONDS)
