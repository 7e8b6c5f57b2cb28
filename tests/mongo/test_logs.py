"""Whom the database's own log names."""

from pathlib import Path
from typing import Any

from pymongo import MongoClient

from mongo import topology
from scripts.processes.cluster import Cluster

PERSON = "Zaphod-4711"


def test_a_slow_read_is_not_logged_as_it_names_somebody(tmp_path: Path) -> None:
    with Cluster(topology.load(topology.EMBEDDED), tmp_path).running() as cluster:
        log = tmp_path / "mongod.log"
        with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
            staff = client["ICT3102"]["staff"]
            staff.insert_one({"staff_id": PERSON})
            slow = {"staff_id": PERSON, "$where": "sleep(300) || true"}
            assert staff.find_one(slow)
            assert PERSON not in log.read_text()
            client["ICT3102"].command("profile", 0, slowms=100)  # as it ships
            assert staff.find_one(slow)
            assert PERSON in log.read_text()
