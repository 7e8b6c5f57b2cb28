"""The images that the stack is made from; where no registry can be reached, from packages.

MongoDB is then the real 7.0.11 for arm64, emulated: right in every answer, slower, and larger in
memory, which is why emulated.yml raises the limits of those containers.
"""

import os
import re
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mongo.binaries import find_binaries
from scripts.processes import ROOT
from tests.docker.engine import CACHE, HERE, Docker, digest

BASE = "debian:trixie-slim"
MONGO = "mongo:7.0"
CERTIFICATES = ("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE")
MONGO_USER = 999  # as in MongoDB's own image
GLIBC = ("libc.so", "libm.so", "libresolv.so")  # the base has its own, which is newer


class Images(NamedTuple):
    """What the compose file's variables are set to."""

    base: str
    mongo: str
    emulated: bool


def images(docker: Docker) -> Images:
    """Pull what can be pulled and make the rest."""
    base = BASE if _pulled(docker, BASE) else _made_base(docker)
    if _pulled(docker, MONGO):
        return Images(_trusting(docker, base), MONGO, emulated=False)
    return Images(_trusting(docker, base), _emulated_mongo(docker, base), emulated=True)


def _pulled(docker: Docker, image: str) -> bool:
    return docker.has_image(image) or docker.run("pull", "--quiet", image).returncode == 0


def _made_base(docker: Docker) -> str:
    image = f"waymark-tests/base:{digest(HERE / 'make-base')}"
    if not docker.has_image(image):
        with _scratch_file("base.tar") as tar:
            with tar.open("wb") as file:
                subprocess.run([HERE / "make-base"], stdout=file, check=True)
            docker("import", "--change", 'CMD ["bash"]', str(tar), image)
    return image


def _trusting(docker: Docker, base: str) -> str:
    """Return the base with this machine's certificates, or pip in a build may trust nobody."""
    bundle = next((Path(os.environ[name]) for name in CERTIFICATES if os.environ.get(name)), None)
    if bundle is None:
        return base
    image = f"waymark-tests/trusting-{base.replace(':', '-').rpartition('/')[2]}:{digest(bundle)}"
    with _scratch_file("certificates.tar") as path:
        with tarfile.open(path, "w") as tar:
            tar.add(bundle.resolve(), "etc/waymark-tests.crt")
        return _with_files(docker, base, path, image, "ENV PIP_CERT=/etc/waymark-tests.crt")


def _emulated_mongo(docker: Docker, base: str) -> str:
    fetch = ROOT / "mongo" / "fetch-emulated"
    image = f"waymark-tests/mongo-emulated:{digest(fetch)}"
    if docker.has_image(image):
        return image
    said = subprocess.run([fetch], check=True, stdout=subprocess.PIPE, text=True).stdout
    folder = Path(said.splitlines()[-1])
    with _scratch_file("mongo.tar") as path:
        with tarfile.open(path, "w") as tar:
            tar.add(folder, "opt/mongodb")
            for program in ("mongod", "mongos"):
                tar.addfile(_link(f"usr/local/bin/{program}", f"/opt/mongodb/{program}"))
            for name in ("data", "data/db", "data/configdb"):
                tar.addfile(_folder(name, MONGO_USER))
        return _with_files(docker, base, path, image, 'CMD ["mongod"]')


def native_mongo(docker: Docker, base: str) -> str:
    """Return an image whose mongod is the one that the native stack runs, with its libraries."""
    image = f"waymark-tests/mongo-native:{digest(ROOT / 'mongo' / 'requirements.txt')}"
    if docker.has_image(image):
        return image
    mongod = find_binaries() / "mongod"
    said = subprocess.run(["ldd", mongod], check=True, stdout=subprocess.PIPE, text=True).stdout
    libraries = re.findall(r"=> (/\S+)", said)
    with _scratch_file("native.tar") as path, _scratch_file("native") as script:
        script.write_text('#!/bin/sh\nLD_LIBRARY_PATH=/opt/lib exec /opt/mongod "$@"\n')
        script.chmod(0o755)
        with tarfile.open(path, "w", dereference=True) as tar:
            tar.add(mongod, "opt/mongod")
            tar.add(script, "usr/local/bin/mongod")
            for library in libraries:
                if not Path(library).name.startswith(GLIBC):
                    tar.add(library, f"opt/lib/{Path(library).name}")
            for name in ("data", "data/db", "data/configdb"):
                tar.addfile(_folder(name, MONGO_USER))
        return _with_files(docker, base, path, image, 'CMD ["mongod"]')


def _link(name: str, target: str) -> tarfile.TarInfo:
    link = tarfile.TarInfo(name)
    link.type, link.linkname = tarfile.SYMTYPE, target
    return link


def _folder(name: str, owner: int) -> tarfile.TarInfo:
    folder = tarfile.TarInfo(name)
    folder.type, folder.mode, folder.uid, folder.gid = tarfile.DIRTYPE, 0o755, owner, owner
    return folder


def _with_files(docker: Docker, base: str, files: Path, image: str, change: str) -> str:
    """Make an image: a base, the files of a tar, and a line of a Dockerfile. No builder needed."""
    if docker.has_image(image):
        return image
    container = docker("create", base)
    try:
        with files.open("rb") as tar:
            command = ["docker", "cp", "-", f"{container}:/"]
            subprocess.run(command, env=docker.environment, stdin=tar, check=True)
        docker("commit", "--change", change, container, image)
    finally:
        docker("rm", container)
    return image


@contextmanager
def _scratch_file(name: str) -> Iterator[Path]:
    CACHE.mkdir(exist_ok=True)
    path = CACHE / name
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
