"""The collection `accounts`: the people who may log in."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import pymongo
from pymongo.client_session import ClientSession
from pymongo.database import Database

from common import schema
from ingest.errors import without_frames
from ingest.rules.roles import Role
from ingest.storage.database.driver import domain_errors, readable

# Each service holds all, some 200 bytes each.
MAX_ACCOUNTS = 500
TIMEOUT_SECONDS = 2.0
# The document that each change writes first, so that the next one waits; nobody is called that.
GUARD = {"_id": "."}
_PEOPLE = {"_id": {"$ne": "."}}
# With a password: whom a provider vouches for may lose the role there, or the provider go away.
_ADMINS = _PEOPLE | {"role": Role.ADMIN.value, "hash": {"$exists": True}}

Document = dict[str, Any]
Result = TypeVar("Result")


class Account(NamedTuple):
    """Somebody who may log in; sessions of an earlier epoch have ended."""

    name: str
    role: Role
    epoch: int  # unix milliseconds: it comes to no earlier one, however an account is made anew
    created_at: int  # unix seconds
    provider: str = ""  # who vouches for them; empty: they have a password

    @classmethod
    def from_document(cls, document: Document) -> "Account":
        """Read a document as `document` writes it."""
        role, provider = Role(document["role"]), document.get("provider", "")
        return cls(document["_id"], role, document["epoch"], document["created_at"], provider)

    def document(self) -> Document:
        """Return the document to store, without the hash of the password."""
        document = self._asdict() | {"role": self.role.value}
        document["_id"] = document.pop("name")
        return document


class AccountRefused(Exception):
    """A change of an account that may not be; the base of why not."""


class AlreadyThere(AccountRefused):
    """There is an account of that name."""


class LastAdmin(AccountRefused):
    """Without this account nobody could change accounts."""


class NoPassword(AccountRefused):
    """A new account needs a password."""


class OtherLogIn(AccountRefused):
    """The account of that name is another person's, or is logged in to in another way."""


class TooManyAccounts(AccountRefused):
    """There are MAX_ACCOUNTS."""


class Accounts:
    """Owns the collection `accounts`, which lies on one shard. Raises StoreUnavailable."""

    def __init__(self, database: Database[Document]) -> None:
        self._accounts = database[schema.ACCOUNTS.name]
        self._client = database.client

    def everyone(self) -> list[Account]:
        """Return all by name; the hashes of their passwords stay where they are."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            documents = (
                self._accounts.find(_PEOPLE, {"hash": 0, "subject": 0})
                .sort("_id")
                .limit(MAX_ACCOUNTS)
            )
            return list(readable(Account.from_document, documents))

    def find(self, name: str) -> tuple[Account, str | None] | None:
        """Return an account and the hash of its password, if it has one."""
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            document = self._accounts.find_one({"_id": name})
        return (Account.from_document(document), document.get("hash")) if document else None

    def put(
        self,
        name: str,
        role: Role,
        password_hash: str | None,
        now: float,
        *,
        only_new: bool = False,
    ) -> Account:
        """Make or change an account; a new password ends its sessions.

        Raises AlreadyThere, NoPassword, LastAdmin, OtherLogIn, TooManyAccounts; then nothing is
        changed.
        """

        def work(session: ClientSession) -> Account:
            old = self._accounts.find_one({"_id": name}, session=session)
            if old:
                if only_new:
                    raise AlreadyThere
                if old.get("provider"):
                    raise OtherLogIn
                if role is not Role.ADMIN:
                    self._keep_an_admin(name, session)
                return self._replace(old, {"role": role.value}, password_hash, now, session)
            if password_hash is None:
                raise NoPassword
            return self._insert(name, role, now, session, hash=password_hash)

        return self._change(work)

    def vouched_for(
        self, name: str, role: Role, provider: str, subject: str, now: float
    ) -> Account:
        """Return the account of somebody who logs in by a provider, made or changed if need be.

        The provider's `subject` is for ever one person's, a name is not. Raises OtherLogIn,
        TooManyAccounts.
        """
        theirs = {"provider": provider, "subject": subject}

        def work(session: ClientSession) -> Account:
            old = self._accounts.find_one({"_id": name}, session=session)
            if old is None:
                return self._insert(name, role, now, session, **theirs)
            if not theirs.items() <= old.items():
                raise OtherLogIn
            return self._replace(old, {"role": role.value}, None, now, session)

        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            document = self._accounts.find_one({"_id": name, "role": role.value} | theirs)
        return Account.from_document(document) if document else self._change(work)

    def remove(self, name: str) -> bool:
        """Remove an account; tell whether there was one. Raises LastAdmin."""

        def work(session: ClientSession) -> bool:
            self._keep_an_admin(name, session)
            return bool(self._accounts.delete_one({"_id": name}, session=session).deleted_count)

        return self._change(work)

    def end_sessions(self, name: str, now: float) -> None:
        """End all sessions of an account, if there is one."""
        later = {"$max": [{"$add": ["$epoch", 1]}, int(now * 1000)]}
        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            self._accounts.update_one({"_id": name}, [{"$set": {"epoch": later}}])

    def change_password(self, proved: Account, password_hash: str, now: float) -> Account | None:
        """Give an account another password, which ends its sessions.

        None: since its old one was proved, it was changed or removed.
        """

        def work(session: ClientSession) -> Account | None:
            which = {"_id": proved.name, "epoch": proved.epoch}
            old = self._accounts.find_one(which, session=session)
            return self._replace(old, {}, password_hash, now, session) if old else None

        return self._change(work)

    def _insert(
        self, name: str, role: Role, now: float, session: ClientSession, **proof: str
    ) -> Account:
        if self._accounts.count_documents(_PEOPLE, session=session) >= MAX_ACCOUNTS:
            raise TooManyAccounts
        new = Account(name, role, int(now * 1000), int(now))
        document = new.document() | proof
        self._accounts.insert_one(document, session=session)
        return Account.from_document(document)

    def _replace(
        self,
        old: Document,
        changes: Document,
        password_hash: str | None,
        now: float,
        session: ClientSession,
    ) -> Account:
        """Store an account anew: MongoDB logs a slow update with its values, but no insert's."""
        new = old | changes
        if password_hash is not None:
            new |= {"hash": password_hash, "epoch": max(old["epoch"] + 1, int(now * 1000))}
        self._accounts.delete_one({"_id": old["_id"]}, session=session)
        self._accounts.insert_one(new, session=session)
        return Account.from_document(new)

    def _keep_an_admin(self, name: str, session: ClientSession) -> None:
        """Raise LastAdmin when this is the only one."""
        admins = [
            account["_id"] for account in self._accounts.find(_ADMINS, session=session).limit(2)
        ]
        if admins == [name]:
            raise LastAdmin

    def _change(self, work: Callable[[ClientSession], Result]) -> Result:
        def all_of_it(session: ClientSession) -> Result:
            self._accounts.update_one(GUARD, {"$inc": {"writes": 1}}, session=session)
            return work(session)

        with domain_errors(), pymongo.timeout(TIMEOUT_SECONDS):
            # Not in the transaction: that may not make a collection on a sharded cluster.
            self._accounts.update_one(GUARD, {"$setOnInsert": {"writes": 0}}, upsert=True)
            with self._client.start_session() as session:
                try:
                    return session.with_transaction(all_of_it)
                except AccountRefused as error:
                    # `with_transaction` keeps it in a variable, which its frames lead back to.
                    raise without_frames(error) from None
