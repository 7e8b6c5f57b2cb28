"""This architecture: the parts and command lines of ./scripts/up."""

import subprocess

from loadtests.architectures.stack import Stack
from mongo import secrets, topology
from mongo.bootstrap import bootstrap
from scripts.native import parts
from scripts.native.layout import Layout
from scripts.processes import ROOT
from scripts.processes.cluster import DIRECTORY
from scripts.processes.ports import free_port

ANY_RATE = "1000000"  # requests/s of one client: here one address is everybody


class New(Stack):
    """The gateway, services and one mongod, as a replica set of one."""

    def __init__(self, *, tls: bool = False, services: int = 2, limited: bool = True) -> None:
        super().__init__(services=services, limited=limited)
        self._layout = Layout(
            data=self.folder,
            gateway_port=self.gateway_port,
            ingest_ports=tuple(self.ingest_ports),
            monitoring_port=free_port(),
            mongod_port=self.mongod_port,
            topology=str(topology.EMBEDDED),
        )
        self._settings = {"GATEWAY_CLIENT_RATE": ANY_RATE}
        self._tls = tls
        if tls:
            self._tls_port = free_port()
            self.url = f"https://127.0.0.1:{self._tls_port}"

    def _start(self) -> None:
        self._layout.save()
        secrets.ensure(self._layout.secrets)
        if self._tls:
            self._encrypt()
        every = [part for part in parts.parts(self._layout) if part.name != "demo"]
        services = [part for part in every if not part.database]
        self._launch_parts([part for part in every if part.database])
        bootstrap(
            topology.load(topology.EMBEDDED).on_this_machine(self.mongod_port),
            secrets.Secrets.read(self._layout.secrets),
            DIRECTORY,
            lambda _: None,
        )
        self._launch_parts(services)
        self._wait({part.name: part.probe for part in services})

    def _launch_parts(self, wanted: list[parts.Part]) -> None:
        environment = parts.environment(self._layout) | self._settings
        for part in wanted:
            command, folder = part.command, self._layout.run
            self._launch(part.name, command, environment | part.environment, folder)

    def _encrypt(self) -> None:
        folder = self.folder / "tls"
        certificate = [ROOT / "scripts" / "certificate", folder]
        subprocess.run(certificate, check=True, capture_output=True)
        internal = f"127.0.0.1:{free_port()}"
        self._settings |= {
            "GATEWAY_TLS_CERTIFICATE": str(folder / "certificate.pem"),
            "GATEWAY_TLS_KEY": str(folder / "key.pem"),
            "GATEWAY_TLS_LISTEN": f"127.0.0.1:{self._tls_port}",
            "GATEWAY_INTERNAL_LISTEN": internal,
            "GATEWAY_URL": f"http://{internal}",
        }
