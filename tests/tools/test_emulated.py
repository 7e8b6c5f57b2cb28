"""The real MongoDB 7.0.11 that machines without one fetch, emulated on x86-64."""

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient
from pymongo.errors import PyMongoError

from scripts.processes.ports import free_port
from scripts.processes.process import Process
from scripts.processes.waiting import eventually
from tests.needs import need_routers

pytestmark = pytest.mark.long

SMALL = ["--wiredTigerCacheSizeGB", "0.25", "--oplogSize", "16"]
# A mongos that gets SIGTERM waits 15 s for its clients to leave.
QUICK_END = ["--setParameter", "mongosShutdownTimeoutMillisForSignaledShutdown=0"]
Client = MongoClient[dict[str, Any]]


def fetch(
    root: Path, *arguments: object, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [str(root / "mongo" / "fetch-emulated"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)


@pytest.fixture(scope="session")
def folder(root: Path) -> Path:
    need_routers()
    done = fetch(root)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


def test_a_finished_folder_is_taken_at_once(root: Path, folder: Path) -> None:
    made = folder.stat()
    assert fetch(root, folder).stdout == f"{folder}\n"
    now = folder.stat()
    assert (now.st_ino, now.st_mtime_ns) == (made.st_ino, made.st_mtime_ns)  # not made anew


def test_a_folder_of_somebody_else_is_left_alone(root: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").touch()
    done = fetch(root, theirs)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"{theirs} exists and is not ours: name another folder\n"
    assert [file.name for file in tmp_path.rglob("*")] == ["theirs", "file"]


class Server(Process):
    """One mongod or mongos of the folder."""

    def __init__(self, program: Path, data: Path, *arguments: str) -> None:
        data.mkdir()
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        place = ["--bind_ip", "127.0.0.1", "--port", str(port), "--nounixsocket"]
        super().__init__(program.name, [str(program), *place, *arguments], data / "log")
        self.start()

    def until(self, action: Callable[[Client], Any]) -> Any:
        """Return what the action answers as soon as it answers anything."""
        with Client(self.address, directConnection=True, serverSelectionTimeoutMS=200) as client:

            def answer() -> Any:
                assert self.running(), self.log[-2000:]
                with contextlib.suppress(PyMongoError):
                    return action(client)

            return eventually(answer, 90)

    def initiate(self, name: str) -> None:
        members = [{"_id": 0, "host": self.address}]
        document = {"_id": name, "members": members}
        self.until(lambda client: client.admin.command("replSetInitiate", document))
        self.until(lambda client: client.admin.command("hello")["isWritablePrimary"])


@pytest.fixture
def start(folder: Path, tmp_path: Path) -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def mongod_or_mongos(program: str, name: str, *arguments: str) -> Server:
        data = tmp_path / name
        place = ["--dbpath", str(data), *SMALL] if program == "mongod" else []
        servers.append(Server(folder / program, data, *place, *arguments))
        return servers[-1]

    yield mongod_or_mongos
    for server in servers:
        server.kill()


def test_a_sharded_cluster_comes_up(start: Callable[..., Server]) -> None:
    config = start("mongod", "config", "--configsvr", "--replSet", "config")
    shard = start("mongod", "shard", "--shardsvr", "--replSet", "shard")
    config.initiate("config")
    mongos = start("mongos", "mongos", "--configdb", f"config/{config.address}", *QUICK_END)
    shard.initiate("shard")
    mongos.until(lambda client: client.admin.command("addShard", f"shard/{shard.address}"))
    mongos.until(lambda client: client["ICT3102"]["staff"].insert_one({"staff_id": 14}))
    row = shard.until(lambda client: client["ICT3102"]["staff"].find_one({}, {"_id": 0}))
    assert row == {"staff_id": 14}
    for server in (config, shard, mongos):
        # The pid is the server's own, not a shell's: the signal ends it in good order.
        assert b"/arm64/mongo" in Path(f"/proc/{server.pid}/cmdline").read_bytes()
    mongos.send_signal(signal.SIGTERM)
    assert mongos.wait(60) == 0
