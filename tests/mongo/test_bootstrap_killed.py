"""A bootstrap of shards that is killed again and again."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pymongo import MongoClient

from mongo import topology
from scripts.processes.cluster import DIRECTORY, Cluster
from tests.needs import need_routers

pytestmark = pytest.mark.long


def test_killed_after_each_step_the_bootstrap_goes_on(tmp_path: Path, root: Path) -> None:
    need_routers()
    with Cluster(topology.load(topology.SHARDED), tmp_path) as cluster:
        options = ["--topology", topology.SHARDED, "--secrets", tmp_path / "secrets"]
        options += ["--local-port", cluster.first_port, "--directory", DIRECTORY]
        command = [sys.executable, "-m", "mongo.bootstrap", *map(str, options)]
        steps = []
        while "the cluster is as configured\n" not in steps:
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=root) as process:
                assert process.stdout
                steps.append(process.stdout.readline())
                process.kill()
        assert len(steps) >= 8, steps
        with MongoClient[dict[str, Any]](cluster.uri()) as client:
            assert client["ICT3102"]["beacons"].count_documents({}) == 57
