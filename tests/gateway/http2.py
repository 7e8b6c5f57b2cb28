"""A client that speaks HTTP/2 and does with it what it likes."""

import contextlib
import socket
import ssl
from collections import defaultdict
from collections.abc import Iterator

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)

HEAD_BYTES, GOAWAY = 9, 7  # of a frame; its type


class Http2:
    """One connection; `greedy`: it takes all data, else none beyond the first window."""

    def __init__(self, port: int, address: str = "127.0.0.1", *, greedy: bool = True) -> None:
        context = ssl._create_unverified_context()
        context.set_alpn_protocols(["h2", "http/1.1"])
        plain = socket.create_connection(("127.0.0.1", port), 30, (address, 0))
        self.socket = context.wrap_socket(plain, server_hostname="localhost")
        assert self.socket.selected_alpn_protocol() == "h2"
        self.engine = H2Connection(H2Configuration(header_encoding="utf-8"))
        self.engine.initiate_connection()
        self._greedy = greedy
        self._received = b""
        self.statuses: dict[int, int] = {}
        self.headers: dict[int, dict[str, str]] = {}
        self.bodies: dict[int, bytes] = defaultdict(bytes)
        self.ended: set[int] = set()
        self.ended_by_gateway = False
        self.flush()

    def flush(self) -> None:
        self.socket.sendall(self.engine.data_to_send())

    def ask(self, path: str, method: str = "GET", more: tuple[tuple[str, str], ...] = ()) -> int:
        """Send a request without a body; return its stream."""
        stream = self.engine.get_next_available_stream_id()
        head = [(":method", method), (":scheme", "https"), (":authority", "x"), (":path", path)]
        self.engine.send_headers(stream, [*head, *more], end_stream=True)
        return stream

    def read(self, seconds: float = 30) -> bool:
        """Take what comes next; tell whether anything did."""
        self.socket.settimeout(seconds)
        try:
            received = self.socket.recv(65536)
        except TimeoutError:
            return False
        if not received:
            self.ended_by_gateway = True
            return False
        self._received += received
        events = [event for frame in self._frames() for event in self.engine.receive_data(frame)]
        for event in events:
            match event:
                case ResponseReceived(stream_id=int(stream), headers=headers):
                    self.headers[stream] = {str(k): str(v) for k, v in headers}
                    self.statuses[stream] = int(self.headers[stream][":status"])
                case DataReceived(stream_id=int(stream), data=bytes(data)):
                    self.bodies[stream] += data
                    if self._greedy:
                        self.engine.acknowledge_received_data(len(data), stream)
                case StreamEnded(stream_id=int(stream)) | StreamReset(stream_id=int(stream)):
                    self.ended.add(stream)
        self.flush()
        return True

    def _frames(self) -> Iterator[bytes]:
        """Take off whole frames, but for GOAWAY: the engine would not let its streams end."""
        while len(self._received) >= HEAD_BYTES:
            length = HEAD_BYTES + int.from_bytes(self._received[:3])
            if len(self._received) < length:
                return
            frame, self._received = self._received[:length], self._received[length:]
            if frame[3] == GOAWAY:
                self.ended_by_gateway = True
            else:
                yield frame

    def answered(self, *streams: int) -> list[int]:
        """Wait until all of them have ended; return their statuses."""
        self.flush()
        while not self.ended.issuperset(streams):
            assert self.read(), "the connection ended or is silent"
        return [self.statuses[stream] for stream in streams]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.socket.close()
