"""The bootstrap on one real replica set: it converges, and lets nobody in who does not belong."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from mongo import secrets, topology
from mongo.bootstrap import KeyFileError
from mongo.progress import NotInTimeError
from mongo.topology import ReplicaSet, Topology
from scripts.processes.cluster import Cluster

SINGLE = topology.load(topology.EMBEDDED)
TRIPLE = Topology(ReplicaSet("embedded", ("mongod:1", "mongod-2:1", "mongod-3:1")), None, (), ())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(SINGLE, tmp_path) as cluster:
        yield cluster


def test_run_again_it_does_nothing(cluster: Cluster, root: Path) -> None:
    beacons = root / "mongo" / "directory.csv"
    assert cluster.bootstrap(beacons) == [
        "replica set embedded: initiated, 1 members",
        "user admin of admin: created",
        "user waymark of ICT3102: created",
        "directory of beacons: 57 added, 0 changed, 0 unchanged",
    ]
    assert cluster.bootstrap(beacons) == []


def test_lost_passwords_are_set_anew(cluster: Cluster) -> None:
    cluster.bootstrap()
    for name in (secrets.APP_PASSWORD, secrets.ADMIN_PASSWORD):
        (cluster.folder / "secrets" / name).unlink()
    assert set(secrets.ensure(cluster.folder / "secrets")) == {"app_password", "admin_password"}
    cluster.secrets = secrets.Secrets.read(cluster.folder / "secrets")
    assert cluster.bootstrap() == []
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        client["ICT3102"]["staff"].find_one()


def test_another_key_file_is_told_with_what_to_do(cluster: Cluster) -> None:
    cluster.bootstrap()
    true = cluster.secrets
    cluster.secrets = true._replace(keyfile="x" * 64)
    with pytest.raises(KeyFileError, match="was started with another key file: restart all"):
        cluster.bootstrap()
    cluster.secrets = true
    assert cluster.bootstrap() == []


def refused(client: MongoClient[Any], database: str, command: str, value: object = 1) -> bool:
    try:
        client[database].command(command, value)
    except OperationFailure as error:
        return error.code in (13, 18)
    return False


def test_who_may_do_what(cluster: Cluster) -> None:
    anybody = f"mongodb://{cluster.local.users_set.members[0]}/?directConnection=true"
    with MongoClient[dict[str, Any]](anybody) as client:
        # Before there is any user as well: the localhost exception is off.
        for command in ("listDatabases", "replSetGetStatus", "shutdown"):
            assert refused(client, "admin", command)
        with pytest.raises(OperationFailure, match="requires authentication"):
            client.admin.command("createUser", "root", pwd="x", roles=["root"])
    cluster.bootstrap()
    with MongoClient[dict[str, Any]](anybody) as client:
        assert refused(client, "ICT3102", "find", "staff")
        assert refused(client, "ICT3102", "insert", "staff")
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        client["ICT3102"]["staff"].insert_one({"staff_id": 1})
        assert refused(client, "config", "find", "system.sessions")
        assert refused(client, "admin", "replSetGetStatus")
        assert refused(client, "ICT3102", "dropUser", "waymark")
        assert refused(client, "admin", "shutdown")
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:
        client["ICT3102"]["staff"].find_one()
        assert refused(client, "other", "find", "anything")


def test_the_services_user_adds_to_the_audit_and_changes_nothing_of_it(cluster: Cluster) -> None:
    cluster.bootstrap()
    with MongoClient[dict[str, Any]](cluster.uri(user="admin")) as client:  # as it was once
        roles = [{"role": "readWrite", "db": "ICT3102"}]
        client["ICT3102"].command("updateUser", "waymark", roles=roles)
    cluster.bootstrap()
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        database = client["ICT3102"]
        audit, staff = database["audit"], database["staff"]
        audit.insert_one({"_id": 1, "what": "log-in"})
        staff.insert_one({"_id": 1})
        attempts: list[Callable[[], object]] = [
            lambda: audit.update_one({"_id": 1}, {"$set": {"what": "nothing"}}),
            lambda: audit.update_one({"_id": 2}, {"$set": {"what": "x"}}, upsert=True),
            lambda: audit.replace_one({"_id": 1}, {}),
            lambda: audit.find_one_and_update({"_id": 1}, {"$set": {"what": "nothing"}}),
            lambda: audit.find_one_and_delete({"_id": 1}),
            lambda: audit.delete_one({"_id": 1}),
            lambda: audit.delete_many({}),
            audit.drop,
            lambda: audit.rename("forgotten"),
            lambda: staff.rename("audit", dropTarget=True),
            lambda: database.command("convertToCapped", "audit", size=4096),
            lambda: database.command("collMod", "audit", validator={"_id": {"$lt": 0}}),
            lambda: audit.create_index("at", expireAfterSeconds=0),
            lambda: list(staff.aggregate([{"$out": "audit"}])),
            lambda: list(staff.aggregate([{"$merge": "audit"}])),
            lambda: database.command("createRole", "x", privileges=[], roles=["dbOwner"]),
            lambda: database.command("grantRolesToUser", "waymark", roles=["dbOwner"]),
            lambda: client.drop_database("ICT3102"),
        ]
        for number, attempt in enumerate(attempts):
            with pytest.raises(OperationFailure) as refused:
                attempt()
            assert refused.value.code == 13, number
        assert list(audit.find()) == [{"_id": 1, "what": "log-in"}]


@pytest.mark.long
def test_data_follow_to_another_port(cluster: Cluster) -> None:
    cluster.bootstrap()
    cluster.kill("mongod")
    cluster.first_port += 50
    cluster.start()
    (step,) = cluster.bootstrap()
    assert step.startswith("replica set embedded: moved here from 127.0.0.1:")
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        client["ICT3102"]["staff"].insert_one({"staff_id": 1})


@pytest.mark.long
def test_one_member_grows_to_three(cluster: Cluster) -> None:
    cluster.bootstrap()
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        client["ICT3102"]["staff"].insert_many({"staff_id": n} for n in range(1000))
    cluster.topology = TRIPLE
    cluster.start()
    steps = cluster.bootstrap()
    assert [step.split(": added")[0] for step in steps] == ["replica set embedded"] * 2
    assert cluster.bootstrap() == []
    with MongoClient[dict[str, Any]](cluster.uri()) as client:
        staff = client["ICT3102"]["staff"].with_options()
        staff.database.get_collection("staff").insert_one({"staff_id": -1})
        assert staff.count_documents({}) == 1001


def test_what_is_missing_is_named_at_the_deadline(tmp_path: Path) -> None:
    cluster = Cluster(SINGLE, tmp_path)  # never started
    with pytest.raises(NotInTimeError, match=r"after 1 s still no answer from 127\.0\.0\.1:"):
        cluster.bootstrap(deadline_seconds=1)
