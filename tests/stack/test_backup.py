"""The drill: a backup of a busy stack, restored into another that phones use already."""

import subprocess
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyrage.x25519 import Identity

from common.schema import DATABASE
from mongo import services_role, topology
from mongo.backup import marks, shelves
from mongo.backup.backup import Backup
from mongo.clients import Client, as_administrator
from mongo.secrets import Secrets
from scripts.processes.ports import free_port
from scripts.processes.waiting import eventually
from tests.phones import Phones, through
from tests.stack.conftest import Stack, running_stack, started

pytestmark = pytest.mark.long

STAFF = range(8)
SECONDS = 400  # shards may be emulated


def said(stack: Stack, *words: object) -> str:
    done = stack.script(*map(str, words))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def has(stack: Stack, staff_id: object, count: int) -> bool:
    return len(stack.history(staff_id)) == count


def administrator(stack: Stack) -> Client:
    """Connect to the database of a stack without shards."""
    port = int(stack.environment["WAYMARK_MONGOD_PORT"])
    local = topology.load(topology.EMBEDDED).on_this_machine(port)
    secrets = Secrets.read(stack.data / "secrets")
    return as_administrator(local.users_set, secrets)


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of a short name: a data folder's path has a bound."""
    return tmp_path_factory.mktemp("b")


def test_what_was_acknowledged_is_restored_and_no_phone_waits(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "shelf"
    with running_stack(root, tmp_path / "old") as old:
        before, after, known = back_up(old, folder, [*STAFF])
    with running_stack(root, tmp_path / "new") as new:
        restore_into(new, folder, before, after, known)


def back_up(
    old: Stack, folder: Path, people: list[Any]
) -> tuple[Counter[Any], Counter[Any], set[Any]]:
    """Make a backup while new people's phones send.

    Return what it has of them at least, and at most, and of whom it has anything.
    """
    with Phones(through(old.url), people, rest_seconds=0.05) as phones:
        phones.wait_for(200, 100, SECONDS)
        before = phones.acknowledged
        assert "is whole" in said(old, "backup", folder)
        after = phones.acknowledged
    eventually(partial(has, old, people[0], phones.acknowledged[people[0]]), SECONDS)
    assert sum(after.values()) > sum(before.values())
    assert "is good" in said(old, "backup", "verify", folder)
    return before, after, heard_of(old)


def heard_of(stack: Stack) -> set[Any]:
    return {row["staff_id"] for row in stack.read("/api/v1/staff").json()["data"]}


def restore_into(
    new: Stack, folder: Path, before: Counter[Any], after: Counter[Any], known: set[Any]
) -> None:
    """Restore it into a stack of its own, which a phone uses already."""
    empty = new.read("/api/v1/staff").headers["ETag"]
    with Phones(through(new.url), ["new"], rest_seconds=0.05) as phones:
        phones.wait_for(200, 1, SECONDS)
        assert "equals" in said(new, "restore", folder)
        assert phones.answers[202]  # into the spool
        phones.wait_for(200, 1, SECONDS)
    assert phones.worst_tries == 1
    eventually(partial(has, new, "new", phones.acknowledged["new"]), SECONDS)
    restored = Counter({staff_id: len(new.history(staff_id)) for staff_id in after})
    assert all(before[n] <= restored[n] <= after[n] + 1 for n in after)
    assert new.read("/api/v1/staff").headers["ETag"] != empty
    assert heard_of(new) == {*known, "new"} >= {*after}
    again = new.script("restore", folder)
    assert again.returncode == 1
    assert "not empty" in again.stderr


def test_what_waits_in_spools_is_restored_from_what_nobody_can_read(
    root: Path, tmp_path: Path
) -> None:
    private, key = Identity.generate(), tmp_path / "waymark.key"
    key.write_text(f"{private}\n")
    old = Stack(root, tmp_path / "old" / "data")
    old.environment["WAYMARK_BACKUP_KEY"] = str(private.to_public())
    with started(old):
        with administrator(old) as client:  # the services may do nothing, as if it were away
            client[DATABASE].command("updateRole", services_role.NAME, privileges=[])
        eventually(lambda: old.detect(7, event_id="waits").status_code == 202)
        said(old, "backup", tmp_path / "shelf")
        assert not list((old.data / "spool").glob(".backup*"))
    with running_stack(root, tmp_path / "new") as new:
        assert new.detect(7).status_code == 200
        other = tmp_path / "other.key"
        other.write_text(f"{Identity.generate()}\n")
        for options, why in (
            ((), "give --identity"),
            (("--identity", other), "identity is of age1"),
        ):
            refused = new.script("restore", *options, tmp_path / "shelf")
            assert (refused.returncode, why in refused.stderr) == (1, True), refused.stderr
        assert has(new, 7, 1)
        said(new, "restore", "--identity", key, tmp_path / "shelf")
        eventually(partial(has, new, 7, 2))
        # It is that one, also when its phone sends it again.
        assert new.detect(7, event_id="waits").status_code == 200
        assert has(new, 7, 2)


def test_the_drill_of_the_documents(root: Path, tmp_path: Path) -> None:
    """It stands beside the stack that runs, whatever the file of settings says of that."""
    old, new = Stack(root, tmp_path / "old"), Stack(root, tmp_path / "new")
    settings = tmp_path / "env"
    settings.write_text(f"GATEWAY_LISTEN=127.0.0.1:{free_port()}\n")
    old.environment["COMPOSE_ENV_FILES"] = str(settings)
    with started(old):
        assert old.detect(7).status_code == 200
        said(old, "backup", tmp_path / "shelf")
        drill(root, old, new, tmp_path / "shelf")
        assert old.detect(7).status_code == 200


def drill(root: Path, old: Stack, new: Stack, shelf: Path) -> None:
    """Type what the document has, where the old stack is at home."""
    text = (root / "docs" / "backup.md").read_text()
    commands = text.split("## The drill")[1].split("```sh")[1].split("```")[0]
    for written, here in {
        "/mnt/backups": shelf,
        "/tmp/drill": new.data,
        "5101 5102": new.environment["WAYMARK_INGEST_PORTS"],
        "4100": new.environment["WAYMARK_MONITORING_PORT"],
        "28117": new.environment["WAYMARK_MONGOD_PORT"],
        "8180": new.port,
    }.items():
        assert written in commands
        commands = commands.replace(written, str(here))
    try:
        done = subprocess.run(
            ["bash", "-e"],
            input=commands,
            cwd=root,
            env=old.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    finally:
        new.down()
    assert done.returncode == 0, done.stderr
    assert "is good" in done.stdout
    assert "equals" in done.stdout
    assert '"staff_id":7' in done.stdout
    assert not new.data.exists()


def test_a_stack_with_half_a_backup_starts_and_the_restore_goes_on(
    root: Path, tmp_path: Path
) -> None:
    with running_stack(root, tmp_path / "old") as old:
        assert old.detect(7).status_code == 200
        said(old, "backup", tmp_path / "shelf")
    with running_stack(root, tmp_path / "new") as new:
        with administrator(new) as client:
            shelf, name = shelves.chosen(str(tmp_path / "shelf"))
            backup = Backup.opened(shelf.files(name))
            assert marks.begin_restore(client[DATABASE], backup.identity)
        new.down()
        assert "./scripts/restore goes on" in new.up()
        assert new.get("/readyz").status_code != 200
        assert new.detect(8).status_code == 202
        said(new, "restore", tmp_path / "shelf")
        for staff_id in (7, 8):
            eventually(partial(has, new, staff_id, 1))


def test_who_was_forgotten_since_is_forgotten_again_before_anybody_sees_it(
    root: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "shelf"
    with running_stack(root, tmp_path / "old") as old:
        for staff_id in ("forgotten", "kept"):
            assert old.detect(staff_id).status_code == 200
        said(old, "token", "create", "phone", "--role", "ingest")
        said(old, "backup", "--scheduled", folder)
        backup = old.read("/api/v1/system/database").json()["backup"]
        assert (backup["scheduled"], backup["failed"], backup["late"]) == (True, False, False)
        assert backup["finished_at"] >= backup["started_at"]
        (first,) = folder.iterdir()
        said(old, "person", "forget", "forgotten", "--yes")
        said(old, "backup", folder)
    for number, backup in enumerate((first, folder)):
        with running_stack(root, tmp_path / f"new-{number}") as new:
            assert "equals" in said(new, "restore", backup)
            assert "phone" in said(new, "token", "list")
            assert has(new, "kept", 1)
            assert has(new, "forgotten", 0)
            assert {row["staff_id"] for row in new.read("/api/v1/staff").json()["data"]} == {"kept"}
            # They may come back.
            assert new.detect("forgotten").status_code == 200
            assert has(new, "forgotten", 1)


def test_what_is_no_backup_is_said(root: Path, tmp_path: Path) -> None:
    nothing = Stack(root, tmp_path / "none")
    for words, why in (
        (("backup", tmp_path), "has no stack: ./scripts/up"),
        (("restore", tmp_path), "has no stack: ./scripts/up"),
        (("backup", "verify", tmp_path), "there is no whole backup in"),
    ):
        done = nothing.script(*map(str, words))
        assert (done.returncode, why in done.stderr) == (1, True), done.stderr
        assert "Traceback" not in done.stderr
