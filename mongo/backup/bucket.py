"""A bucket of an S3-compatible store in which backups are kept, each below a name of its own.

An object is there as a whole or not at all, and the manifest is the last: what has none is no
backup.
"""

import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import timedelta
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import S3Store

from mongo.backup.errors import BackupError
from mongo.backup.shelf import MANIFEST, new_name, time_of

# A request that fails is repeated so often, after a second, two, four, ...
RETRIES = 6
FIRST_PAUSE = timedelta(seconds=1)
LONGEST_PAUSE = timedelta(seconds=15)
LAST_RETRY = timedelta(minutes=3)
REQUEST = timedelta(minutes=1)  # with its 2 MiB
# Where EC2 tells the keys of its role.
_ROLES = "169.254.169.254"


class BucketFiles:
    """The files of a backup, as objects."""

    def __init__(self, shelf: "BucketShelf", name: str) -> None:
        self.name = name
        self._shelf = shelf

    def __str__(self) -> str:
        """Return its address."""
        return f"{self._shelf}/{self.name}"

    def write(self, file: str, content: bytes) -> None:
        """Have a new object."""
        with self._shelf.failures():
            self._shelf.store.put(f"{self.name}/{file}", content, use_multipart=False)

    def read(self, file: str) -> bytes:
        """Return an object."""
        with self._shelf.failures():
            try:
                return bytes(self._shelf.store.get(f"{self.name}/{file}").bytes())
            except FileNotFoundError as error:  # not NotFoundError: obstore's issue 197
                raise BackupError(f"{self} is not whole: it has no {file}") from error


class BucketShelf:
    """A prefix of a bucket, with backups."""

    def __init__(self, address: str, store: S3Store) -> None:
        self._address = address
        self.store = store

    @classmethod
    def at(cls, address: str) -> "BucketShelf":
        """Return the shelf at s3://bucket/prefix.

        Endpoint, region and keys are read from AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and
        AWS_SECRET_ACCESS_KEY; on EC2 the keys may be those of its role. Raises BackupError.
        """
        parts = urlsplit(address)
        if not parts.netloc:
            raise BackupError(f"{address} names no bucket: give s3://bucket/prefix")
        with _failures(address):
            store = S3Store(
                parts.netloc,
                prefix=parts.path.strip("/") or None,
                client_options={
                    "allow_http": True,  # where AWS_ENDPOINT_URL says so
                    "timeout": REQUEST,
                },
                retry_config={
                    "max_retries": RETRIES,
                    "retry_timeout": LAST_RETRY,
                    "backoff": {
                        "init_backoff": FIRST_PAUSE,
                        "max_backoff": LONGEST_PAUSE,
                        "base": 2,
                    },
                },
            )
        return cls(address.rstrip("/"), store)

    def __str__(self) -> str:
        """Return its address."""
        return self._address

    @contextmanager
    def being_made(self) -> Iterator[BucketFiles]:
        """Give the place of a new backup."""
        whole = self.whole()
        for left in set(self._names()) - set(whole):
            self.delete(left)
        name = new_name(whole)
        try:
            yield BucketFiles(self, name)
        except BaseException:
            with suppress(BackupError):  # the store may be away: the next one deletes it
                self.delete(name)
            raise

    def whole(self) -> list[str]:
        """Return the names of the whole backups, the oldest first."""
        return sorted(filter(self._is_whole, self._names()))

    def files(self, name: str) -> BucketFiles:
        """Return the files of a backup."""
        return BucketFiles(self, name)

    def delete(self, name: str) -> None:
        """Delete a backup: first what makes it one."""
        with self.failures():
            self.store.delete(f"{name}/{MANIFEST}")
            for page in self.store.list(f"{name}/"):
                self.store.delete([file["path"] for file in page])

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Do as if: a bucket has no locks. Each stack needs a prefix of its own."""
        yield

    def _names(self) -> list[str]:
        """Return what looks like backups, whole or not."""
        with self.failures():
            prefixes = self.store.list_with_delimiter()["common_prefixes"]
        return [name for prefix in prefixes if time_of(name := prefix.rstrip("/"))]

    def _is_whole(self, name: str) -> bool:
        with self.failures():
            try:
                self.store.head(f"{name}/{MANIFEST}")
            except FileNotFoundError:
                return False
        return True

    def failures(self) -> AbstractContextManager[None]:
        """Turn the store's errors into one line. Raises BackupError."""
        return _failures(self._address)


@contextmanager
def _failures(address: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, OSError) as error:
        raise BackupError(f"{address}: {_said(str(error))}") from error


def _said(text: str) -> str:
    """Return in one line what a store, or obstore, says in many."""
    code = re.search(r"<Code>(.+?)</Code>(?:\s*<Message>(.+?)</Message>)?", text, re.DOTALL)
    if code:
        return f"the store says {': '.join(filter(None, code.groups()))}"
    if _ROLES in text:
        return "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    return text.partition("\n")[0].removeprefix("Generic S3 error: ")
