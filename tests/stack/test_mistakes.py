"""What an operator's own mistakes do: each is told with what to do, and harms nothing."""

from pathlib import Path

import pytest

from common import schema
from mongo import topology
from mongo.clients import as_administrator
from mongo.data import VERSION
from mongo.secrets import KEYFILE, Secrets
from scripts.native.layout import Layout
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.stack.conftest import Stack

pytestmark = pytest.mark.long


def refused(stack: Stack) -> str:
    """Start a stack that must not start; return the one line that says why."""
    failed = stack.script("up", "--detach", "--port", stack.port)
    assert (failed.returncode, failed.stderr.count("\n")) == (1, 1), failed.stderr
    return failed.stderr


def set_version(stack: Stack, version: int) -> None:
    layout = Layout.saved(stack.data)
    assert layout
    local = topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port)
    with as_administrator(local.users_set, Secrets.read(layout.secrets)) as client:
        query, change = {"_id": schema.DATA}, {"$set": {"version": version, "by": "9.1.0"}}
        client[schema.DATABASE][schema.DIRECTORY.name].update_one(query, change)


def test_keys_and_versions_that_are_wrong_are_told_and_lose_nothing(fresh: Stack) -> None:
    fresh.up()
    assert fresh.detect(7).status_code == 200
    other = fresh.script("up", "--detach", "--port", free_port())
    assert "this stack runs already at" in other.stderr
    set_version(fresh, VERSION + 1)
    fresh.down()
    assert "up: Waymark 9.1.0 has made these data version" in refused(fresh)

    key = fresh.data / "secrets" / KEYFILE
    key.chmod(0o600)
    key.write_text("!!")
    assert "the key file is damaged: delete it" in refused(fresh)
    key.unlink()
    assert "up: Waymark 9.1.0" in refused(fresh)  # a new key opens what the old one did


def test_what_was_lost_is_told_and_what_ended_says_why(fresh: Stack) -> None:
    fresh.up()
    assert fresh.detect(7).status_code == 200
    eventually(lambda: (fresh.data / "spool" / "database.name").exists())
    fresh.down()
    kept = fresh.data / "mongod.kept"
    (fresh.data / "mongod").rename(kept)
    fresh.up()
    lost = "The database is a new one, and not that which was here. It was made at "
    eventually(lambda: fresh.script("status").stdout.count(lost) == 2)

    def verdict() -> str:
        report = fresh.get("/monitoring/api/system").json()
        return str((report["verdict"] or {}).get("what"))

    eventually(lambda: verdict() == lost.partition(".")[0], 90)
    fresh.down()

    (fresh.data / "mongod").rename(fresh.data / "mongod.new")
    kept.rename(fresh.data / "mongod")
    fresh.up()
    assert len(fresh.history(7)) == 1
    assert lost not in fresh.script("status").stdout
    fresh.supervisorctl("stop", "ingest-2")
    status = fresh.script("status")
    assert status.returncode == 1
    assert "ingest-2.log]" in status.stdout
