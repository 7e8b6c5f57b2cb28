"""What the driver's errors become."""

import gc
from collections.abc import Callable
from typing import Any

import pymongo
import pytest
from flask import Flask
from pymongo.database import Database

from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.storage.database.driver import (
    DUPLICATE_KEY,
    command,
    domain_errors,
    readable,
    write,
)


class Sent(dict[str, Any]):
    """Part of what is sent, which the collector can find."""


@pytest.mark.parametrize("how", ["command", "find", "cursor", "update"])
def test_a_call_that_failed_holds_nothing(app: Flask, database: Database[Any], how: str) -> None:
    context: Context = app.extensions["context"]
    latest = context.database.client.database["latest"]
    database["latest"].insert_one({"_id": 1})
    latest.find_one()
    gc.collect()
    gc.disable()  # nothing but the counts of references frees anything
    try:
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                fail(latest, how)
        assert not [thing for thing in gc.get_objects() if type(thing) is Sent]
    finally:
        gc.enable()


def fail(latest: Any, how: str) -> None:
    """Ask for what takes too long, with much that is sent."""
    slow = Sent({"$where": "sleep(1000) || 1"})
    if how == "command":
        with pymongo.timeout(0.05):
            command(latest, "find", {"filter": slow})
    with domain_errors(), pymongo.timeout(0.05):
        if how == "find":
            latest.find_one(slow)
        elif how == "cursor":
            list(latest.find(slow))
        else:
            latest.update_one(slow, {"$set": {"a": 1}})


PERSON = "Zaphod-4711"


def taken(collection: Any) -> None:
    """Have MongoDB say which key there is already."""
    query = {"query": {"_id": PERSON, "a": 2}, "update": {"$set": {"a": 2}}, "upsert": True}
    command(collection, "findAndModify", query)


def forbidden(collection: Any) -> None:
    """Have MongoDB say which command it does not allow."""
    command(collection.database.client["admin"]["x"], "find", {"filter": {"staff_id": PERSON}})


@pytest.mark.parametrize(
    ("fail", "says"), [(taken, "duplicate key error"), (forbidden, "not authorized")]
)
def test_the_text_of_an_error_names_nobody(
    app: Flask, database: Database[Any], fail: Callable[[Any], None], says: str
) -> None:
    context: Context = app.extensions["context"]
    database["latest"].insert_one({"_id": PERSON, "a": 1})
    with pytest.raises(StoreUnavailable, match=says) as raised:
        fail(context.database.client.database["latest"])
    assert PERSON not in str(raised.value)


def test_the_text_of_a_write_that_failed_names_nobody(
    app: Flask, database: Database[Any], caplog: pytest.LogCaptureFixture
) -> None:
    context: Context = app.extensions["context"]
    latest = context.database.client.database["latest"]
    database["latest"].insert_one({"_id": PERSON})
    [(code, text)] = write(latest, "insert", {"documents": [{"_id": PERSON}]}).failed.values()
    assert code == DUPLICATE_KEY
    assert "duplicate key error" in text
    assert PERSON not in text
    assert list(readable(_number, [{"_id": PERSON}, {"_id": "b", "a": 1}])) == [1]
    assert "cannot be read" in caplog.text
    assert PERSON not in caplog.text


def _number(document: dict[str, Any]) -> int:
    return int(document["a"])
