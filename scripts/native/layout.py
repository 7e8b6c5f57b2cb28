"""Where everything of one native stack lies: folders and ports."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from scripts.processes import ROOT

DEFAULT_DATA = ROOT / "data"
# Linux allows 107 bytes for the path of a Unix socket; supervisord adds a pid to its own.
MAX_DATA_PATH = 107 - len("/run/supervisor.sock.1234567")


class StackError(Exception):
    """A part cannot start or stop; the text is the one line that the user sees."""


class DamagedError(StackError):
    """The file that remembers a layout cannot be understood."""


@dataclass(frozen=True)
class Layout:
    """Folders and ports of one stack; everything listens on 127.0.0.1."""

    data: Path
    gateway_port: int
    ingest_ports: tuple[int, ...]
    monitoring_port: int
    mongod_port: int  # the first of the database's ports
    topology: str  # file that lists the servers of the database
    acme: bool = False  # certificates come by themselves

    @property
    def run(self) -> Path:
        """Sockets, pid files and rendered configuration."""
        return self.data / "run"

    @property
    def log(self) -> Path:
        """One log file for each part."""
        return self.data / "log"

    @property
    def secrets(self) -> Path:
        """The key file and the passwords of the database."""
        return self.data / "secrets"

    @property
    def acme_folder(self) -> Path:
        """The account and the certificates of an ACME authority."""
        return self.data / "acme"

    @property
    def gateway_url(self) -> str:
        """The address that people and phones use."""
        return f"http://127.0.0.1:{self.gateway_port}"

    @classmethod
    def chosen(
        cls,
        data: Path,
        gateway_port: int,
        topology: Path,
        environment: Mapping[str, str] = os.environ,
    ) -> "Layout":
        """Take the other ports from WAYMARK_INGEST_PORTS, _MONITORING_PORT and _MONGOD_PORT."""
        if len(os.fsencode(data)) > MAX_DATA_PATH:
            raise StackError(
                f"the path {data} is longer than {MAX_DATA_PATH} bytes: give a shorter --data"
            )
        try:
            ingest = environment.get("WAYMARK_INGEST_PORTS", "5001 5002").split()
            layout = cls(
                data=data,
                gateway_port=gateway_port,
                ingest_ports=tuple(int(port) for port in ingest),
                monitoring_port=int(environment.get("WAYMARK_MONITORING_PORT", "4000")),
                mongod_port=int(environment.get("WAYMARK_MONGOD_PORT", "27117")),
                topology=str(topology),
                acme=bool(environment.get("GATEWAY_TLS_NAMES")),
            )
        except ValueError as error:
            raise StackError(f"a WAYMARK_..._PORT is not a number: {error}") from error
        layout.check_ports()
        return layout

    def check_ports(self) -> None:
        """Raise StackError when a port cannot be one, or is given to two parts."""
        if not self.ingest_ports:
            raise StackError("WAYMARK_INGEST_PORTS names no port: give one for each service")
        ports = [self.gateway_port, *self.ingest_ports, self.monitoring_port, self.mongod_port]
        for port in ports:
            if not 1 <= port <= 65535:
                raise StackError(f"{port} is no port: give a number from 1 to 65535")
            if ports.count(port) > 1:
                raise StackError(f"port {port} is given to two parts: each needs its own")

    @classmethod
    def saved(cls, data: Path) -> "Layout | None":
        """Return the layout that the stack in `data` was last started with.

        Raises DamagedError when its file does not say so, after a power cut for instance.
        """
        file = data / "run" / "layout.json"
        try:
            values = json.loads(file.read_text())
            return cls(data=data, **values | {"ingest_ports": tuple(values["ingest_ports"])})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError):
            raise DamagedError(f"{file} is damaged: ./scripts/down, then ./scripts/up") from None

    def save(self) -> None:
        """Make the folders, and remember the ports for `down` and `status`."""
        for folder in (self.run, self.log):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        values = asdict(self)
        del values["data"]
        new = self.run / "layout.json.new"
        new.write_text(json.dumps(values))
        new.replace(self.run / "layout.json")  # whole or not at all, whenever we are killed
