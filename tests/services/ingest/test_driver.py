"""What the driver's errors become."""

import gc
from typing import Any

import pymongo
import pytest
from flask import Flask
from pymongo.database import Database

from ingest.assembly import Context
from ingest.errors import StoreUnavailable
from ingest.storage.database.driver import command, domain_errors


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
