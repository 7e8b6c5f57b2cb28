"""The ids of beacons: how phones and gateways write them, and the one form in which each is stored.

A MAC is 12 capitals, as it always was. Every other id begins with its kind, so that none can be
taken for another: the instance of an Eddystone beacon has 12 hexadecimal digits, too.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

MAC, IBEACON, ALTBEACON = "mac", "ibeacon", "altbeacon"
EDDYSTONE_UID, EDDYSTONE_EID, EDDYSTONE_URL = "eddystone-uid", "eddystone-eid", "eddystone-url"
# A sender's id of the hour, which names nobody for longer.
UNRESOLVED = f"{EDDYSTONE_EID}:"

# What decoders write for an address that they do not have: it would be one beacon everywhere.
NO_MACS = frozenset({"000000000000", "FFFFFFFFFFFF"})
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
NUMBER = "(0|[1-9][0-9]{0,3}|[1-5][0-9]{4}|6([0-4][0-9]{3}|5([0-4][0-9]{2}|5([0-2][0-9]|3[0-5]))))"
_MAX_URL_BYTES = 17  # after the byte of the scheme
_URL_BYTE = "(0[0-9a-d]|2[1-9a-f]|[3-6][0-9a-f]|7[0-9a-e])"  # an ending, or what is printed
_WITH_KIND = (
    f"({IBEACON}|{ALTBEACON}):{_UUID}:{NUMBER}:{NUMBER}"
    f"|{EDDYSTONE_UID}:[0-9a-f]{{20}}:[0-9a-f]{{12}}|{EDDYSTONE_EID}:[0-9a-f]{{16}}"
    f"|{EDDYSTONE_URL}:0[0-3]{_URL_BYTE}{{1,{_MAX_URL_BYTES}}}"
)
STORED = f"[0-9A-F]{{12}}|{_WITH_KIND}"  # an id as it is stored and answered
# What documents say of texts; `read` decides, and takes more spellings.
_MAC = "([0-9A-Fa-f][:-]?){11}[0-9A-Fa-f]"
ID_TEXT = f"({_MAC}|{_WITH_KIND})"
BEACON_TEXT = f"(?!(0[:-]?){{12}}$|([Ff][:-]?){{12}}$){ID_TEXT}"

NOT_A_MAC = "must be a MAC address of 12 hexadecimal digits"
NOT_AN_ID = f"{NOT_A_MAC}, or the id of an iBeacon, an AltBeacon or an Eddystone beacon"
WHOLE_FLEET = "must have major and minor, too: a UUID alone is that of many beacons"
KEY = "must be no identity resolving key: whoever has it can follow that phone"
ANY_KIND = "must say its kind: an iBeacon and an AltBeacon are written so"
NEEDS_KIND = "must say its kind: an address, an Eddystone instance and an EID are written so"
NO_FIELDS = "must have uuid, major and minor; or namespace and instance; or eid; or url; or mac"
NOT_THAT_KIND = f"kind must be {IBEACON} or {ALTBEACON} with a UUID"
NOT_A_NAMESPACE = "must have a namespace of 20 hexadecimal digits"
NOT_16_BITS = "must have major and minor from 0 to 65535, as decimals without leading zeros"
NOT_EDDYSTONE_URL = (
    f"must be a web address that an Eddystone beacon can send: {_MAX_URL_BYTES} bytes"
)

# Schemes and endings, each a byte: its index.
_SCHEMES = ("http://www.", "https://www.", "http://", "https://")
_DOMAINS = ("com", "org", "edu", "net", "info", "biz", "gov")
_ENDINGS = (*(f".{domain}/" for domain in _DOMAINS), *(f".{domain}" for domain in _DOMAINS))

_HEX_UUID = "[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}"
_DIGITS = re.compile("[0-9A-F]{12}")
_UUID_ALONE = re.compile(_HEX_UUID)


Make = Callable[[re.Match[str]], str]


class NotABeaconId(ValueError):
    """Says why a text is no id of a beacon."""


def read(text: str) -> tuple[str, str]:
    """Return the id that a text spells, and why it spells none ("": it does)."""
    digits = text.replace(":", "").replace("-", "").upper()
    if _DIGITS.fullmatch(digits) and text.isascii():
        return digits, ""
    if "irk" in text.lower():
        return "", KEY
    try:
        return _other(text.strip()), ""
    except NotABeaconId as reason:
        return "", str(reason)


def fault(beacon_id: str) -> str:
    """Return why an id is not that of a beacon, "" where it is."""
    stands_for_none = beacon_id in NO_MACS
    return f"must be the MAC address of a beacon: {beacon_id} stands for none" * stands_for_none


def of_fields(fields: Mapping[str, Any]) -> str:
    """Return the id that the fields of an object name. Raises NotABeaconId."""
    texts = {name: text for name, value in fields.items() if (text := _text(value))}
    kind = texts.pop("kind", "").lower()
    uuid = texts.get("uuid", "")
    if not uuid and _UUID_ALONE.fullmatch(texts.get("id", "").lower()):
        uuid = texts["id"]
    if uuid:
        if not ("major" in texts and "minor" in texts):
            raise NotABeaconId(WHOLE_FLEET)
        if kind not in ("", IBEACON, ALTBEACON):
            raise NotABeaconId(NOT_THAT_KIND)
        return _numbered(kind or IBEACON, uuid, texts["major"], texts["minor"])
    if "namespace" in texts and "instance" in texts and kind in ("", EDDYSTONE_UID):
        return _of_kind(EDDYSTONE_UID, f"{texts['namespace']}/{texts['instance']}")
    if "id" in texts:
        return _of_kind(kind, texts["id"])
    for name, meant in (("eid", EDDYSTONE_EID), ("url", EDDYSTONE_URL), ("mac", MAC)):
        if name in texts and kind in ("", meant):
            return _of_kind(meant, texts[name])
    raise NotABeaconId(NO_FIELDS)


def _text(value: Any) -> str:
    """Return a value as a text, "" where it stands for none."""
    if value is None:
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def _of_kind(kind: str, text: str) -> str:
    """Return the id that a text spells, of this kind ("": any)."""
    lower = text.lower()
    if kind in (IBEACON, ALTBEACON) and (match := _AS_ANDROID_PRINTS.fullmatch(lower)):
        return _numbered(kind, *match.group("uuid", "major", "minor"))
    # What alone might be anything.
    if kind == EDDYSTONE_EID and (match := re.fullmatch("(0x)?(?P<eid>[0-9a-f]{16})", lower)):
        return UNRESOLVED + match["eid"]
    if kind == EDDYSTONE_URL and (match := re.fullmatch(f"(0x)?{_URL_BYTES}", lower)):
        return _url(match)
    if kind == MAC and (match := re.fullmatch(f"(0x)?(?P<mac>{_ADDRESS})", lower)):
        text = match["mac"]
    beacon_id, reason = read(text)
    if reason:
        raise NotABeaconId(reason)
    if kind not in ("", kind_of(beacon_id)):
        raise NotABeaconId(f"kind must be {kind_of(beacon_id)}: it is an id of that kind")
    return beacon_id


def may_be_key(text: str) -> bool:
    """Tell whether a text may hold a key, which no answer repeats."""
    return bool(re.search("irk|[0-9a-f]{32}", text, re.IGNORECASE))


def kind_of(beacon_id: str) -> str:
    """Return the kind of a stored id."""
    return beacon_id.partition(":")[0] if ":" in beacon_id else MAC


def _other(text: str) -> str:
    lower = text.lower()
    for spelling, made in _SPELLINGS:
        if match := spelling.fullmatch(lower):
            return made(match)
    if lower.startswith(("http://", "https://")):
        return f"{EDDYSTONE_URL}:{_encoded(text).hex()}"
    raise NotABeaconId(NOT_AN_ID)


def _numbered(kind: str, uuid: str, major: str, minor: str, *, base: int = 10) -> str:
    digits = uuid.lower().replace("-", "").removeprefix("0x")
    if not re.fullmatch("[0-9a-f]{32}", digits):
        raise NotABeaconId("must have a UUID of 32 hexadecimal digits")
    if base == 10 and not all(re.fullmatch(NUMBER, number) for number in (major, minor)):
        raise NotABeaconId(NOT_16_BITS)
    parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    return f"{kind}:{'-'.join(parts)}:{int(major, base)}:{int(minor, base)}"


def _decimal(kind: str) -> Make:
    return lambda match: _numbered(kind, *match.group("uuid", "major", "minor"))


def _hexadecimal(match: re.Match[str]) -> str:
    uuid, major, minor = match.group("uuid", "major", "minor")
    return _numbered(IBEACON, uuid, major, minor, base=16)


def _url(match: re.Match[str]) -> str:
    return f"{EDDYSTONE_URL}:{match['bytes']}"


def _uid(match: re.Match[str]) -> str:
    namespace = match["namespace"]
    if len(namespace) == 22:  # ESPresense prints the fifth byte twice
        if namespace[8:10] != namespace[10:12]:
            raise NotABeaconId(NOT_A_NAMESPACE)
        namespace = namespace[:10] + namespace[12:]
    return f"{EDDYSTONE_UID}:{namespace}:{match['instance']}"


def _encoded(url: str) -> bytes:
    """Return the bytes of a web address, with the longest codes: a text has several encodings."""
    lower = url.lower()
    scheme = next(number for number, start in enumerate(_SCHEMES) if lower.startswith(start))
    rest, encoded = url[len(_SCHEMES[scheme]) :], bytearray()
    while rest:
        code = next((n for n, ending in enumerate(_ENDINGS) if rest.startswith(ending)), None)
        value = ord(rest[0]) if code is None else code
        if len(encoded) == _MAX_URL_BYTES or not (code is not None or 0x20 < value < 0x7F):
            raise NotABeaconId(NOT_EDDYSTONE_URL)
        encoded.append(value)
        rest = rest[1 if code is None else len(_ENDINGS[code]) :]
    if not encoded:
        raise NotABeaconId(NOT_EDDYSTONE_URL)
    return bytes([scheme, *encoded])


def _refused(reason: str) -> Make:
    def refuse(_: re.Match[str]) -> str:
        raise NotABeaconId(reason)

    return refuse


_AS_ANDROID_PRINTS = re.compile(
    rf"id1: (?P<uuid>{_HEX_UUID}) id2: (?P<major>[0-9]+) id3: (?P<minor>[0-9]+)"
)


def _numbers(separator: str) -> str:
    return f"(?P<major>[0-9]+){separator}(?P<minor>[0-9]+)"


_UUID_TEXT = f"(?P<uuid>{_HEX_UUID})"
_ADDRESS = "([0-9a-f]{2}[:-]?){5}[0-9a-f]{2}"
_NAMESPACE, _INSTANCE = "(?P<namespace>[0-9a-f]{20})", "(?P<instance>[0-9a-f]{12})"
_URL_BYTES = f"(?P<bytes>0[0-3]{_URL_BYTE}{{1,{_MAX_URL_BYTES}}})"
# Each spelling in small letters, and what makes an id of it. docs/clients.md says who writes so.
_SPELLINGS: tuple[tuple[re.Pattern[str], Make], ...] = tuple(
    (re.compile(spelling), make)
    for spelling, make in (
        # A gateway's own word before an address; the kind of address behind it.
        (rf"(known:)?(?P<mac>{_ADDRESS})(/[023])?", lambda match: read(match["mac"])[0]),
        (
            r"(?P<mac>([0-9a-f]{4}\.){2}[0-9a-f]{4})",
            lambda match: read(match["mac"].replace(".", ""))[0],
        ),
        ("(id1: )?0x([0-9a-f]{12}|[0-9a-f]{16})", _refused(NEEDS_KIND)),
        (f"{IBEACON}:{_UUID_TEXT}:{_numbers(':')}", _decimal(IBEACON)),
        (f"{ALTBEACON}:{_UUID_TEXT}:{_numbers(':')}", _decimal(ALTBEACON)),
        (f"({IBEACON}:)?{_UUID_TEXT}-{_numbers('-')}", _decimal(IBEACON)),
        # The address behind it is the sender's.
        (f"{_UUID_TEXT}_{_numbers('_')}(_{_ADDRESS})?", _decimal(IBEACON)),
        (f"{_UUID_TEXT}/(?P<major>[0-9a-f]{{4}})/(?P<minor>[0-9a-f]{{4}})", _hexadecimal),
        (f"({IBEACON}:|{ALTBEACON}:)?{_HEX_UUID}", _refused(WHOLE_FLEET)),
        (_AS_ANDROID_PRINTS.pattern, _refused(ANY_KIND)),
        (f"{EDDYSTONE_UID}:{_NAMESPACE}:{_INSTANCE}", _uid),
        (f"(id1: )?(0x)?{_NAMESPACE}(/| id2: |, )(0x)?{_INSTANCE}", _uid),
        (f"eddy:(?P<namespace>[0-9a-f]{{20}}([0-9a-f]{{2}})?)-{_INSTANCE}", _uid),
        (f"{UNRESOLVED}(?P<eid>[0-9a-f]{{16}})", lambda match: UNRESOLVED + match["eid"]),
        (f"({EDDYSTONE_URL}:|(id1: )?0x){_URL_BYTES}", _url),
    )
)
