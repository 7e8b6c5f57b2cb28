"""What a fresh machine lacks: the real apt installs it, in a copy of this machine."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from scripts.processes.waiting import eventually
from tests.needs import only_root
from tests.stack.conftest import kill_tree

pytestmark = only_root
POLICY = "usr/sbin/policy-rc.d"
# As Debian's services, but that it tells what it was told, and waits first where a test wants it.
POSTINST = f"""\
#!/bin/sh
touch /reached
while [ -e /hold ]; do sleep 0.1; done
told=0
[ ! -e /{POLICY} ] || /{POLICY} nginx start || told=$?
echo "$DPKG_MAINTSCRIPT_PACKAGE $told" >>/told
"""
LOCKS = ["lib/dpkg/lock-frontend"]
# Apt's locks are those of fcntl, which nobody's command sets.
HOLD = """
import fcntl, sys
with open(sys.argv[1], "w") as lock:
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("held")
    input()
"""


SYSTEMCTL = """\
#!/bin/sh
echo "$*" >>/told
"""


class Machine:
    """This machine's files, with two packages to install; what is written stays in memory."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.files = folder / "files"
        self.files.mkdir()
        over = f"{folder}/memory"
        script = f"""
        mkdir {over} && mount -t tmpfs memory {over} && mkdir {over}/upper {over}/work &&
        mount -t overlay -o lowerdir=/,upperdir={over}/upper,workdir={over}/work all {self.files} &&
        for folder in proc dev; do mount --rbind /$folder {self.files}/$folder || exit; done
        echo mounted; exec cat"""
        command = ["unshare", "--mount", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"mounted\n"
        self._enter: list[str] = [
            "nsenter",
            f"--target={self._holder.pid}",
            "--mount",
            "--root",  # a test may run in a root of its own
            "chroot",
            str(self.files),
        ]
        # Every process sees the files of the namespace below here.
        self.files = Path(f"/proc/{self._holder.pid}/root{self.files}")
        for checkout in ("waymark", "other"):
            (self.files / checkout / "scripts").mkdir(parents=True)
            library = (root / "scripts/lib.sh").read_text()
            (self.files / checkout / "scripts/lib.sh").write_text(library)
        for old in ("run/systemd", POLICY, "var/lib/dpkg/lock-frontend"):
            subprocess.run(["rm", "-rf", self.files / old], check=True)
        self.repository = self.files / "repository"
        self._make_repository()

    def _make_repository(self) -> None:
        sources = self.files / "etc/apt"
        subprocess.run(
            ["rm", "-rf", sources / "sources.list.d", sources / "preferences.d"], check=True
        )
        (sources / "sources.list").write_text("deb [trusted=yes] file:/repository ./\n")
        packages = self.repository
        packages.mkdir()
        index = ""
        for name in ("thing-one", "thing-two"):
            control = f"Package: {name}\nVersion: 1\nArchitecture: all\nMaintainer: nobody\n"
            control += "Description: nothing\n"
            package = packages / name / "DEBIAN"
            package.mkdir(parents=True)
            (package / "control").write_text(control)
            (package / "postinst").write_text(POSTINST)
            (package / "postinst").chmod(0o755)
            build = ["dpkg-deb", "--root-owner-group", "--build", name]
            subprocess.run(build, cwd=packages, check=True, capture_output=True)
            deb = (packages / f"{name}.deb").read_bytes()
            index += f"{control}Filename: ./{name}.deb\nSize: {len(deb)}\n"
            index += f"SHA256: {hashlib.sha256(deb).hexdigest()}\n\n"
        (packages / "Packages").write_text(index)

    def start(self, *command: str, **settings: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*self._enter, *command],
            env=os.environ | settings,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def install(
        self, package: str, checkout: str = "waymark", **settings: str
    ) -> "subprocess.Popen[str]":
        script = f". /{checkout}/scripts/lib.sh; apt_install {package}"
        return self.start("bash", "-c", script, **settings)

    def calls(self) -> list[str]:
        return (self.files / "told").read_text().splitlines()

    def exists(self, path: str) -> bool:
        return (self.files / path).exists()

    def policy(self) -> int | None:
        """Ask whether a service may start, as Debian does: 101 is no; None: nobody forbids it."""
        if not self.exists(POLICY):
            return None
        ask = [*self._enter, f"/{POLICY}", "nginx", "start"]
        return subprocess.run(ask, check=False, timeout=20).returncode

    def close(self) -> None:
        self._holder.communicate()


@pytest.fixture
def machine(root: Path, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(root, tmp_path)
    yield machine
    machine.close()


def said(process: "subprocess.Popen[str]") -> str:
    return process.communicate(timeout=120)[0]


def wait_until_said(process: "subprocess.Popen[str]", expected: str) -> None:
    assert process.stdout
    text = ""
    while expected not in text:  # not by lines: the line goes on later
        more = process.stdout.read(1)
        assert more, text
        text += more


def test_services_stay_off_while_it_installs_and_nothing_stays(machine: Machine) -> None:
    install = machine.install("thing-one")
    text = said(install)
    assert install.returncode == 0, text
    assert "installing thing-one ... done" in text
    assert machine.calls() == ["thing-one 101"]
    assert not machine.exists(POLICY)
    assert [file.name for file in (machine.files / "waymark/data").iterdir()] == ["setup.log"]


class Away(SimpleHTTPRequestHandler):
    """A mirror that hangs up on the first requests."""

    refusals = 3

    def do_GET(self) -> None:
        if type(self).refusals > 0:
            type(self).refusals -= 1
            self.close_connection = True
        else:
            super().do_GET()


def test_a_mirror_that_does_not_answer_is_asked_again(machine: Machine) -> None:
    handler = partial(type("Once", (Away,), {}), directory=str(machine.repository))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as mirror:
        threading.Thread(target=mirror.serve_forever).start()
        port = mirror.server_address[1]
        source = f"deb [trusted=yes] http://127.0.0.1:{port}/ ./\n"
        (machine.files / "etc/apt/sources.list").write_text(source)
        (machine.files / "etc/apt/apt.conf.d/retries").write_text('Acquire::Retries "0";')
        install = machine.install("thing-one", no_proxy="127.0.0.1")
        text = said(install)
        mirror.shutdown()
    assert install.returncode == 0, text
    assert "a mirror of packages does not answer; again in" in text
    assert machine.calls() == ["thing-one 101"]


def test_what_cannot_be_had_is_named(machine: Machine) -> None:
    install = machine.install("thing-three")
    assert said(install).endswith("please install first: thing-three\n")
    assert install.returncode == 1
    assert not machine.exists(POLICY)


def test_systemd_keeps_the_stack_by_one_command(machine: Machine, root: Path) -> None:
    install = machine.files / "waymark/scripts/install"
    install.write_text((root / "scripts/install").read_text())
    run = ("bash", "/waymark/scripts/install")
    assert "there is no systemd here" in said(machine.start(*run))
    (machine.files / "run/systemd/system").mkdir(parents=True)
    systemctl = machine.files / "usr/local/sbin/systemctl"
    systemctl.write_text(SYSTEMCTL)
    systemctl.chmod(0o755)
    path = f"/usr/local/sbin:{os.environ['PATH']}"
    assert said(machine.start(*run, "--data", '/srv/100 % "x" $y', PATH=path)) == ""
    assert machine.calls() == ["daemon-reload", "enable waymark", "restart waymark"]
    unit = machine.files / "etc/systemd/system/waymark.service"
    lines = unit.read_text().splitlines()
    assert 'ExecStart="/waymark/scripts/up" "--data" "/srv/100 %% \\"x\\" $$y"' in lines
    assert "Restart=on-failure" in lines  # not what ./scripts/down has ended
    assert said(machine.start(*run, "--remove", PATH=path)) == ""
    assert machine.calls()[3:] == ["disable --now waymark"]
    assert not unit.exists()


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_of_apt_is_waited_for(machine: Machine, lock: str) -> None:
    holder = machine.start(sys.executable, "-c", HOLD, f"/var/{lock}", PYTHONUNBUFFERED="1")
    assert holder.stdout
    assert holder.stdout.readline() == "held\n"
    refused = machine.install("thing-one", WAYMARK_APT_SECONDS="0")
    assert "please install first: thing-one\n" in said(refused)
    assert refused.returncode == 1

    install = machine.install("thing-one")
    wait_until_said(install, f"waiting for the lock /var/{lock}")
    assert install.poll() is None
    said_by_holder = holder.communicate("\n", timeout=20)[0]
    assert holder.returncode == 0, said_by_holder
    text = said(install)
    assert install.returncode == 0, text
    assert machine.calls() == ["thing-one 101"]


def test_two_at_once_follow_each_other(machine: Machine) -> None:
    (machine.files / "hold").touch()
    first = machine.install("thing-one")
    eventually(lambda: machine.exists("reached"), 60)
    second = machine.install("thing-two", "other")
    wait_until_said(second, "waiting for the lock /var/lib/dpkg. Another set-up installs")
    (machine.files / "hold").unlink()
    text = said(first)
    assert first.returncode == 0, text
    text = said(second)
    assert second.returncode == 0, text
    assert machine.calls() == ["thing-one 101", "thing-two 101"]
    assert not machine.exists(POLICY)


def test_a_killed_script_leaves_no_policy_that_forbids(machine: Machine) -> None:
    (machine.files / "hold").touch()
    install = machine.install("thing-one")
    eventually(lambda: machine.exists("reached"), 60)
    install.kill()  # the script alone: apt goes on, and nothing that it installs may start
    eventually(lambda: install.poll() is not None, 20)
    assert machine.policy() == 0  # to whatever else is installed
    assert machine.exists(POLICY)
    (machine.files / "hold").unlink()
    eventually(lambda: not machine.exists(POLICY), 60)
    said(install)
    assert machine.calls() == ["thing-one 101"]

    (machine.files / "hold").touch()
    (machine.files / "reached").unlink()
    install = machine.install("thing-two")
    eventually(lambda: machine.exists("reached"), 60)
    kill_tree(install.pid)
    said(install)
    assert machine.exists(POLICY)
    assert machine.policy() == 0
    # Who was killed may hold the lock for a moment.
    eventually(lambda: machine.policy() is None, 60)


NOBODY = 65534


def as_user(user: int) -> list[str]:
    """Return what runs a command as a user."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]


def configure(folder: Path, user: int) -> subprocess.CompletedProcess[str]:
    """Run a checkout's ./scripts/configure as a user."""
    return subprocess.run(
        [*as_user(user), "./scripts/configure", "--plain"],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "COMPOSE_ENV_FILES"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def checkout(root: Path) -> Iterator[Path]:
    """Return nobody's folder with ./scripts/configure, where nobody may go."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        checkout = Path(folder)
        (checkout / "scripts").mkdir()
        for name in ("lib.sh", "configure"):
            shutil.copy(root / "scripts" / name, checkout / "scripts")
        os.chown(checkout, NOBODY, NOBODY)
        yield checkout


def test_settings_stay_their_owners_and_are_never_lost(checkout: Path) -> None:
    settings = checkout / ".env"
    for user in (0, NOBODY, 0):  # by sudo, and without
        done = configure(checkout, user)
        assert done.returncode == 0, done.stderr
        assert settings.stat().st_uid == NOBODY

    kept = b"OIDC_NAME=B\xfcro\n"  # not UTF-8
    settings.write_bytes(kept)
    os.chown(settings, 0, 0)
    settings.chmod(0o600)
    refused = configure(checkout, NOBODY)
    assert refused.returncode == 1
    assert f"{settings} may not be read: sudo chown" in refused.stderr
    assert settings.read_bytes() == kept
    assert configure(checkout, 0).returncode == 0
    assert settings.read_bytes().startswith(kept)
