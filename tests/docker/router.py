"""A stand-in for an idle mongos: its memory, its CPU, and an answer to the health check.

The source system's two routers held 25 and 32 MiB. Two of them made the idle stack's 1.26 CPU
seconds a minute 1.8.
"""

import os
import socket
import time

MEMORY_MIB, CPU_SECONDS_A_MINUTE = 32, 0.27
PORT = 27017


def main() -> None:
    """Answer and spin, until the container is stopped."""
    held = bytearray(os.urandom(4096) * (MEMORY_MIB * 256 - 2048))  # Python itself takes 8 MiB
    with socket.create_server(("", PORT)) as server:
        server.settimeout(1.0)
        while held:
            until = time.process_time() + CPU_SECONDS_A_MINUTE / 60
            while time.process_time() < until:
                pass
            try:
                asking, _ = server.accept()
            except TimeoutError:
                continue
            with asking:
                asking.recv(1024)
                asking.sendall(bytes(16))


if __name__ == "__main__":
    main()
