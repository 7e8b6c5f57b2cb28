"""The spools of services that are no part of the stack any more."""

from scripts.native.layout import Layout
from scripts.native.parts import ingest_names


def release(layout: Layout) -> None:
    """Let the services adopt them, while nothing runs: a spool with a lock that is free is theirs.

    The services of a native stack hold no lock: each has a spool of its own name.
    """
    for spool in (layout.data / "spool").glob("ingest-*.db"):
        lock = spool.with_suffix(".lock")
        if spool.stem in ingest_names(layout):
            lock.unlink(missing_ok=True)
        else:
            lock.touch(mode=0o600)
