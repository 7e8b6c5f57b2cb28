"""Encryption of backups, by age (age-encryption.org): a public key here, the private one elsewhere.

While a backup is made, its files are encrypted to a second key, too, which is nowhere but in the
memory of that run: so it reads back what it wrote, and nobody here does so afterwards.
"""

from collections.abc import Sequence

import pyrage
from pyrage.x25519 import Identity, Recipient

from mongo.backup.errors import BackupError

ENDING = ".age"


class Key:
    """Encrypts to recipients, where there are any, and decrypts with identities."""

    def __init__(self, recipients: Sequence[Recipient], identities: Sequence[Identity]) -> None:
        self._recipients = list(recipients)
        self._identities = list(identities)

    @classmethod
    def to(cls, public_keys: str) -> "Key | None":
        """Return the key of one run, which encrypts to public keys with blanks between.

        None where there is none. Raises BackupError.
        """
        of_this_run = Identity.generate()
        try:
            recipients = [Recipient.from_str(text) for text in public_keys.split()]
        except pyrage.RecipientError as error:
            raise BackupError(
                "WAYMARK_BACKUP_KEY is no public key of age, which begins with age1: " + str(error)
            ) from error
        return cls([*recipients, of_this_run.to_public()], [of_this_run]) if recipients else None

    @classmethod
    def of(cls, identities: str) -> "Key":
        """Read a file as age-keygen makes it, or several in one. Raises BackupError."""
        lines = [line.strip() for line in identities.splitlines()]
        try:
            read = [Identity.from_str(line) for line in lines if line and not line.startswith("#")]
        except pyrage.IdentityError as error:
            raise BackupError(f"the identity is no private key of age: {error}") from error
        if not read:
            raise BackupError("the identity has no private key of age, AGE-SECRET-KEY-…")
        return cls([], read)

    @property
    def public(self) -> list[str]:
        """Return the public keys of those it decrypts with."""
        return [str(identity.to_public()) for identity in self._identities]

    def encrypt(self, content: bytes) -> bytes:
        """Return a file of age."""
        encrypted: bytes = pyrage.encrypt(content, self._recipients)
        return encrypted

    def decrypt(self, content: bytes) -> bytes:
        """Return what was encrypted. Raises BackupError."""
        try:
            decrypted: bytes = pyrage.decrypt(content, self._identities)
        except pyrage.DecryptError as error:
            raise BackupError(f"it cannot be decrypted: {error}") from error
        return decrypted

    @staticmethod
    def named(file: str) -> str:
        """Return what an encrypted file is called."""
        return file + ENDING
