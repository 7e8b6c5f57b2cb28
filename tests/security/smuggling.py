"""Requests that two servers may read differently: what hides in them must never be a request."""

from tests.security.case import CREDENTIALS, HIDDEN, Case

_QUERY = b"staff_id=outer&start_time=0&end_time=1"
OUTER = b"/extractbeacon?" + _QUERY  # passed on by the gateway with its headers and its body
_REST = b" HTTP/1.1\r\nHost: localhost\r\n" + CREDENTIALS + b"\r\n"
_POST = b"POST " + OUTER + _REST
_GET = b"GET " + OUTER + _REST
STORE = b"/newbeacondetect?user_address=" + HIDDEN + b"&beacon_address=C2A628384B08&rssi=-20"
_HIDDEN = b"GET " + STORE + _REST + b"\r\n"
_LENGTH = b"%d" % len(_HIDDEN)
# The hidden request in a chunk, and behind the end of all chunks.
_IN_CHUNK = b"%x\r\n%s\r\n0\r\n\r\n" % (len(_HIDDEN), _HIDDEN)
_BEHIND = b"0\r\n\r\n" + _HIDDEN

_DISGUISES = {
    "plain": b"Transfer-Encoding: chunked",
    "capitals": b"TRANSFER-ENCODING: CHUNKED",
    "no space": b"Transfer-Encoding:chunked",
    "tab before it": b"Transfer-Encoding:\tchunked",
    "space behind it": b"Transfer-Encoding: chunked ",
    "tab behind it": b"Transfer-Encoding: chunked\t",
    "space before the colon": b"Transfer-Encoding : chunked",
    "tab before the colon": b"Transfer-Encoding\t: chunked",
    "space before the name": b" Transfer-Encoding: chunked",
    "space in the name": b"Transfer Encoding: chunked",
    "underscore": b"Transfer_Encoding: chunked",
    "soft hyphen": b"Transfer\xadEncoding: chunked",
    "vertical tab": b"Transfer-Encoding:\x0bchunked",
    "form feed": b"Transfer-Encoding: chunked\x0c",
    "no-break space": b"Transfer-Encoding:\xa0chunked",
    "0xff behind it": b"Transfer-Encoding: chunked\xff",
    "NUL behind it": b"Transfer-Encoding: chunked\0",
    "NUL in the name": b"Transfer-\0Encoding: chunked",
    "quoted": b'Transfer-Encoding: "chunked"',
    "parameter": b"Transfer-Encoding: chunked;q=1",
    "prefix": b"Transfer-Encoding: xchunked",
    "short": b"Transfer-Encoding: chunk",
    "empty": b"Transfer-Encoding:",
    "identity": b"Transfer-Encoding: identity",
    "comma before it": b"Transfer-Encoding: ,chunked",
    "comma behind it": b"Transfer-Encoding: chunked,",
    "chunked, identity": b"Transfer-Encoding: chunked, identity",
    "identity, chunked": b"Transfer-Encoding: identity, chunked",
    "gzip, chunked": b"Transfer-Encoding: gzip, chunked",
    "chunked, chunked": b"Transfer-Encoding: chunked, chunked",
    "twice": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "twice, first x": b"Transfer-Encoding: x\r\nTransfer-Encoding: chunked",
    "twice, then x": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: x",
    "folded": b"Transfer-Encoding:\r\n chunked",
    "folded name": b"Transfer-Encoding\r\n : chunked",
    "in a folded line": b"X: y\r\n Transfer-Encoding: chunked",
    "behind a bare LF": b"X: y\nTransfer-Encoding: chunked",
    "behind a bare CR": b"X: y\rTransfer-Encoding: chunked",
    "bare CR behind it": b"Transfer-Encoding: chunked\rX: y",
}

_LENGTHS = {
    "honest": b"Content-Length: N",
    "twice the same": b"Content-Length: N\r\nContent-Length: N",
    "then 0": b"Content-Length: N\r\nContent-Length: 0",
    "first 0": b"Content-Length: 0\r\nContent-Length: N",
    "list": b"Content-Length: N, N",
    "list with 0": b"Content-Length: 0, N",
    "plus": b"Content-Length: +N",
    "minus": b"Content-Length: -N",
    "minus 0": b"Content-Length: -0",
    "zeros": b"Content-Length: 000N",
    "hexadecimal": b"Content-Length: 0xN",
    "decimal point": b"Content-Length: N.0",
    "exponent": b"Content-Length: Ne0",
    "underscore in it": b"Content-Length: 1_N",
    "letters": b"Content-Length: Nabc",
    "empty": b"Content-Length:",
    "quoted": b'Content-Length: "N"',
    "comma": b"Content-Length: N,",
    "space in it": b"Content-Length: N 0",
    "space before the colon": b"Content-Length : N",
    "space before the name": b" Content-Length: N",
    "underscore": b"Content_Length: N",
    "tab before it": b"Content-Length:\tN",
    "space behind it": b"Content-Length: N ",
    "vertical tab": b"Content-Length:\x0bN",
    "form feed": b"Content-Length: N\x0c",
    "NUL behind it": b"Content-Length: N\0",
    "0xff behind it": b"Content-Length: N\xff",
    "Arabic digits": "Content-Length: ٩٩".encode(),
    "folded": b"Content-Length:\r\n N",
    "in a folded line": b"X: y\r\n Content-Length: N",
    "behind a bare LF": b"X: y\nContent-Length: N",
    "behind a bare CR": b"X: y\rContent-Length: N",
    "2**31": b"Content-Length: 2147483648",
    "2**63": b"Content-Length: 9223372036854775808",
    "2**64 and N": b"Content-Length: %d" % (2**64 + len(_HIDDEN)),
    "30 digits": b"Content-Length: " + b"9" * 30,
}

_CHUNKS = {
    "honest": _IN_CHUNK,
    "capitals": b"%X\r\n" % len(_HIDDEN) + _HIDDEN + b"\r\n0\r\n\r\n",
    "zeros": b"0000" + _IN_CHUNK,
    "extension": _IN_CHUNK.replace(b"\r\n", b";a=b\r\n", 1),
    "quoted extension": _IN_CHUNK.replace(b"\r\n", b';a="b;c"\r\n', 1),
    "bare LF in an extension": b"1;a\n" + b"\r\nx\r\n" + _BEHIND,
    "bare CR in an extension": b"1;a\rb\r\nx\r\n0\r\n\r\n",
    "NUL in an extension": b"1;a\0\r\nx\r\n0\r\n\r\n",
    "extension of 20 kB": b"1;" + b"a" * 20_000 + b"\r\nx\r\n0\r\n\r\n",
    "space before the size": b" " + _IN_CHUNK,
    "space behind the size": _IN_CHUNK.replace(b"\r\n", b" \r\n", 1),
    "tab behind the size": _IN_CHUNK.replace(b"\r\n", b"\t\r\n", 1),
    "plus": b"+" + _IN_CHUNK,
    "minus": b"-" + _IN_CHUNK,
    "0x": b"0x" + _IN_CHUNK,
    "underscore": b"0_" + _IN_CHUNK,
    "no number": b"g\r\n" + _HIDDEN,
    "no size": b"\r\n" + _HIDDEN,
    "only an extension": b";a\r\n" + _HIDDEN,
    "2**32 and 0": b"100000000\r\n" + _HIDDEN,
    "2**64 and 0": b"10000000000000000\r\n\r\n" + _HIDDEN,
    "2**64 - 1": b"ffffffffffffffff\r\n" + _HIDDEN,
    "40 digits": b"f" * 40 + b"\r\n" + _HIDDEN,
    "40 zeros": b"0" * 40 + b"\r\n\r\n",
    "size behind a bare LF": _IN_CHUNK.replace(b"\r\n", b"\n", 1),
    "size behind a bare CR": _IN_CHUNK.replace(b"\r\n", b"\r", 1),
    "too short": b"1\r\n" + _HIDDEN + b"\r\n0\r\n\r\n",
    "bare LF behind the data": b"1\r\nx\n0\r\n\r\n",
    "nothing behind the data": b"1\r\nx0\r\n\r\n",
    "two bytes behind the data": b"1\r\nxyy0\r\n\r\n" + _HIDDEN,
    "bare LFs at the end": b"0\n\n" + _HIDDEN,
    "trailer": b"0\r\nX: y\r\n\r\n",
    "trailer with a length": b"0\r\nContent-Length: 5\r\n\r\n",
    "trailer with chunks": b"0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "trailer without a colon": b"0\r\n" + _HIDDEN,
    "trailer with NUL": b"0\r\nX: \0\r\n\r\n",
    "folded trailer": b"0\r\nX: y\r\n z\r\n\r\n",
}


def _changed(old: bytes, new: bytes) -> bytes:
    """Return the honest request with another text in the first place of one."""
    return _GET.replace(old, new, 1) + b"\r\n"


_LINES = {
    "honest": _GET + b"\r\n",
    "bare LFs": (_GET + b"\r\n").replace(b"\r", b""),
    "bare LF behind the line": _changed(b"\r", b""),
    "bare CR behind the line": _changed(b"\r\n", b"\r"),
    "bare CR in a value": _GET + b"X: y\rz\r\n\r\n",
    "bare LF in a value": _GET + b"X: y\nz\r\n\r\n",
    "CR CR LF": _GET + b"X: y\r\r\n\r\n",
    "empty lines before it": b"\r\n\r\n" + _GET + b"\r\n",
    "LFs before it": b"\n\n" + _GET + b"\r\n",
    "garbage before it": b"\x00\x01\xff\r\n" + _GET + b"\r\n",
    "space before it": b" " + _GET + b"\r\n",
    "NUL in the path": _changed(b"?", b"\0?"),
    "NUL in the query": _changed(b"?", b"?\0"),
    "quoted NUL in the path": _changed(b"?", b"%00?"),
    "quoted NUL in the query": _changed(b"outer", b"%00"),
    "space in the query": _changed(b"?", b"? "),
    "tab in the query": _changed(b"?", b"?\t"),
    "hash": _changed(b"?", b"#?"),
    "two spaces": _changed(b" ", b"  "),
    "tabs for spaces": _changed(b" ", b"\t"),
    "two versions": _changed(b" HTTP/1.1", b" HTTP/1.1 HTTP/1.1"),
    "words behind the version": _changed(b" HTTP/1.1", b" HTTP/1.1 x"),
    "absolute address": _changed(b"/extract", b"http://a/extract"),
    "absolute address, other host": _changed(b"/extract", b"http://evil.example/extract"),
    "absolute address with a login": _changed(b"/extract", b"http://u:p@a/extract"),
    "absolute address of a file": _changed(b"/extract", b"file:///extract"),
    "absolute address of 0 letters": _changed(b"/extract", b"http:///extract"),
    "host for an address": _changed(OUTER, b"a:80"),
    "star": _changed(OUTER, b"*"),
    "no slash": _changed(b"/extract", b"extract"),
    "no address": _changed(OUTER + b" ", b""),
    "CONNECT": b"CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TRACE": _changed(b"GET", b"TRACE"),
    "TRACK": _changed(b"GET", b"TRACK"),
    "small letters": _changed(b"GET", b"get"),
    "method with a colon": _changed(b"GET", b"GET:"),
    "method of 300 letters": _changed(b"GET", b"G" * 300),
    "HTTP/0.9": b"GET /healthz\r\n\r\n",
    "HTTP/0.9 with its name": _changed(b"HTTP/1.1", b"HTTP/0.9"),
    "HTTP/1.0": _changed(b"HTTP/1.1", b"HTTP/1.0"),
    "HTTP/1.0, kept": _GET.replace(b"HTTP/1.1", b"HTTP/1.0", 1) + b"Connection: keep-alive\r\n\r\n",
    "HTTP/1.0 in chunks": _POST.replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
    + _BEHIND,
    "HTTP/1.2": _changed(b"HTTP/1.1", b"HTTP/1.2"),
    "HTTP/1.10": _changed(b"HTTP/1.1", b"HTTP/1.10"),
    "HTTP/01.1": _changed(b"HTTP/1.1", b"HTTP/01.1"),
    "HTTP/2.0": _changed(b"HTTP/1.1", b"HTTP/2.0"),
    "http/1.1": _changed(b"HTTP/1.1", b"http/1.1"),
    "HTTP/+1.1": _changed(b"HTTP/1.1", b"HTTP/+1.1"),
    "HTTP/2's preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "upgrade to h2c": _GET + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    b"HTTP2-Settings: AAMAAABk\r\n\r\n",
    "upgrade to a websocket": _GET + b"Upgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    "no host": _GET.replace(b"Host: localhost\r\n", b"") + b"\r\n",
    "empty host": _GET.replace(b"Host: localhost\r\n", b"Host:\r\n") + b"\r\n",
    "two hosts": _GET + b"Host: evil.example\r\n\r\n",
    "host with a path": _GET.replace(b"Host: localhost", b"Host: localhost/b?c") + b"\r\n",
    "host with a space": _GET.replace(b"Host: localhost", b"Host: localhost b") + b"\r\n",
    "host with NUL": _GET.replace(b"Host: localhost", b"Host: localhost\0b") + b"\r\n",
    "host in brackets": _GET.replace(b"Host: localhost", b"Host: [") + b"\r\n",
    "name with a space": _GET + b"X Y: z\r\n\r\n",
    "name with an underscore": _GET + b"X_Request_ID: z\r\n\r\n",
    "name with NUL": _GET + b"X\0Y: z\r\n\r\n",
    "name of 0xff": _GET + b"X\xff: z\r\n\r\n",
    "name with a bracket": _GET + b"X(Y): z\r\n\r\n",
    "no name": _GET + b": z\r\n\r\n",
    "no colon": _GET + b"xyz\r\n\r\n",
    "folded value": _GET + b"X: y\r\n z\r\n\r\n",
    "folded first line": _changed(b"Host", b" X: y\r\nHost"),
    "value with NUL": _GET + b"X: \0\r\n\r\n",
    "value with 0x01": _GET + b"X: \x01\r\n\r\n",
    "value with 0x7f": _GET + b"X: \x7f\r\n\r\n",
    "value of 0x80 to 0xff": _GET + b"X: " + bytes(range(0x80, 0x100)) + b"\r\n\r\n",
    "id of 0x80 to 0xff": _GET + b"X-Request-ID: " + bytes(range(0x80, 0x100)) + b"\r\n\r\n",
    "Connection names the id": _GET + b"Connection: X-Request-ID, Host\r\n\r\n",
    "Connection names the length": _POST
    + b"Connection: Content-Length\r\nContent-Length: %s\r\n\r\n%s" % (_LENGTH, _HIDDEN),
    "two Authorizations": _GET + b"Authorization: Basic Og==\r\nAuthorization: Bearer x\r\n\r\n",
    "Connection names the credentials": _GET + b"Connection: Authorization, Cookie\r\n\r\n",
    "Connection: close twice over": _GET + b"Connection: keep-alive\r\nConnection: close\r\n\r\n",
    "Expect: 100-continue": _POST
    + b"Expect: 100-continue\r\nContent-Length: %s\r\n\r\n%s" % (_LENGTH, _HIDDEN),
    "Expect: 100-continue and no body": _POST
    + b"Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
    "Expect: x": _GET + b"Expect: x\r\n\r\n",
    "body of a GET": _GET + b"Content-Length: %s\r\n\r\n%s" % (_LENGTH, _HIDDEN),
    "chunks of a GET": _GET + b"Transfer-Encoding: chunked\r\n\r\n" + _IN_CHUNK,
    "body of a DELETE": _GET.replace(b"GET", b"DELETE", 1)
    + b"Content-Length: %s\r\n\r\n%s" % (_LENGTH, _HIDDEN),
    "body without a length": _POST + b"\r\n" + _HIDDEN.replace(b"GET", b"x=GET"),
    "line of 17 kB": _changed(b"?", b"?" + b"x" * 17_000 + b"&"),
    "line of 70 kB": _changed(b"?", b"?" + b"x" * 70_000 + b"&"),
    "value of 17 kB": _GET + b"X: " + b"x" * 17_000 + b"\r\n\r\n",
    "1,000 fields": _GET + b"".join(b"X-%d: y\r\n" % n for n in range(1000)) + b"\r\n",
    "10,000 fields": _GET + b"X: y\r\n" * 10_000 + b"\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" * 20 + b"\r\n\r\n",
    "a mail": b"HELO a\r\nMAIL FROM:<a@evil.example>\r\n\r\n",
    "method override": _GET + b"X-HTTP-Method-Override: DELETE\r\n\r\n",
    "rewritten address": _GET + b"X-Original-URL: /nginx_status\r\nX-Rewrite-URL: /x\r\n\r\n",
}
# Each byte of 0x80 to 0xff by itself in the query, and each control code.
_BYTES = [
    (
        f"{'control code' if byte < 0x80 else 'byte'} 0x{byte:02x}",
        _GET.replace(b"?", b"?x=%c&" % byte, 1) + b"\r\n",
    )
    for byte in (*range(1, 0x20), 0x7F, *range(0x80, 0x100))
    if byte not in (0x0A,)
]


def cases() -> list[Case]:
    """Return all of them."""
    requests: dict[str, bytes] = {"control: pipelined": _GET + b"\r\n" + _HIDDEN}
    for name, line in _DISGUISES.items():
        head = _POST + line + b"\r\n"
        requests[f"CL.TE {name}"] = head + b"Content-Length: %d\r\n\r\n" % len(_BEHIND) + _BEHIND
        requests[f"TE.CL {name}"] = (
            head + b"Content-Length: %d\r\n\r\n" % (_IN_CHUNK.index(b"\n") + 1) + _IN_CHUNK
        )
        requests[f"TE {name}"] = head + b"\r\n" + _IN_CHUNK
    for name, line in _LENGTHS.items():
        requests[f"CL {name}"] = _POST + line.replace(b"N", _LENGTH) + b"\r\n\r\n" + _HIDDEN
    for name, body in _CHUNKS.items():
        requests[f"chunk: {name}"] = _POST + b"Transfer-Encoding: chunked\r\n\r\n" + body
    requests |= {f"line: {name}": sent for name, sent in _LINES.items()}
    requests |= dict(_BYTES)
    return [Case(name, sent) for name, sent in requests.items()]
