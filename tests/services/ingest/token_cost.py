"""Print what a token costs an insert (docs/measurements.md has the command).

CPU of an ingest service for a single insert, open and with a token, on real processes in turns; and
the check alone.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
import timeit
from pathlib import Path
from typing import Any

import psutil
from pymongo import MongoClient

from common.schema import DATABASE
from ingest.access import tokens
from ingest.access.access_cache import AccessCache
from ingest.access.admission import Admission
from ingest.access.sessions import Sessions
from ingest.config import Config
from ingest.rules.roles import Role
from ingest.storage.access.accounts import Accounts
from ingest.storage.access.tokens import Token, Tokens
from ingest.web import credentials
from mongo import topology
from scripts.processes.cluster import Cluster
from tests.service import Service, running

# Short turns: what else a machine does changes within seconds, and then meets both sides.
INSERTS, CONNECTIONS, CHECKS = 1000, 16, 50_000
BLOCK = 10  # rounds, for the spread
PATH = "/newbeacondetect?beacon_address=C2A628384B08&rssi=-20&user_address="


async def insert(port: int, header: str) -> None:
    """Send all inserts over a few connections, each answer before the next request."""
    left = iter(range(INSERTS))

    async def connection(staff_id: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        request = f"GET {PATH}{staff_id} HTTP/1.1\r\nHost: localhost\r\n{header}\r\n".encode()
        for _ in left:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200 "):
                raise RuntimeError(head.decode())
            await reader.readexactly(len("New Beacon Detection Added"))
        writer.close()

    await asyncio.gather(*(connection(number) for number in range(CONNECTIONS)))


def microseconds(service: Service, header: str) -> float:
    """Return the CPU of one insert."""
    process = psutil.Process(service.pid)
    before = sum(process.cpu_times()[:2])
    asyncio.run(insert(service.port, header))
    return (sum(process.cpu_times()[:2]) - before) / INSERTS * 1e6


def check_microseconds(stored: Tokens, accounts: Accounts, secret: str, folder: Path) -> float:
    """Return what the check alone takes, in this process."""
    known = AccessCache(stored, accounts, folder / "access.json")
    known.refresh()
    admission = Admission(Config(waymark_access="required"), known, Sessions(""))
    headers = {b"host": b"localhost", b"authorization": f"Bearer {secret}".encode()}

    def check() -> None:
        admission.admit(Role.INGEST, "/newbeacondetect", credentials.of_headers(headers, "GET"))

    return min(timeit.repeat(check, number=CHECKS, repeat=7)) / CHECKS * 1e6


def main() -> None:
    """Measure, and print a line for each block of rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rounds", type=int, nargs="?", default=100)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with Cluster(topology.load(topology.EMBEDDED), folder).running() as cluster:
            uri, secret = cluster.uri(), tokens.generate()
            with MongoClient[dict[str, Any]](uri) as client:
                stored = Tokens(client[DATABASE])
                digest = tokens.digest(secret)
                stored.add(Token("phone", digest, "phone", Role.INGEST, int(time.time())))
                check = check_microseconds(stored, Accounts(client[DATABASE]), secret, folder)
            services = Service(uri, folder), Service(uri, folder, WAYMARK_ACCESS="required")
            headers = "", f"Authorization: Bearer {secret}\r\n"
            with running(*services):
                sides = list(zip(services, headers, strict=True))
                ratios, rounds_of_block = [], []
                for number in range(1 + rounds):
                    turn = sides if number % 2 else sides[::-1]
                    took = {header: microseconds(service, header) for service, header in turn}
                    if number:  # the first warms up
                        rounds_of_block.append([took[header] for header in headers])
                    if len(rounds_of_block) == BLOCK:
                        opened, guarded = map(statistics.fmean, zip(*rounds_of_block, strict=True))
                        ratios.append(guarded / opened)
                        print(f"{opened:.0f} us open, {guarded:.0f} us with a token", flush=True)
                        rounds_of_block.clear()
            print(f"ratio {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
            print(f"the check alone {check:.1f} us")


if __name__ == "__main__":
    main()
