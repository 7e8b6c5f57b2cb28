"""Requests made from the OpenAPI document: good ones, slightly wrong ones, and nonsense."""

import json
import random
from collections.abc import Iterator
from typing import Any, NamedTuple
from urllib.parse import quote, quote_from_bytes, urlencode

Schema = dict[str, Any]

MAX_TARGET = 8000  # HTTP's own refusals are not in the document

SCALARS: list[Any] = [
    *(None, True, False, 0, -1, 1, 20, 21, -127, -128, 2**31, 2**63, 2**64, 10**400),
    *(1_700_000_000, 1_700_000_000_000, 253_402_300_800, -(10**12)),
    *(0.5, -0.0, 1e300, 1e999, float("nan"), float("-inf")),
    *("", " ", "0", "007", "-1", "1e5", "1_0", "٣", "null", "NaN", "true", "a" * 65, "a" * 4000),
    *(
        "C2A628384B08",
        "c2:a6:28:38:4b:08",
        "C2A628384B0",
        "' OR 1=1 --",
        "$ne",
        "a.b",
        "../..",
        "%",
    ),
    *(
        "\0",
        "\n",
        "\r\nX: y",
        "\x7f",
        "\u202e",
        "\ud800",
        "\ufeff",
        "😀",
        '"',
        "\\",
        "<b>",
        "{{7*7}}",
    ),
    *(
        "2023-11-14T22:13:30Z",
        "2023-11-14T22:13:30",
        "2023-02-30T00:00:00Z",
        "9999-12-31T23:59:59Z",
    ),
    *("0001-01-01T00:00:00+14:00", "2023-11-14", "1700000000.9", "1" * 5000),
]
KINDS = [
    *(
        "application/json",
        "application/json; charset=utf-16",
        'application/json; charset="',
        "text/csv",
    ),
    *(
        "application/x-www-form-urlencoded",
        "multipart/form-data",
        "multipart/form-data; boundary=b",
    ),
    *("text/plain", "", "a" * 300, "application/json; =;;", "*/*"),
]
HEADERS = [
    *(
        {},
        {},
        {},
        {"If-None-Match": "*"},
        {"If-None-Match": 'W/"a", "b'},
        {"If-None-Match": "\xff"},
    ),
    *({"X-Request-Start": "nan"}, {"X-Request-Start": "1e308"}, {"X-Request-ID": "\xff" * 200}),
    *(
        {"Content-Encoding": "gzip"},
        {"Accept-Encoding": "gzip;q=x"},
        {"Host": "<b>"},
        {"Expect": "x"},
    ),
    *({"Origin": "null"}, {"X-Forwarded-Proto": "javascript"}, {"Cookie": "=;"}),
]


class Case(NamedTuple):
    """One request."""

    method: str
    path: str  # as declared
    target: str
    headers: dict[str, str]
    body: bytes | None


def largest() -> Iterator[Case]:
    """Yield the largest bodies of each kind that is wrong, and what no operation has."""
    item = {"staff_id": 7, "mac": "C2A628384B08", "rssi": -60, "event_id": "e" * 128}
    batches = {
        "wrong types": [{"staff_id": {}, "mac": [], "rssi": "x"}] * 1000,
        "nothing": [{}] * 1000,
        "no objects": [[]] * 1000,
        "names that are ignored": [item | {f"{n:064}": n for n in range(5)}] * 500,
        "long texts": [item | {"mac": "x" * 250}] * 900,
        "too many": [item | {"event_id": "e"}] * 1001,
        "half of them good": [item, {"timestamp": "9999"}] * 500,
    }
    good = json.dumps({"detections": [item] * 1000}).encode()
    texts = {
        "a name twice at the end": good[:-3] + b',"mac":"x"}]}',
        "no number at the end": good[:-3] + b',"x":NaN}]}',
        "cut": good[:-1],
        "no UTF-8": good[:-1] + b"\xff}",
        "a long number": good[:-1] + b',"x":' + b"1" * 9000 + b"}",
        "deep": b"[" * 390_000,
        "values": b"[" + b"1," * 11_000 + b"1",
    }
    texts |= {name: json.dumps({"detections": one}).encode() for name, one in batches.items()}
    for body in texts.values():
        yield _posted("/api/v1/detections", "application/json", body)
    head, row = "mac,level,location,x,y\n", f"C2A628384B08,4,{'Lobby' * 12},1,2\n"
    files = (head + "x,,,y,z\n" * 2000, head + "x\n" * 2000, head + row * 2000, head + row * 2001)
    for text in (*files, head + f'"{row * 9000}', row * 2000):
        yield _posted("/api/v1/beacons/import", "text/csv", text.encode())
    yield _posted("/api/v1/beacons/import", "text/csv", b"\xff" * 1_000_000)
    parts = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n' * 150
    for kind, body in (
        ("application/x-www-form-urlencoded", b"a=%C3&" * 1300),
        ("multipart/form-data; boundary=b", parts),
        ("application/json", b'{"a":' * 1600),
        ("application/json", b"{" + b'"a":1,' * 1300),
    ):
        for path in ("/newbeacondetect", "/extractbeacon"):
            yield _posted(path, kind, body)
    for path in ("/api/v1/detections", "/api/v1/beacons/import", "/api/v1/staff"):
        yield _posted(path, "text/plain", b" " * 2_000_000)  # over each limit
    for path in ("/nothing", "/api/v1/nothing", "//api/v1/staff", "/api/v1/now"):
        yield Case("DELETE", path, path, {}, b"x" * 8000)


def _posted(path: str, kind: str, body: bytes) -> Case:
    return Case("POST", path, path, {"Content-Type": kind}, body)


class Garbage:
    """An endless source of requests, the same for the same seed."""

    def __init__(self, document: Schema, seed: int) -> None:
        self._random = random.Random(seed)
        self._components: dict[str, Schema] = document["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]

    def case(self) -> Case:
        return self._case(*self._random.choice(self._operations))

    def case_of_each_operation(self) -> list[Case]:
        """Return a request of each operation."""
        return [self._case(*operation) for operation in self._operations]

    def _case(self, method: str, path: str, operation: Schema) -> Case:
        target = path
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                target = target.replace(f"{{{parameter['name']}}}", self._path_value(parameter))
        if target.endswith("/correction"):  # of a beacon that is there it takes its time
            target = target.replace("C2A628384B08", "C2A628384B09")
        query = self._query(operation["parameters"])
        body, kind = self._body(operation.get("requestBody"))
        headers = dict(self._random.choice(HEADERS))
        if kind is not None:
            headers["Content-Type"] = kind
        if query:
            target = f"{target}?{query}"
        if len(target) > MAX_TARGET:
            return self._case(method, path, operation)
        return Case(method, path, target, headers, body)

    def _often(self, share: float = 0.8) -> bool:
        return self._random.random() < share

    def _text(self) -> str:
        value = self._random.choice(SCALARS)
        text = value if isinstance(value, str) else json.dumps(value)
        if self._often(0.3):
            text = "".join(chr(self._random.randrange(1, 0x500)) for _ in range(5))
        return text

    def _quoted(self, text: str) -> str:
        return quote(text.encode("utf-8", "surrogatepass"), safe="")

    def _path_value(self, parameter: Schema) -> str:
        if self._often(0.6):
            return str(parameter["schema"].get("example", "0"))
        if self._often(0.2):
            return quote_from_bytes(bytes(self._random.randrange(128, 256) for _ in range(4)))
        text = self._text().replace("/", "")
        # A dot is a step in a path, and "import" another address.
        return self._quoted(text if text.strip(".") else "x")

    def _query(self, parameters: list[Schema]) -> str:
        pairs = [
            (parameter["name"], self._query_value(parameter))
            for parameter in parameters
            if parameter["in"] == "query" and self._often(0.9 if parameter.get("required") else 0.4)
        ]
        if self._often(0.1):
            pairs.append((self._text(), self._text()))
        if self._often(0.05) and pairs:
            pairs.append(pairs[0])
        query = urlencode([(self._bytes(n), self._bytes(v)) for n, v in pairs])
        return f"{query}&%zz&=&%ff=%ff" if self._often(0.05) else query

    def _query_value(self, parameter: Schema) -> str:
        schema = parameter["schema"]
        if parameter["name"] in ("wait", "correct_past"):  # they take their time
            return self._random.choice(["0", "", "x"])
        if self._often(0.6):
            if "enum" in schema:
                return str(self._random.choice(schema["enum"]))
            if "example" in schema:
                return str(schema["example"])
            if schema.get("type") == "integer":
                low = schema.get("minimum", -10)
                return str(self._random.randint(low - 1, min(schema.get("maximum", 10), low + 50)))
        return self._text()

    def _bytes(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogatepass")

    def _body(self, declared: Schema | None) -> tuple[bytes | None, str | None]:
        if declared is None:
            if self._often(0.95):
                return None, None
            return b"unasked", self._random.choice(KINDS)
        kind, content = self._random.choice(list(declared["content"].items()))
        body = self._good(kind, content)
        if self._often(0.15):
            kind = self._random.choice(KINDS)
        if self._often(0.2):
            body = self._spoilt(body)
        return body, kind

    def _good(self, kind: str, content: Schema) -> bytes:
        """Return a body of the right kind; its values are good, wrong or nonsense."""
        if kind == "text/csv":
            lines = ["mac,level,location,x,y"]
            for _ in range(self._random.randrange(5)):
                mac = f"{self._random.randrange(16**12):012X}"
                row = [mac, "4", "Lobby", "", ""] if self._often() else [mac, *self._texts(4)]
                lines.append(",".join(row))
            return self._bytes("\n".join(lines))
        value = self._value(content["schema"])
        if kind == "application/x-www-form-urlencoded":
            fields = value if isinstance(value, dict) else {}
            return urlencode(
                {self._bytes(n): self._bytes(str(v)) for n, v in fields.items()}
            ).encode()
        return json.dumps(value).encode()

    def _texts(self, count: int) -> list[str]:
        return [self._text() for _ in range(count)]

    def _value(self, schema: Schema, name: str = "") -> Any:
        if self._often(0.08):
            return self._random.choice([*SCALARS, [], {}, [[[[]]]], {"$gt": ""}, {"a": {"b": 1}}])
        if "$ref" in schema:
            return self._value(self._components[schema["$ref"].rpartition("/")[2]], name)
        if "anyOf" in schema:
            kinds = schema["anyOf"]  # of a beacon's id mostly the text
            is_text = name == "mac" and self._often()
            return self._value(kinds[0] if is_text else self._random.choice(kinds), name)
        kind = schema.get("type", "string")
        kind = self._random.choice(kind) if isinstance(kind, list) else kind
        if kind == "object":
            required = schema.get("required", [])
            value = {
                field: self._value(inner, field)
                for field, inner in schema.get("properties", {}).items()
                if self._often(0.97 if field in required else 0.5)
            }
            return value | ({self._text(): self._text()} if self._often(0.05) else {})
        if kind == "array":
            return [self._value(schema["items"]) for _ in range(self._random.randrange(4))]
        if kind == "null":
            return None
        if kind == "boolean":
            return self._often(0.5)
        return self._scalar(kind, schema, name)

    def _scalar(self, kind: str, schema: Schema, name: str) -> Any:
        if "example" in schema and self._often():
            return schema["example"]
        if kind in ("integer", "number"):
            if name == "timestamp":
                return self._random.choice([1_700_000_000, 1_700_000_000_000, 5, 1_700_000_000.25])
            low = int(schema.get("minimum", 0))
            return self._random.randint(low, max(low, int(schema.get("maximum", 100))))
        if name in ("mac", "beacon_address") and self._often():
            return "C2:A6:28:38:4B:08"
        if name == "raw" and self._often(0.9):
            return "1aff4c000215e2c56db5dffb48d2b060d0f5a71096e000011234c5"
        return self._random.choice(["7", "SDA-001", "Lobby B", 'a "b" \\c', "2023-11-14T22:13:30Z"])

    def _spoilt(self, body: bytes) -> bytes:
        how = self._random.randrange(7)
        if how == 0:
            return body[: self._random.randrange(len(body) + 1)]
        if how == 1:
            at = self._random.randrange(len(body) + 1)
            return body[:at] + bytes([self._random.randrange(256)]) + body[at:]
        if how == 2:
            return body.decode(errors="replace").encode(
                self._random.choice(["utf-16", "utf-32", "utf-8-sig"])
            )
        if how == 3:
            return body.replace(b"}", b',"mac":1,"mac":2}')
        if how == 4:
            return self._random.choice([b"[", b'{"a":', b'{"detections":[']) * 20_000
        if how == 5:
            return body + b" " * (1 << 20)
        return b""
