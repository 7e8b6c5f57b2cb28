"""Render NGINX's configuration from the environment: where to listen, where requests go."""

import os
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from common import routes, settings
from common.settings import ACCESS, OFF, ON, REQUIRED, SWITCH
from gateway import addresses

_FILES = Path(__file__).parent / "nginx"
# What nginx.conf is made of, by subject, in this order.
PARTS = (
    *("log", "limits", "circuits", "proxy", "browsers", "headers", "tls"),
    *("addresses", "answers", "pollers", "page", "health"),
)
# Where in main.conf the pieces of a part belong.
_LEVEL = re.compile(r"^@(http|server|beside)\n", re.MULTILINE)
_LEVEL_HERE = re.compile(r"^( *)@(http|server|beside)\n", re.MULTILINE)
_INCLUDE = re.compile(r"^( *)@include (\S+)\n", re.MULTILINE)
# What a location costs: its circuit, time limit and limits of number. addresses.conf includes them.
GROUPS = (
    "ingest.conf",
    "owntracks.conf",
    "batch.conf",
    "short_read.conf",
    "history.conf",
    "long_read.conf",
)
PROBE = "probe.conf"  # for the addresses that tell how a circuit is
# Settings of the whole installation: the words that each may be; the form of a value, an example.
_WORDS = {
    "access": ACCESS,
    "legacy_access": ACCESS,
    "legacy_parameter": ("refused", "allowed"),
    "owntracks": SWITCH,
    "http2": SWITCH,
}
HTTP2_ON_A_LINE = (1, 25, 1)  # the first nginx with the directive `http2`
_NAME = re.compile(r"@\{(\w+)\}")
_NUMBERS = re.compile(r"\d+\.\d+\.\d+\.\d+|[0-9a-f:.]+:[0-9a-f:.]*", re.IGNORECASE)  # no name
_HOST_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9-]{1,63}(\.[a-z0-9-]{1,63})+")
# Below `acme_folder`; the names of the files are the client's.
CHALLENGES, CERTIFICATES, CERTIFICATE = "challenges", "certs", "waymark"
INTERNAL_LISTEN = "127.0.0.1:8081"
LEAST_CONNECTIONS = 3072  # all places (limits.conf) take two each: with 30 % to spare
MOST_CONNECTIONS = 1_000_000  # NGINX takes 440 bytes for each as it starts
OTHER_FILES = 1024  # that the worker may have open: logs, bodies, answers
TLS_FILE = "tls.pem"  # below `run`: the chain and the key that nginx uses
_THIS_MACHINE = re.compile(r"127(\.\d+){3}|\[?::1\]?|localhost|unix")
_HOST = r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?"
_FORMS = {
    "hostnames": (re.compile(_HOST, re.IGNORECASE), "way.example, without scheme and port"),
    "allowed_origins": (
        re.compile(rf"https?://({_HOST}|\[[0-9a-f:.]+\])(:\d+)?", re.IGNORECASE),
        "https://wall.example or http://10.1.2.3:3000",
    ),
    "trusted_proxies": (re.compile(r"[0-9a-f.:]+(/\d{1,3})?", re.IGNORECASE), "10.1.2.3"),
}
_INSTALLATION = {*_WORDS, *_FORMS, "admin_token_sha256"} - {"http2"}


class ConfigError(ValueError):
    """The settings contradict each other; the text says what to do."""


def variable(setting: str) -> str:
    """Return the environment variable of a setting."""
    return f"{'WAYMARK' if setting in _INSTALLATION else 'GATEWAY'}_{setting.upper()}"


class Config(NamedTuple):
    """Settings of the gateway, `GATEWAY_` and a name; docs/configuration.md lists them.

    Those of the whole installation are `WAYMARK_` and a name.
    """

    listen: str = "127.0.0.1:8080"  # address:port, several separated by spaces
    ingest: str = "127.0.0.1:5001 127.0.0.1:5002"  # the ingest services, separated by spaces
    monitoring: str = "127.0.0.1:4000"  # the monitoring service
    client_rate: str = "200"  # requests per second that one client address may send
    connections: str = str(LEAST_CONNECTIONS)  # how many it holds, those to the services among them
    hostnames: str = ""  # the gateway's names beside localhost; addresses need no mention
    allowed_origins: str = ""  # whose pages may use all that is not legacy, beside our own
    trusted_proxies: str = ""  # addresses of proxies in front: they tell the client's, and of TLS
    tls_certificate: str = ""  # file with the certificate chain; with it, TLS is on
    tls_key: str = ""  # file with its key
    tls_names: str = ""  # instead: host names that acme.py gets a certificate for
    acme_folder: str = "/var/lib/waymark/acme"  # what acme.py and the gateway share
    tls_listen: str = "127.0.0.1:8443"  # where to listen for TLS
    http2: str = ON  # whether TLS offers HTTP/2
    internal_listen: str = ""  # plain HTTP for the monitoring service; with TLS INTERNAL_LISTEN
    published: str = ""  # address where the container's port is published; empty outside of one
    access: str = "open"  # or `required`: each request needs a token
    legacy_access: str = REQUIRED  # or `open`: the legacy endpoints need none all the same
    legacy_parameter: str = "refused"  # or `allowed`: legacy clients may send `?token=`
    owntracks: str = OFF  # whether iPhones with OwnTracks may post
    admin_token_sha256: str = ""  # digest of the first administrator's token: there is one
    run: str = "/run/waymark"  # folder for pid, sockets, cache, bodies too large for memory
    log_folder: str = "/run/waymark/log"  # folder for the log of requests
    user: str = "www-data"  # the user of the worker; empty when nginx is not started by root

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Config":
        """Read the settings that are given. Raises ConfigError when they contradict each other."""
        try:
            config = cls(**settings.read(cls._field_defaults, environment, _WORDS, variable))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        if bool(config.tls_certificate) != bool(config.tls_key):
            raise ConfigError("set both GATEWAY_TLS_CERTIFICATE and GATEWAY_TLS_KEY, or neither")
        if config.tls_names:
            config = config._with_acme()
        if config.tls_certificate and not config.internal_listen:
            config = config._replace(internal_listen=INTERNAL_LISTEN)
        if not config.client_rate.isdecimal() or int(config.client_rate) < 1:
            raise ConfigError(f"GATEWAY_CLIENT_RATE: {config.client_rate!r} is no whole number > 0")
        is_number = re.fullmatch("[0-9]{4,7}", config.connections)
        if not is_number or not LEAST_CONNECTIONS <= int(config.connections) <= MOST_CONNECTIONS:
            expected = f"no whole number from {LEAST_CONNECTIONS} to {MOST_CONNECTIONS}"
            raise ConfigError(f"GATEWAY_CONNECTIONS: {config.connections!r} is {expected}")
        if not re.fullmatch("([0-9a-f]{64})?", config.admin_token_sha256):
            raise ConfigError("WAYMARK_ADMIN_TOKEN_SHA256 is no SHA-256: run ./scripts/configure")
        for setting, (form, example) in _FORMS.items():
            for value in getattr(config, setting).split():
                if not form.fullmatch(value):
                    raise ConfigError(f"{variable(setting)}: {value!r} is not like {example}")
        return config

    @property
    def open_files(self) -> int:
        """How many files the worker may have to open."""
        return int(self.connections) + OTHER_FILES

    def _with_acme(self) -> "Config":
        """Return the settings with the files that acme.py makes."""
        if self.tls_certificate:
            raise ConfigError("set GATEWAY_TLS_NAMES or GATEWAY_TLS_CERTIFICATE, not both")
        for name in self.tls_names.split():
            if not _HOST_NAME.fullmatch(name):
                raise ConfigError(f"GATEWAY_TLS_NAMES: {name!r} is no host name in small letters")
        folder = f"{self.acme_folder}/{CERTIFICATES}/{CERTIFICATE}"
        return self._replace(
            tls_certificate=f"{folder}/fullchain.pem", tls_key=f"{folder}/privkey.pem"
        )


def check_exposure(config: Config) -> list[str]:
    """Return the warnings that are due where other machines may reach the gateway.

    Raises ConfigError where they may, and whoever reaches it could do everything.
    """
    beyond = _beyond_this_machine(config)
    if not beyond:
        return []
    if config.access != REQUIRED or not config.admin_token_sha256:
        raise ConfigError(
            f"other machines would reach it ({', '.join(beyond)}), and without tokens whoever "
            "reaches it may read where everybody is and change everything: run ./scripts/configure"
        )
    warnings = []
    if config.legacy_access != REQUIRED:
        warnings.append(
            "WARNING: WAYMARK_LEGACY_ACCESS=open: whoever reaches it may read where everybody was, "
            "and store detections"
        )
    if config.legacy_parameter == "allowed":
        warnings.append(
            "WARNING: WAYMARK_LEGACY_PARAMETER=allowed: a token in an address stays in the history "
            "and the logs of what it passes"
        )
    return warnings


def _beyond_this_machine(config: Config) -> list[str]:
    """Return on which addresses, and through which proxies, other machines may reach it."""
    listens = [config.listen, config.internal_listen]
    listens += [config.tls_listen] if config.tls_certificate else []
    sockets = " ".join(listens).split()
    hosts = [config.published] if config.published else [_host(listen) for listen in sockets]
    beyond = sorted({host for host in hosts if not _THIS_MACHINE.fullmatch(host)})
    proxies = config.trusted_proxies.split()
    ways = {"on": beyond, "through": proxies}
    return [f"{word} {', '.join(which)}" for word, which in ways.items() if which]


def render_all(config: Config, nginx: str = "", tls: str = "") -> dict[str, str]:
    """Return the text of each file that belongs into the folder `run`, by its name.

    `nginx` is what `nginx -v` says; `tls` is the chain and the key, "" when there are none (yet).
    """
    main = {"nginx.conf": render(config, template(), nginx, certified=bool(tls))}
    main |= {TLS_FILE: tls} if tls else {}
    services, without = config.ingest.split(), _read("without.conf")
    for number, service in enumerate(services):
        others = config._replace(ingest=" ".join(other for other in services if other != service))
        text = without.replace("@{number}", str(number)).replace("@{silent}", service)
        main[f"without_{number}.conf"] = render(others, text)
    return main | {name: render(config, _read(name)) for name in (*GROUPS, PROBE)}


def template() -> str:
    """Return main.conf with all parts in, before the names are filled in."""
    pieces: dict[str, list[str]] = {"http": [], "server": [], "beside": []}
    for part in PARTS:
        says, *rest = _LEVEL.split(_read(f"{part}.conf"))
        for level, text in zip(rest[::2], rest[1::2], strict=True):
            pieces[level].append(says + text)

    def all_of(place: re.Match[str]) -> str:
        return textwrap.indent("\n".join(pieces[place[2]]), place[1])

    return _LEVEL_HERE.sub(all_of, _read("main.conf"))


def _read(name: str) -> str:
    """Return a file with what its lines `@include` name."""
    text = (_FILES / name).read_text("utf-8")
    return _INCLUDE.sub(lambda include: textwrap.indent(_read(include[2]), include[1]), text)


def render(config: Config, template: str, nginx: str = "", *, certified: bool = True) -> str:
    """Return the text of nginx.conf: an empty value drops its line, several repeat it."""
    values = _values(config) | addresses.values()
    values |= _switches(config, nginx, certified=certified)
    lines: list[str] = []
    for line in template.splitlines():
        names = _NAME.findall(line)
        if all(values[name] for name in names):
            several = max((len(values[name]) for name in names), default=1)
            lines += [_filled(line, values, number) for number in range(several)]
    return "\n".join(lines) + "\n"


def _switches(config: Config, nginx: str, *, certified: bool) -> dict[str, list[str]]:
    """Return the values that only keep or drop their lines."""
    version = re.search(r"nginx/(\d+)\.(\d+)\.(\d+)", nginx)
    on_a_line = version is None or tuple(map(int, version.groups())) >= HTTP2_ON_A_LINE
    tls, http2 = bool(config.tls_certificate), config.http2 == ON
    return {
        "http2_line": [""] * (http2 and on_a_line and tls and certified),
        "http2_word": [" http2" if http2 and not on_a_line else ""],
        "waiting": [""] * (tls and not certified),
    } | ({} if certified else {"tls_listen": [], "tls_file": []})


def _filled(line: str, values: dict[str, list[str]], number: int) -> str:
    """Put in each name's value of that number, or its last."""
    return _NAME.sub(lambda name: values[name[1]][: number + 1][-1], line)


def _values(config: Config) -> dict[str, list[str]]:
    values = {name: [value] if value else [] for name, value in config._asdict().items()}
    # What has one of these in its name, `include` takes for a pattern, which may match nothing.
    pattern = bool(re.search(r"[*?[]", config.run))
    values["groups"] = [re.sub(r"([*?[\\])", r"\\\1", config.run) if pattern else config.run]
    values["tls_file"] = [f"{config.run}/{TLS_FILE}"] * bool(config.tls_certificate)
    values["challenges"] = [f"{config.acme_folder}/{CHALLENGES}".replace("$", "${dollar}")]
    for name in ("run", "groups", "tls_file", "challenges"):  # they stand in quotes
        values[name] = [re.sub(r'(["\\])', r"\\\1", value) for value in values[name]]
    values["checked_run"] = [values["run"][0].replace("$", "${dollar}")]
    lists = ("listen", "tls_listen", "internal_listen", "ingest", "monitoring", "trusted_proxies")
    values |= {name: values[name][0].split() if values[name] else [] for name in lists}
    hosts = dict.fromkeys(_host(at).strip("[]") for at in values["monitoring"])
    values["monitoring_host"] = [host for host in hosts if _NUMBERS.fullmatch(host)]
    values["files"] = [str(config.open_files)]
    values["numbers"] = [str(number) for number in range(len(values["ingest"]))]
    values["hostnames"] = _patterns(f"localhost {config.hostnames} {config.tls_names}")
    values["allowed_origins"] = _patterns(config.allowed_origins)
    values["vary"] = ["Origin"] if values["allowed_origins"] else []
    values["redirect_port"] = list({_port(listen) for listen in values["listen"]})
    values["tls_port"] = [_port(listen) for listen in values["tls_listen"][:1]]
    guarded = config.access == REQUIRED and config.legacy_access == REQUIRED
    values["pollers_ask"] = ["auth_request"] if guarded else []
    values["real_ip_header"] = ["X-Forwarded-For"] if values["trusted_proxies"] else []
    by_parameter, owntracks = config.legacy_parameter == "allowed", config.owntracks == ON
    values["owntracks"] = [routes.OWNTRACKS.path] * owntracks
    values["owntracks_on"] = [""] * owntracks
    values["legacy_authorization"] = ["$legacy_authorization"] if by_parameter else []
    values["authorization"] = values["legacy_authorization"] or ["$http_authorization"]
    if not config.tls_certificate:
        for name in ("tls_listen", "tls_port", "redirect_port"):
            values[name] = []
    return values


def _host(listen: str) -> str:
    """Return the address to listen on; a port alone is every address."""
    return "unix" if listen.startswith("unix:") else listen.rpartition(":")[0] or "*"


def _patterns(text: str) -> list[str]:
    """Return the pattern of each value, in the lower case that browsers send."""
    return [re.escape(value) for value in text.lower().split()]


def _port(listen: str) -> str:
    return listen.rpartition(":")[2]


def main() -> None:
    """Write the configuration into its folder, for `nginx -t` to look at.

    The argument is what `nginx -v` says.
    """
    config = Config.from_environment()
    files = [config.tls_certificate, config.tls_key] if config.tls_certificate else []
    tls = "".join(Path(file).read_text() for file in files)
    for name, text in render_all(config, sys.argv[1], tls).items():
        Path(config.run, name).write_text(text)


if __name__ == "__main__":
    main()
