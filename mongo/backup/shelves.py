"""Which shelf an address names: a folder, or `s3://bucket/prefix`."""

from pathlib import Path

from mongo.backup.folder import FolderShelf
from mongo.backup.shelf import MANIFEST, Shelf, newest, time_of

S3 = "s3://"


def shelf(where: str) -> Shelf:
    """Return the shelf of an address. Raises BackupError."""
    if not where.startswith(S3):
        return FolderShelf(Path(where))
    from mongo.backup.bucket import BucketShelf  # takes 8 MiB

    return BucketShelf.at(where)


def chosen(where: str) -> tuple[Shelf, str]:
    """Return a backup by its shelf and name: this one, or the newest there. Raises BackupError."""
    where = where if where.startswith(S3) else str(Path(where).resolve())
    parent, _, name = where.rstrip("/").rpartition("/")
    if time_of(name) or (Path(where) / MANIFEST).exists():
        return shelf(parent), name
    kept_in = shelf(where)
    return kept_in, newest(kept_in)
