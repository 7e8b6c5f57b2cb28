"""A database that somebody else runs: with TLS and users of its own, known by its URI."""

import asyncio
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from common import schema
from ingest import create_app
from ingest.assembly import Context
from ingest.config import Config
from ingest.errors import StoreUnavailable
from ingest.recording.outcome import Outcome
from ingest.recording.recorder import Recorder
from ingest.storage.database.client import Client
from mongo import outside, topology
from scripts.processes import ROOT
from scripts.processes.cluster import Cluster
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.services.ingest.test_loop_inserts import heard

PASSWORD = "of-the-provider"
SECONDS = 60


class Provider:
    """A mongod with TLS and users in `admin`, as a provider has them."""

    def __init__(self, address: str, certificate: Path) -> None:
        self.tls = f"tls=true&tlsCAFile={certificate}"
        self.address = address

    def uri(self, login: str = "", options: str = "") -> str:
        return f"mongodb://{login}{self.address}/?{self.tls}&replicaSet=embedded{options}"

    @property
    def administrator(self) -> str:
        return self.uri(f"operator:{PASSWORD}@", "&authSource=admin")

    @property
    def services(self) -> str:
        return self.uri(f"phones:{PASSWORD}@", "&authSource=admin")


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    folder = tmp_path_factory.mktemp("tls")
    script = [str(ROOT / "scripts/certificate"), str(folder)]
    subprocess.run(script, check=True, capture_output=True)
    certificate, both = folder / "certificate.pem", folder / "both.pem"
    both.write_bytes(certificate.read_bytes() + (folder / "key.pem").read_bytes())
    cluster = Cluster(topology.load(topology.EMBEDDED), folder / "data")
    (server,) = cluster.servers().values()
    command = [*server.command, "--tlsMode=requireTLS", f"--tlsCertificateKeyFile={both}"]
    provider = Provider(cluster.local.users_set.members[0], certificate)
    with Process("mongod", command, folder / "mongod.log"):
        make_users(provider, cluster.secrets.keyfile)
        yield provider


def make_users(provider: Provider, keyfile: str) -> None:
    """Do what a provider has done before anybody gets a URI."""
    alone = f"mongodb://{provider.address}/?{provider.tls}&directConnection=true"
    with MongoClient[dict[str, Any]](
        alone, username="__system", password=keyfile, authSource="local",
        authMechanism="SCRAM-SHA-256", serverSelectionTimeoutMS=SECONDS * 1000,
    ) as client:  # fmt: skip
        members = [{"_id": 0, "host": provider.address}]
        client.admin.command("replSetInitiate", {"_id": "embedded", "members": members})
        eventually(lambda: client.admin.command("hello")["isWritablePrimary"], SECONDS)
        add = partial(client.admin.command, "createUser", pwd=PASSWORD)
        database = schema.DATABASE
        add("phones", roles=[{"role": "readWrite", "db": database}])
        roles = [{"role": role, "db": database} for role in ("readWrite", "dbAdmin")]
        add("operator", roles=roles)


@pytest.fixture
def prepared(provider: Provider) -> list[str]:
    said: list[str] = []
    outside.prepare(provider.administrator, ROOT / "mongo/directory.csv", said.append)
    return said


def settings(provider: Provider, folder: Path, **more: Any) -> Config:
    more.setdefault("mongodb_uri", provider.services)
    return Config(spool_file=str(folder / "spool.db"), **more)


def test_it_is_prepared_by_its_uri_alone_and_again(provider: Provider) -> None:
    said: list[str] = []
    beacons = ROOT / "mongo/directory.csv"
    outside.prepare(provider.administrator, beacons, said.append)
    assert said[:1] == ["directory of beacons: 57 added, 0 changed, 0 unchanged"]
    said.clear()
    outside.prepare(provider.administrator, beacons, said.append)
    assert said == []
    with MongoClient[dict[str, Any]](provider.administrator) as client:
        database = client[schema.DATABASE]
        for collection in schema.COLLECTIONS:
            for index in collection.indexes:
                assert index.name in database[collection.name].index_information()


@pytest.mark.usefixtures("prepared")
def test_a_service_needs_its_uri_alone(provider: Provider, tmp_path: Path) -> None:
    app = create_app(settings(provider, tmp_path))
    context: Context = app.extensions["context"]
    try:
        client = app.test_client()
        query = {"user_address": "7", "beacon_address": "C2A628010001", "rssi": "-20"}
        assert client.get("/newbeacondetect", query_string=query).status_code == 200
        history = {"staff_id": "7", "start_time": "0", "end_time": "4102444800"}
        told = client.get("/extractbeacon", query_string=history).get_json()["location"]
        assert [spot["location"] for spot in told] == ["Lobby A"]
        assert client.get("/readyz").status_code == 200
        # What needs more than to read and write: change stream, room on the disks, its lists.
        for address in ("changes", "system", "system/database", "now", "staff"):
            assert client.get(f"/api/v1/{address}").status_code == 200, address
    finally:
        context.close()


@pytest.mark.usefixtures("prepared")
def test_the_event_loop_leaves_an_encrypted_connection_to_the_driver(
    provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    context: Context = create_app(settings(provider, tmp_path)).extensions["context"]
    recorder = context.recording.recorder
    lent, by_thread = [], 0
    lend, store = Client.lend_socket, Recorder.store

    def lending(client: Client, seconds: float) -> Any:
        lent.append(lend(client, seconds))
        return lent[-1]

    def counted(self: Recorder, requests: list[Any], *until: float) -> Any:
        nonlocal by_thread
        by_thread += len(requests)
        return store(self, requests, *until)

    monkeypatch.setattr(Client, "lend_socket", lending)
    monkeypatch.setattr(Recorder, "store", counted)

    async def work() -> None:
        recorder.run_in(asyncio.get_running_loop())
        try:
            for n in range(20):
                assert await recorder.submit([heard(f"tls {n}", 200 + n)]) == [Outcome.STORED]
            group = [recorder.submit([heard(f"tls group {n}", 220 + n)]) for n in range(20)]
            assert await asyncio.gather(*group) == [[Outcome.STORED]] * 20
        finally:
            await asyncio.to_thread(context.close)

    with ThreadPoolExecutor(1) as elsewhere:  # the main thread may have the loop of a browser
        elsewhere.submit(asyncio.run, work()).result()
    assert lent == [None]  # asked once, and never again
    assert by_thread == 40
    with MongoClient[dict[str, Any]](provider.services) as client:
        staff = client[schema.DATABASE][schema.STAFF.name]
        assert staff.count_documents({"staff_id": {"$gte": 200, "$lt": 240}}) == 40


@pytest.mark.usefixtures("prepared")
def test_a_user_of_admin_logs_in_by_the_password_file(provider: Provider, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(f"{PASSWORD}\n")
    login = {"mongodb_user": "phones", "mongodb_password_file": str(password)}
    uri = provider.uri(options="&authSource=admin")
    client = Client(settings(provider, tmp_path, mongodb_uri=uri, **login))
    client.ping(5)
    client.close()
    # Without it, users are where our own bootstrap makes them.
    client = Client(settings(provider, tmp_path, mongodb_uri=provider.uri(), **login))
    with pytest.raises(StoreUnavailable):
        client.ping(5)
    client.close()


@pytest.mark.parametrize("wrong", ["no TLS", "another authority"])
def test_a_database_that_cannot_be_trusted_gets_nothing(
    provider: Provider, tmp_path: Path, wrong: str
) -> None:
    uri = provider.services.replace(f"{provider.tls}&", "tls=true&" if wrong != "no TLS" else "")
    client = Client(settings(provider, tmp_path, mongodb_uri=uri, mongodb_timeout_ms=300))
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable):
        client.ping(0.3)
    assert time.monotonic() - begun < 30
    client.close()


# The driver itself warns of these, and connects without TLS (findings/tls-true.sh).
NOT_UNDERSTOOD = {
    "tls=True": "The value of tls must be 'true' or 'false'",
    "tls=1": "The value of tls must be 'true' or 'false'",
    "tlss=true": "Unknown option: tlss",
}


@pytest.mark.parametrize("option", NOT_UNDERSTOOD)
def test_an_option_that_is_not_understood_ends_the_start(option: str, tmp_path: Path) -> None:
    uri = f"mongodb://127.0.0.1:1/?{option}"
    with pytest.raises(ValueError, match=f"^MONGODB_URI: {NOT_UNDERSTOOD[option]}"):
        Client(Config(mongodb_uri=uri, spool_file=str(tmp_path / "spool.db")))


@pytest.mark.parametrize(
    ("uri", "problem"),
    [
        ("", "MONGODB_URI is not set"),
        ("mongodb://127.0.0.1:1/?tls=True", "MONGODB_URI: The value of tls must be"),
        ("127.0.0.1:1/?tls", "MongoDB refused: "),
    ],
)
def test_the_preparation_says_what_is_wrong_in_one_line(
    uri: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MONGODB_URI", uri)
    monkeypatch.setattr("sys.argv", ["outside"])
    with pytest.raises(SystemExit, match=problem):
        outside.main()
