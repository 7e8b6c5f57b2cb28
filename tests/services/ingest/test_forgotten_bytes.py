"""Whoever is forgotten stands nowhere, byte by byte: on two services, by the command."""

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import bson
import pytest
from pymongo import MongoClient
from pymongo.database import Database

from common import schema
from common.erasures import FILE_NAME, parse
from mongo import clients, forget, topology
from scripts.processes import ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.waiting import eventually
from tests.service import Service, running

HER, HIM = "zq9forgettable7", "zq9unforgettable"


def files_with(staff_id: str, folder: Path) -> list[str]:
    """Return the files that have an id; logs tell what was asked for, and are no data."""
    files = (file for file in folder.rglob("*") if file.is_file() and file.suffix != ".log")
    return [str(file) for file in files if staff_id.encode() in file.read_bytes()]


def person(uri: str, spools: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command as ./scripts/person does."""
    path = os.pathsep.join([str(ROOT), str(ROOT / "services" / "ingest")])
    settings = {"PYTHONPATH": path, "MONGODB_URI": uri, "SPOOL_FILE": str(spools / "any.db")}
    return subprocess.run(
        [sys.executable, "-m", "ingest.commands.person", *words],
        env=os.environ | settings,
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
    )


def hear(service: Service, staff_id: str, event_id: str, status: int) -> None:
    answer = service.detect(staff_id, event_id=event_id)
    assert answer.status_code == status, answer.text


def everything(client: MongoClient[Any]) -> dict[str, bytes]:
    """Return all that can be read of the database, by collection."""
    return {
        f"{name}.{collection}": b"".join(map(bson.encode, client[name][collection].find()))
        for name in ("ICT3102", "local", "config")
        for collection in client[name].list_collection_names()
    }


def search_new_files(database: Database[Any], folder: Path) -> None:
    """Fill a server that never held more with all that can be read, and search its files."""
    with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
        with clients.as_system(cluster.local.users_set.members[0], cluster.secrets) as client:
            for name in database.list_collection_names():
                if rows := list(database[name].find()):
                    client[schema.DATABASE][name].delete_many({})  # what each new one has
                    client[schema.DATABASE][name].insert_many(rows)
            client.admin.command("fsync")
        assert files_with(HER, folder) == []
        assert files_with(HIM, folder)  # as it is searched, it would be found


@pytest.mark.long
def test_no_byte_is_left(tmp_path: Path, root: Path) -> None:
    spools = tmp_path / "spool"
    spools.mkdir()
    beacons = root / "mongo" / "directory.csv"
    with Cluster(topology.load(topology.EMBEDDED), tmp_path / "first").running(beacons) as cluster:
        uri = cluster.uri()
        with running(Service(uri, spools), Service(uri, spools)) as (kept, killed):
            for n in range(20):
                for service, staff_id in itertools.product((kept, killed), (HER, HIM)):
                    hear(service, staff_id, f"{service.port}-{n}", 200)
            address = f"{kept.url}/api/v1/people/{HER}"
            assert kept.session.put(address, json={"name": "Her", "note": HER}, timeout=30).ok
            with cluster.away("mongod", "frozen"):
                for service, staff_id in itertools.product((kept, killed), (HER, HIM)):
                    hear(service, staff_id, f"{service.port}-waits", 202)
                killed.kill()
            # Of the other one the server may have been told, too, before it was frozen.
            eventually(lambda: len(kept.history(HIM)) >= 41, 60)
            assert files_with(HER, spools)
            done = person(uri, spools, "forget", HER, "--yes")
            assert re.search(f"staff {HER} is forgotten: 4[12] detections", done.stdout)
            assert "the spool of a service that does not run has some" in done.stderr
            killed.start()
            eventually(lambda: not files_with(HER, spools), 30)
            assert person(uri, spools, "forget", HER, "--yes").returncode == 0
            eventually(lambda: len(killed.history(HIM)) == 42, 60)
            assert killed.history(HER) == []
            known = parse((spools / FILE_NAME).read_text())
            forget.forget(known, cluster.local, cluster.secrets)
            with clients.as_system(cluster.local.users_set.members[0], cluster.secrets) as client:
                found = {name for name, rows in everything(client).items() if HER.encode() in rows}
                assert found == {"local.oplog.rs"}  # where it goes by itself
                search_new_files(client[schema.DATABASE], tmp_path / "second")
