"""What the log tells of an exception."""

import io
import logging
import sqlite3

import pytest

from common.log_lines import FORMAT, NamelessFormatter

PERSON = "Zaphod-4711"


def unforeseen() -> None:
    try:
        int(PERSON)
    except ValueError as error:
        raise KeyError(PERSON) from error


def full() -> None:
    raise OSError(28, "No space left on device", f"/spool/{PERSON}")


def away() -> None:
    with sqlite3.connect(":memory:") as file:
        file.execute(f"SELECT '{PERSON}' FROM nowhere")


def logged(fail: object) -> str:
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(NamelessFormatter(FORMAT))
    log = logging.Logger("ingest")
    log.addHandler(handler)
    assert callable(fail)
    try:
        fail()
    except Exception:
        log.exception("request %s", "0123")
    return written.getvalue()


@pytest.mark.parametrize(
    ("fail", "says"),
    [
        (unforeseen, ["builtins.ValueError", "builtins.KeyError"]),
        (full, ["builtins.OSError No space left on device"]),
        (away, ["sqlite3.OperationalError SQLITE_ERROR"]),
    ],
)
def test_it_has_the_frames_and_the_kinds_and_no_words(fail: object, says: list[str]) -> None:
    text = logged(fail)
    assert "ERROR ingest: request 0123\n" in text
    assert [line for line in text.splitlines()[1:] if not line.startswith(" ")] == says
    assert f"in {getattr(fail, '__name__', '')}\n" in text
    assert PERSON not in text
