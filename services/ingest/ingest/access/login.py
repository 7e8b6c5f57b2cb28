"""Proving who somebody is: by name and password, or by a token."""

import threading

from ingest.access.access_cache import AccessCache
from ingest.access.admission import Admission
from ingest.access.attempts import Attempts, Source
from ingest.access.passwords import Passwords
from ingest.access.visitor import Credentials, Visitor
from ingest.errors import Busy, StoreUnavailable
from ingest.rules.accounts import account_name
from ingest.storage.access.accounts import Account, Accounts
from ingest.storage.database.availability import Availability


class Login:
    """Asks who knows, and bounds how often anybody may try."""

    def __init__(
        self,
        accounts: Accounts,
        passwords: Passwords,
        attempts: Attempts,
        availability: Availability,
        access_cache: AccessCache,
        admission: Admission,
    ) -> None:
        self._accounts = accounts
        self._availability = availability
        self._passwords = passwords
        self._attempts = attempts
        self._access_cache = access_cache
        self._admission = admission
        self._asking = threading.Lock()

    def prove(self, typed: str, password: str, source: Source) -> tuple[str, Account | None]:
        """Return the name of an account that there is, else "", and the account if it is theirs.

        Raises TooManyAttempts, and Busy, also while the database does not answer.
        """
        if self._availability.away:
            raise Busy  # at once: the threads of log-ins also tell the page who looks at it
        name = account_name(typed) or ""
        self._attempts.begin(name, source)
        try:
            account_and_hash = self._accounts.find(name)
            account, stored = account_and_hash or (None, None)
            good = self._passwords.verify(stored, password)
        except (Busy, StoreUnavailable) as error:
            self._attempts.undo(name, source)
            raise Busy from error  # no 503: strangers could open the gateway's circuit with it
        if account is None:
            return "", None  # who mistakes the fields types a password here: it is told to nobody
        if not good:
            return name, None
        self._attempts.succeeded(name, source)
        return name, account

    def holder(self, secret: str, source: Source) -> Visitor | None:
        """Return whose token that is, None for no valid one's. Raises TooManyAttempts, Busy."""
        credentials = Credentials(f"Bearer {secret}")
        try:
            # Nobody guesses 256 bits: what is counted are the questions to the database.
            return self._admission.visitor(credentials) or self._just_made(credentials, source)
        except StoreUnavailable as error:
            raise Busy from error  # no 503: as above

    def _just_made(self, credentials: Credentials, source: Source) -> Visitor | None:
        """Return whose token was made at another service just now, None for no valid one's."""
        self._attempts.begin("", source)
        # One at a time: the threads of log-ins also tell the page who looks at it.
        if not self._asking.acquire(blocking=False):
            self._attempts.undo("", source)
            raise Busy
        try:
            if self._availability.away or not self._access_cache.refresh():
                self._attempts.undo("", source)
                raise Busy  # nobody can say that it is not good
        finally:
            self._asking.release()
        visitor = self._admission.visitor(credentials)
        if visitor:
            self._attempts.undo("", source)
        return visitor
