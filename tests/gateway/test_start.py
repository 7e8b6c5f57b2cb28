"""The start program: names that are missing, move and multiply; signals; process 1."""

import contextlib
import os
import resource
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from gateway.render import OTHER_FILES, Config, ConfigError
from gateway.start import Followed, allow_files
from scripts.processes import ROOT
from scripts.processes.waiting import eventually
from tests.gateway.conftest import OPEN, SLOW_SECONDS, Gateway
from tests.upstream import Upstream

AS_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
FOLLOWED_SECONDS = 10


class Names:
    """A file of names that only the gateway under test sees as /etc/hosts."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.say()

    def say(self, *lines: str) -> None:
        self._file.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))

    @property
    def prefix(self) -> list[str]:
        script = f'mount --bind {self._file} /etc/hosts && exec "$@"'
        return ["unshare", *AS_ROOT, "--mount", "sh", "-c", script, "sh"]


@pytest.fixture
def names(tmp_path: Path) -> Names:
    return Names(tmp_path / "hosts")


def until(gateway: Gateway, upstream: Upstream) -> None:
    """Wait until an upstream is used."""

    def used() -> bool:
        gateway.request("GET", "/newbeacondetect")
        return bool(upstream.requests)

    eventually(used, FOLLOWED_SECONDS)


@pytest.mark.long
def test_names_are_followed(make_gateway: Callable[..., Gateway], names: Names) -> None:
    gateway = make_gateway()
    first = gateway.ingest[0]
    gateway.settings["ingest"] = f"ingest.invalid:{first.port}"
    gateway.start(*names.prefix)
    missing = gateway.request("GET", "/newbeacondetect")
    assert (missing.status_code, missing.text) == (503, OPEN)
    assert missing.elapsed.total_seconds() < SLOW_SECONDS
    second, third = (Upstream(first.port, f"127.0.0.{n}") for n in (2, 3))
    try:
        names.say("127.0.0.1 ingest.invalid")
        until(gateway, first)
        first.close()  # a container that starts again has another address
        names.say("127.0.0.2 ingest.invalid")
        until(gateway, second)
        names.say("127.0.0.2 ingest.invalid", "127.0.0.3 ingest.invalid")
        until(gateway, third)
        second.requests.clear()
        until(gateway, second)
    finally:
        second.close()
        third.close()


@pytest.mark.long
def test_a_new_address_counts_when_it_listens(
    make_gateway: Callable[..., Gateway], names: Names
) -> None:
    gateway = make_gateway()
    port = gateway.ingest[0].port
    gateway.settings["ingest"] = f"ingest.invalid:{port}"
    names.say("127.0.0.1 ingest.invalid")
    gateway.start(*names.prefix)
    configuration = gateway.run / "nginx.conf"
    second = Upstream(port, "127.0.0.2")
    try:
        names.say(*(f"127.0.0.{n} ingest.invalid" for n in (1, 2, 3)))
        until(gateway, second)
        assert f"127.0.0.3:{port}" not in configuration.read_text()  # a container that starts
        third = Upstream(port, "127.0.0.3")
        try:
            until(gateway, third)
        finally:
            third.close()
    finally:
        second.close()


@pytest.mark.long
def test_a_reload_loses_no_request(make_gateway: Callable[..., Gateway], names: Names) -> None:
    gateway = make_gateway()
    gateway.settings["ingest"] += f" ingest.invalid:{gateway.ingest[0].port}"
    names.say("127.0.0.1 ingest.invalid")
    gateway.start(*names.prefix)
    changes = [("127.0.0.2 ingest.invalid", 1.0), ("127.0.0.1 ingest.invalid", 5.0)]
    timers = [threading.Timer(after, names.say, [line]) for line, after in changes]
    for timer in timers:
        timer.start()
    answers = gateway.load(40, 10)
    assert {answer.status for answer in answers} == {200}
    eventually(lambda: gateway.errors.read_text().count("reloading") == 2)


@pytest.mark.parametrize("name", ["a 'q' \"r\" ;{$e} \\", "a [b]*? 'q' \"r\" ;{$e} \\"])
def test_any_name_of_the_folder_will_do(name: str) -> None:
    # Not pytest's folder: the path of a Unix socket may have 107 bytes.
    with tempfile.TemporaryDirectory(prefix="waymark-") as folder:
        run = Path(folder) / name
        run.mkdir()
        gateway = Gateway(run).start()
        try:
            assert gateway.request("GET", "/newbeacondetect").text == "ok"
            assert gateway.request("GET", "/retrieveformonitoring").text == "ok"
        finally:
            gateway.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT, signal.SIGINT])
def test_a_signal_ends_nginx_and_then_us(gateway: Gateway, number: int) -> None:
    nginx = gateway.worker()
    gateway.process.send_signal(number)
    assert gateway.process.wait(15) == 0  # 20 s is what an nginx gets that does not want to end
    assert not nginx.is_running()


def test_quit_finishes_what_is_being_answered(gateway: Gateway) -> None:
    for upstream in gateway.ingest:
        upstream.delay_seconds = 1
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(gateway.timed, "POST", "/newbeacondetect")
        eventually(lambda: any(upstream.requests for upstream in gateway.ingest))
        gateway.process.send_signal(signal.SIGQUIT)
        assert asked.result().status == 200
    assert gateway.process.wait(15) == 0


def left(gateway: Gateway) -> list[psutil.Process]:
    """Return the nginx processes of a gateway that run, known by where they print."""
    processes = []
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(OSError):  # it has just ended
            if process.info["name"] == "nginx":
                ours = Path(f"/proc/{process.pid}/fd/1").readlink() == gateway.said
                processes += [process] * ours
    return processes


def test_a_killed_nginx_ends_us(gateway: Gateway) -> None:
    worker = gateway.worker()
    os.kill(worker.ppid(), signal.SIGKILL)
    assert gateway.process.wait(15) == 128 + signal.SIGKILL
    assert worker.is_running()  # in a container it would end with process 1
    gateway.close()
    eventually(lambda: not left(gateway))  # killed processes are there for a moment


def test_as_process_1_it_takes_everything_along(gateway: Gateway) -> None:
    gateway.process.stop(15)
    prefix = ["unshare", *AS_ROOT, "--pid", "--fork", "--kill-child=SIGTERM", "--mount-proc"]
    gateway.start(*prefix)
    assert gateway.request("GET", "/newbeacondetect").text == "ok"
    (init,) = psutil.Process(gateway.process.pid).children()
    everything = [init, *init.children(recursive=True)]
    assert len(everything) >= 3
    os.kill(gateway.worker().ppid(), signal.SIGKILL)
    _, alive = psutil.wait_procs(everything, timeout=15)
    assert alive == []
    assert gateway.process.wait(15) != 0
    gateway.start(*prefix)  # over what the killed one left
    (init,) = psutil.Process(gateway.process.pid).children()
    init.send_signal(signal.SIGTERM)
    assert gateway.process.wait(15) == 0


def test_more_connections_than_files_may_be_open_are_warned_of() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert allow_files(Config()) == []
    most = int(Path("/proc/sys/fs/nr_open").read_text())  # nobody may have more
    [warning] = allow_files(Config(connections=str(most)))
    assert f"GATEWAY_CONNECTIONS={most} needs {most + OTHER_FILES} open files" in warning
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == before


@pytest.mark.long
def test_contradictions_are_reported_before_nginx_starts() -> None:
    for wrong, words in [
        ({"GATEWAY_TLS_KEY": "/key.pem"}, "GATEWAY_TLS_CERTIFICATE"),
        ({"GATEWAY_CLIENT_RATE": "many"}, "GATEWAY_CLIENT_RATE"),
        ({"GATEWAY_CLIENT_RATE": "0"}, "GATEWAY_CLIENT_RATE"),
        ({"GATEWAY_CONNECTIONS": "3071"}, "GATEWAY_CONNECTIONS"),
        ({"GATEWAY_CONNECTIONS": "1e5"}, "GATEWAY_CONNECTIONS"),
        ({"GATEWAY_CONNECTIONS": "1000001"}, "GATEWAY_CONNECTIONS"),
        ({"WAYMARK_HOSTNAMES": "way.example:8080"}, "WAYMARK_HOSTNAMES"),
        ({"WAYMARK_HOSTNAMES": "a *.example"}, "WAYMARK_HOSTNAMES"),
        ({"WAYMARK_HOSTNAMES": 'a";b'}, "WAYMARK_HOSTNAMES"),
        ({"WAYMARK_TRUSTED_PROXIES": "all; #"}, "WAYMARK_TRUSTED_PROXIES"),
        ({"WAYMARK_ALLOWED_ORIGINS": "*"}, "WAYMARK_ALLOWED_ORIGINS"),
        ({"WAYMARK_ALLOWED_ORIGINS": "null"}, "WAYMARK_ALLOWED_ORIGINS"),
        ({"WAYMARK_ALLOWED_ORIGINS": "https://a.example/"}, "WAYMARK_ALLOWED_ORIGINS"),
        ({"WAYMARK_ALLOWED_ORIGINS": "https://a.example b.example"}, "WAYMARK_ALLOWED_ORIGINS"),
    ]:
        with pytest.raises(ConfigError, match=words):
            Config.from_environment(wrong)
        command = ["python3", str(ROOT / "gateway" / "start.py")]
        done = subprocess.run(
            command, env=os.environ | wrong, capture_output=True, text=True, check=False, timeout=30
        )
        assert done.returncode == 1
        assert done.stderr.startswith("gateway: ")
        assert done.stderr.count("\n") == 1


def test_it_listens_on_an_address_of_ipv6_that_it_is_given(
    make_gateway: Callable[..., Gateway],
) -> None:
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this machine has no IPv6")
    gateway = make_gateway()
    ipv4, port = gateway.settings["listen"], gateway.address[1]
    gateway.settings["listen"] = f"{ipv4} [::1]:{port}"
    gateway.start()
    for gateway.url in (f"http://{ipv4}", f"http://[::1]:{port}"):
        assert gateway.request("POST", "/newbeacondetect").status_code == 200
    assert {line["client"] for line in gateway.logged()} == {"127.0.0.1", "::1"}


def test_what_did_not_change_is_not_rendered_again() -> None:
    """It is looked at every 5 s: rendering would take a fifth of the CPU of an idle stack."""
    followed = Followed(Config(ingest="127.0.0.1:1", monitoring="127.0.0.1:2"), "nginx/1.22.1")
    assert followed.look() is followed.look()
