"""Why a part does not run: what its log says last, and what to do then."""

import contextlib
import re
from pathlib import Path

# What gunicorn says of its own end, and mongod but for errors.
_NO_ERROR = re.compile(r'\[\d{4}-\d\d-\d\d |\{"t":\{.{,60}"s":"[DIW]')
# What only ends what an error tells: mongod's, and nginx's, which has named the address before.
_END = re.compile(r'\{"t":\{.{,60}"s":"F"|.*\[emerg\].*still could not bind\(\)')
# What is read of a log: its end.
_TAIL_BYTES = 64 * 2**10
RUNBOOK = "docs/runbook.md"
# What a log says, and what to do. Texts in quotes are headings.
ADVICE = {
    "No space left on device": f"its disk is full: make room ({RUNBOOK}, “A disk is full”)",
    "Unable to acquire security key|Error creating service context": "the key file is damaged: "
    f"delete it, and the next start makes one ({RUNBOOK}, “MongoDB's key file is lost”)",
    "DBPathInUse|Another mongod instance is already running": "another mongod works in this "
    f"folder: end it first ({RUNBOOK}, “Two stacks on one folder”)",
    "featureCompatibilityVersion|UPGRADE PROBLEM|unsupported WiredTiger file version": "another "
    f"release of MongoDB made the data ({RUNBOOK}, “An older program on newer data”)",
    "WT_PANIC|WT_TRY_SALVAGE|WT_ERROR: non-specific": "the files of the database are damaged: "
    f"restore a backup into a new stack ({RUNBOOK}, “Files of the database are damaged”)",
    "Address already in use": f"its port is taken ({RUNBOOK}, “A port is taken”)",
    "ValueError: [A-Z][A-Z0-9_]+ must": f"a setting is wrong ({RUNBOOK}, “A setting is wrong”)",
}


def last_words(log: Path, since_bytes: int = 0) -> str:
    """Return the last line of a log that may be a reason, where the log is, and what to do.

    Of what was written after its first `since_bytes`, if it was not rotated.
    """
    with contextlib.suppress(OSError), log.open(errors="replace") as file:
        size = log.stat().st_size
        begin = since_bytes if size >= since_bytes else 0
        file.seek(max(begin, size - _TAIL_BYTES))
        lines = [line.strip() for line in file if line.strip()]
        errors = [line for line in lines if not _NO_ERROR.match(line)]
        reasons = [line for line in errors if not _END.match(line)]
        if lines:
            said = f"{(reasons or lines)[-1]} [{log}]"
            return "; ".join(filter(None, (advice("\n".join(errors)), said)))
    return f"it wrote no log [{log}]"


def advice(text: str) -> str:
    """Return what to do about what a log says last, "" where that is not known."""
    signs = {
        match.start(): todo for sign, todo in ADVICE.items() for match in re.finditer(sign, text)
    }
    return signs[max(signs)] if signs else ""
