"""Names of documents, more than fit into memory."""

import sqlite3
from typing import Any

import bson

# What SQLite holds in memory of them; more goes to a temporary file.
CACHE_KIB = 4096


class Keys:
    """Documents by collection and `_id`, each with a number; more than fit into memory."""

    def __init__(self) -> None:
        self._file = sqlite3.connect("", isolation_level=None)
        self._file.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._file.execute(
            "CREATE TABLE keys (of TEXT, id BLOB, number INTEGER, PRIMARY KEY (of, id))"
            " WITHOUT ROWID"
        )

    def __len__(self) -> int:
        """Count them."""
        return int(self._file.execute("SELECT count(*) FROM keys").fetchone()[0])

    def put(self, of: str, name: Any, number: int = 0) -> None:
        """Have a number for a document."""
        row = of, bson.encode({"": name}), number
        self._file.execute("INSERT OR REPLACE INTO keys VALUES (?, ?, ?)", row)

    def number(self, of: str, name: Any) -> int | None:
        """Return it, None for a document that was not put."""
        wanted = of, bson.encode({"": name})
        query = "SELECT number FROM keys WHERE of = ? AND id = ?"
        row = self._file.execute(query, wanted).fetchone()
        return row[0] if row else None

    def collections(self) -> set[str]:
        """Return of which collections there is any."""
        return {of for (of,) in self._file.execute("SELECT DISTINCT of FROM keys")}

    def take(self, limit: int) -> tuple[str, list[Any]]:
        """Remove and return the first of one collection, at most so many."""
        rows = self._file.execute(
            "SELECT of, id FROM keys WHERE of = (SELECT min(of) FROM keys) LIMIT ?", (limit,)
        ).fetchall()
        self._file.executemany("DELETE FROM keys WHERE of = ? AND id = ?", rows)
        return rows[0][0] if rows else "", [bson.decode(name)[""] for _, name in rows]

    def close(self) -> None:
        """Give back the temporary file."""
        self._file.close()
