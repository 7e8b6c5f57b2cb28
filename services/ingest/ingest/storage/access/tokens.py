"""The collection `tokens`: who may do what, without any secret."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import pymongo
from pymongo.database import Database
from pymongo.write_concern import WriteConcern

from common import schema
from ingest.rules.roles import Role
from ingest.storage.database.driver import domain_errors, readable

# Each service holds all that are valid, some 300 bytes each.
MAX_TOKENS = 1000
TIMEOUT_SECONDS = 2.0

Document = dict[str, Any]


class Token(NamedTuple):
    """One token; times are unix seconds."""

    token_id: str
    digest: str
    label: str
    role: Role
    created_at: int
    expires_at: int | None = None
    last_used_at: int | None = None
    revoked_at: int | None = None
    level: str | None = None  # the only one of which its holder is told
    team: str | None = None  # the only one of whose people its holder is told

    @classmethod
    def from_document(cls, document: Document) -> "Token":
        """Read a document as this class writes it."""
        return cls(
            token_id=document["_id"],
            digest=document["digest"],
            label=document["label"],
            role=Role(document["role"]),
            created_at=document["created_at"],
            expires_at=document.get("expires_at"),
            last_used_at=document.get("last_used_at"),
            revoked_at=document.get("revoked_at"),
            level=document.get("level"),
            team=document.get("team"),
        )

    def document(self) -> Document:
        """Return the document to store."""
        document = self._asdict() | {"role": self.role.value}
        document["_id"] = document.pop("token_id")
        return document


class TooManyTokens(Exception):
    """There are MAX_TOKENS valid ones: revoke some first."""


class Tokens:
    """Owns the collection `tokens`, which lies on one shard."""

    def __init__(self, database: Database[Document]) -> None:
        self._tokens = database[schema.TOKENS.name].with_options(
            write_concern=WriteConcern("majority")
        )

    def valid(self, now: float) -> list[Token]:
        """Return those that were neither revoked nor have expired. Raises StoreUnavailable."""
        not_expired = {"$or": [{"expires_at": None}, {"expires_at": {"$gt": now}}]}
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            documents = self._tokens.find({"revoked_at": None} | not_expired).limit(MAX_TOKENS)
            return list(readable(Token.from_document, documents))

    def everyone(self) -> list[Token]:
        """Return the newest first, with those that were revoked or have expired."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            documents = self._tokens.find().sort([("created_at", -1), ("_id", 1)]).limit(MAX_TOKENS)
            return list(readable(Token.from_document, documents))

    def add(self, token: Token) -> None:
        """Store a new one. Raises TooManyTokens, StoreUnavailable."""
        if len(self.valid(token.created_at)) >= MAX_TOKENS:
            raise TooManyTokens
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            self._tokens.insert_one(token.document())

    def revoke(self, token_id: str, now: int) -> bool:
        """End a token for good; tell whether there was such a one. Raises StoreUnavailable."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            valid = {"_id": token_id, "revoked_at": None}  # a second time changes nothing
            done = self._tokens.update_one(valid, {"$set": {"revoked_at": now}})
            return bool(done.matched_count or self._tokens.find_one({"_id": token_id}))

    def note_use(self, used: Mapping[str, int]) -> None:
        """Record when tokens were last used, by their ids. Raises StoreUnavailable."""
        writes = [
            pymongo.UpdateOne({"_id": token_id}, {"$max": {"last_used_at": when}})
            for token_id, when in used.items()
        ]
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            self._tokens.bulk_write(writes, ordered=False)
