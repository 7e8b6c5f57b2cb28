"""Small disks of a test's own, which it can fill to the last byte."""

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

AS_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
TOP_UP_SECONDS = 0.02


class Disks:
    """A tmpfs of its size at each folder; only what is started with `prefix` sees them."""

    def __init__(self, sizes: Mapping[Path, str]) -> None:
        mounts = []
        for folder, size in sizes.items():
            folder.mkdir(parents=True, exist_ok=True)
            mounts.append(f'mount -t tmpfs -o size={size} disk "{folder}"')
        script = " && ".join([*mounts, "echo mounted", "exec cat"])
        command = ["unshare", *AS_ROOT, "--mount", "sh", "-c", script]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._holder.stdout
        assert self._holder.stdout.readline() == b"mounted\n"
        enter = ["nsenter", f"--target={self._holder.pid}", "--mount"]
        self.prefix = [*enter, *(["--user", "--preserve-credentials"] if AS_ROOT else [])]

    def __enter__(self) -> Self:
        """Be there already."""
        return self

    def __exit__(self, *_: object) -> None:
        """Unmount them."""
        self._holder.communicate()

    def seen(self, path: Path) -> Path:
        """Return where this process finds what is at a path for those inside."""
        return Path(f"/proc/{self._holder.pid}/root{path}")

    @contextmanager
    def full(self, folder: Path) -> Iterator[None]:
        """Keep a disk full to the last byte, whatever is deleted there meanwhile."""
        first_time, ended = threading.Event(), threading.Event()

        def fill() -> None:
            with (self.seen(folder) / "filler").open("ab", buffering=0) as filler:
                while not ended.wait(TOP_UP_SECONDS):
                    for size in (2**20, 2**12, 1):
                        with contextlib.suppress(OSError):
                            while not ended.is_set():
                                filler.write(bytes(size))
                    first_time.set()

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            assert first_time.wait(60)
            yield
        finally:
            ended.set()
            thread.join()
            (self.seen(folder) / "filler").unlink()
