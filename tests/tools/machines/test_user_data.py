"""deploy/ec2/user-data on new machines: the packages that it installs, the settings that it writes.

It needs root and the distributions' archives. An engine is not started: there is no systemd. Of
Debian 12 it needs Docker's own site, so that is left out.
"""

from pathlib import Path

import pytest

from tests.tools.machines.machine import Machine
from tests.tools.test_user_data import SETTINGS

pytestmark = pytest.mark.named
FOLDER = "/opt/waymark"


@pytest.mark.parametrize("release", ["trixie", "noble"])
def test_docker_compose_reads_what_it_wrote(release: str, tmp_path: Path) -> None:
    number = 130 + (release == "noble")
    with Machine(release, number, tmp_path) as machine:
        machine.check_out(FOLDER, "root")
        machine.write("/usr/sbin/policy-rc.d", b"#!/bin/sh\nexit 101\n")  # no engine here
        machine.run("chmod 755 /usr/sbin/policy-rc.d")
        lines = [f"{name}='{value}'" for name, value in SETTINGS.items()]
        run = "\n".join([f". {FOLDER}/deploy/ec2/user-data", *lines, "check_settings"])
        assert "Docker Compose version" in machine.run(f"{run}\ninstall_docker", timeout=900).stdout
        machine.run(f"{run}\nsettings")
        assert "wm_" in machine.run("cat /root/waymark-token").stdout
        asked = machine.run(f"cd {FOLDER} && docker compose config --services")
        assert {"acme", "backup-daily", "gateway"} <= set(asked.stdout.split())
