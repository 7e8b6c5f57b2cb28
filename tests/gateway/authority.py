"""A real ACME authority on this machine: pebble, and a name server that leads all names here."""

import json
import os
import subprocess
from pathlib import Path

from scripts.processes import ROOT
from scripts.processes.ports import free_port, is_free
from scripts.processes.process import Process
from tests.needs import need


class Authority:
    """Gives certificates that live so long; it looks for proofs at `http_port`.

    Of the requests that are in order it refuses some, so that clients learn to repeat them.
    """

    def __init__(
        self, folder: Path, http_port: int, life_seconds: int, refused_percent: int = 0
    ) -> None:
        need("pebble")
        need("dehydrated")
        folder.mkdir()
        self._port, management, names = free_port(), free_port(), free_port()
        self.directory = f"https://127.0.0.1:{self._port}/dir"
        subprocess.run([ROOT / "scripts" / "certificate", folder], check=True, capture_output=True)
        self.ca_file = folder / "certificate.pem"
        config = {
            "listenAddress": f"127.0.0.1:{self._port}",
            "managementListenAddress": f"127.0.0.1:{management}",
            "certificate": str(self.ca_file),
            "privateKey": str(folder / "key.pem"),
            "httpPort": http_port,
            "tlsPort": free_port(),
            "certificateValidityPeriod": life_seconds,
        }
        (folder / "pebble.json").write_text(json.dumps({"pebble": config}))
        off = [f"-{name}=" for name in ("http01", "https01", "tlsalpn01", "management")]
        local = [f"-dns01=127.0.0.1:{names}", "-defaultIPv6="]
        self._names = Process("names", ["pebble-challtestsrv", *off, *local], folder / "names.log")
        command = ["pebble", "-config", str(folder / "pebble.json")]
        self._pebble = Process(
            "pebble",
            [*command, "-dnsserver", f"127.0.0.1:{names}"],
            folder / "pebble.log",
            environment=os.environ
            | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": str(refused_percent)},
        )

    def start(self) -> None:
        self._names.start()
        self._pebble.start()
        self._pebble.wait_until_healthy(lambda: "is silent" if is_free(self._port) else None)

    def stop(self) -> None:
        self._pebble.stop()
        self._names.stop()
