"""The parts of the stack in the order they start: how to run each and how to ask for its health."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from common import backup_report
from gateway.render import Config, ConfigError
from mongo import secrets, topology
from mongo.binaries import NoMongod, find_binaries
from mongo.directory import DirectoryError
from mongo.servers import servers
from scripts.native import leftovers
from scripts.native.layout import Layout, StackError
from scripts.native.version import version
from scripts.processes import ALLOCATOR, ROOT
from scripts.processes.cluster import connection_string
from scripts.processes.health import Probe, http_problem, mongodb_problem

# What ends a command with one line.
FAILURES = (StackError, NoMongod, topology.TopologyError, DirectoryError, ConfigError, OSError)


@dataclass(frozen=True)
class Part:
    """One supervised process; `database`: it is a server of the database."""

    name: str
    command: list[str]
    probe: Probe
    port: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    database: bool = False


def parts(layout: Layout) -> list[Part]:
    """Return every part, first to start first; `demo` is last and optional."""
    front = [_gateway(layout), *([_acme()] if layout.acme else [])]
    return [*_database(layout), *_services(layout), *front, _demo(layout)]


def living(part: Part) -> Part:
    """Return a part that is healthy also while it may not use the database."""
    is_service = part.port and part.name.startswith("ingest-")
    return replace(part, probe=_http(part.port or 0, "/healthz")) if is_service else part


def ingest_names(layout: Layout) -> list[str]:
    """Return what the ingest services are called, and their spools."""
    return [f"ingest-{number + 1}" for number in range(len(layout.ingest_ports))]


def environment(layout: Layout) -> dict[str, str]:
    """Return what all parts see; settings that the user exported pass through."""
    folders = [ROOT, ROOT / "services" / "ingest", ROOT / "services" / "monitoring"]
    ingest = " ".join(f"127.0.0.1:{port}" for port in layout.ingest_ports)
    return dict(os.environ) | {
        leftovers.MARK: str(layout.data),
        "PYTHONPATH": os.pathsep.join(str(folder) for folder in folders),
        "PYTHONUNBUFFERED": "1",
        "MONGODB_USER": secrets.APP_USER,
        "MONGODB_PASSWORD_FILE": str(layout.secrets / secrets.APP_PASSWORD),
        "PAGE_TOKEN_FILE": str(layout.secrets / secrets.PAGE_TOKEN),
        "SESSION_KEY_FILE": str(layout.secrets / secrets.SESSION_KEY),
        "WAYMARK_VERSION": version(),
        "GATEWAY_URL": _plain_url(layout),
        "GATEWAY_LISTEN": listen(layout.gateway_port),
        "GATEWAY_INGEST": ingest,
        "GATEWAY_MONITORING": f"127.0.0.1:{layout.monitoring_port}",
        "GATEWAY_RUN": str(layout.run),
        "GATEWAY_LOG_FOLDER": str(layout.log),
        "GATEWAY_ACME_FOLDER": str(layout.acme_folder),
        "GATEWAY_USER": "root" if os.geteuid() == 0 else "",  # data may lie where only we may read
    }


def listen(port: int) -> str:
    """Return where the gateway listens: always for us, too."""
    publish = os.environ.get("WAYMARK_PUBLISH", "127.0.0.1")
    hosts = ["0.0.0.0"] if publish == "0.0.0.0" else list(dict.fromkeys(["127.0.0.1", publish]))  # noqa: S104
    ours = [f"[{host.strip('[]')}]:{port}" if ":" in host else f"{host}:{port}" for host in hosts]
    # Each once: what starts the stack again has them in its environment.
    return " ".join(dict.fromkeys([*ours, *os.environ.get("GATEWAY_LISTEN", "").split()]))


def _plain_url(layout: Layout) -> str:
    """Return where the gateway takes plain HTTP: with a certificate its usual port redirects."""
    try:
        front = Config.from_environment()
    except ConfigError as error:
        raise StackError(str(error)) from error
    if not front.tls_certificate:
        return layout.gateway_url
    return f"http://{front.internal_listen.split()[0]}"


def is_sharded(layout: Layout) -> bool:
    """Tell whether the database has shards."""
    return bool(topology.load(Path(layout.topology)).shards)


def _database(layout: Layout) -> Iterator[Part]:
    named = topology.load(Path(layout.topology))
    binaries = find_binaries(sharded=bool(named.shards))
    keyfile = layout.secrets / secrets.KEYFILE
    for server in servers(named, layout.mongod_port, binaries, layout.data, keyfile):
        probe = partial(mongodb_problem, server.port)
        yield Part(server.name, server.command, probe, server.port, database=True)


def _services(layout: Layout) -> Iterator[Part]:
    local = topology.load(Path(layout.topology)).on_this_machine(layout.mongod_port)
    for number, (name, port) in enumerate(
        zip(ingest_names(layout), layout.ingest_ports, strict=True)
    ):
        uri = connection_string(local, number)  # each service has a router of its own
        # Relative to the folder that all parts run in: supervisord cannot carry every path.
        more = {"MONGODB_URI": uri, "SPOOL_FILE": f"../spool/{name}.db"}
        more |= {"BACKUP_REPORT": f"../{backup_report.FILE_NAME}"}
        more |= {"INGEST_BIND": f"127.0.0.1:{port}"} | ALLOCATOR
        yield Part(name, [sys.executable, "-m", "ingest"], _http(port, "/readyz"), port, more)
    port = layout.monitoring_port
    settings = ROOT / "services" / "monitoring" / "gunicorn.conf.py"
    command = [sys.executable, "-m", "gunicorn", "-c", str(settings)]
    more = {"MONITORING_BIND": f"127.0.0.1:{port}"} | ALLOCATOR
    yield Part("monitoring", command, _http(port, "/healthz"), port, more)


def _gateway(layout: Layout) -> Part:
    command = [sys.executable, "-m", "scripts.native.gateway"]
    port = layout.gateway_port
    return Part("gateway", command, _http(port, "/healthz"), port, dict(ALLOCATOR))


def _acme() -> Part:
    return Part("acme", [sys.executable, str(ROOT / "gateway" / "acme.py")], lambda: None)


def _demo(layout: Layout) -> Part:
    command = [sys.executable, "-m", "scripts.demo.ambassadors", _plain_url(layout)]
    first = next(_services(layout))  # on whose database they make themselves a token
    return Part("demo", command, lambda: None, environment=first.environment)


def _http(port: int, path: str) -> Probe:
    return partial(http_problem, f"http://127.0.0.1:{port}{path}")
