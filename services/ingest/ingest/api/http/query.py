"""The parameters of requests: each declared once, for the document and for its reader."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from common import beacon_id
from ingest.errors import ParameterError
from ingest.rules import request_parameters, roles

Described = dict[str, Any]  # as OpenAPI has it
Parameters = Mapping[str, Any]  # what the request's address says, by name


class Parameter(Protocol):
    """Anything that the document lists among an operation's parameters."""

    def described(self) -> Described:
        """Return the parameter as OpenAPI has it."""
        ...


class Text(NamedTuple):
    """A text that its endpoint reads itself."""

    name: str
    description: str
    example: str | None = None
    where: str = "query"
    pattern: str = ""  # of a text that is not empty
    required: bool = False  # those of a path always are

    def described(self) -> Described:
        """Return the parameter as OpenAPI has it."""
        schema: Described = {"type": "string"} | ({"example": self.example} if self.example else {})
        is_required = self.required or self.where == "path"
        if self.pattern:  # an empty one of the query counts as none
            empty = "?" if self.where == "query" and not is_required else ""
            schema["pattern"] = f"^({self.pattern}){empty}$"
        required = {"required": True} if is_required else {}
        return _described(self.name, self.where, self.description, schema) | required


class Integer(NamedTuple):
    """A whole number in low..high, or the default where it is not given."""

    name: str
    description: str
    low: int
    high: int
    default: int

    def described(self) -> Described:
        """Return the parameter as OpenAPI has it."""
        bounds = {"minimum": self.low, "maximum": self.high, "default": self.default}
        return _described(self.name, "query", self.description, {"type": "integer"} | bounds)

    def read(self, parameters: Parameters) -> int:
        """Return the number. Raises ParameterError."""
        if not parameters.get(self.name):
            return self.default
        return request_parameters.integer(parameters, self.name, self.low, self.high)


class Choice(NamedTuple):
    """One of a few words, the first one where none is given."""

    name: str
    description: str
    words: Sequence[str]

    def described(self) -> Described:
        """Return the parameter as OpenAPI has it."""
        schema = {"type": "string", "enum": list(self.words), "default": self.words[0]}
        return _described(self.name, "query", self.description, schema)

    def read(self, parameters: Parameters) -> str:
        """Return the word. Raises ParameterError."""
        word: str = parameters.get(self.name) or self.words[0]
        if word not in self.words:
            *most, last = self.words
            raise ParameterError(self.name, f"must be {', '.join(most)} or {last}")
        return word


class Flag(NamedTuple):
    """A yes or no, no where it is not given."""

    name: str
    description: str

    def described(self) -> Described:
        """Return the parameter as OpenAPI has it."""
        schema = {"type": "string", "enum": ["0", "1", "true", "false", ""]}
        return _described(self.name, "query", self.description, schema)

    def read(self, parameters: Parameters) -> bool:
        """Return whether it is set. Raises ParameterError."""
        return request_parameters.flag(parameters, self.name)


def _described(name: str, where: str, description: str, schema: Described) -> Described:
    return {"name": name, "in": where, "description": description, "schema": schema}


IF_NONE_MATCH = Text(
    "If-None-Match", "`ETag` of the answer that you have; 304 if it holds", where="header"
)
IF_NEW = Text(
    "If-None-Match", "`*`: only where nothing is there yet; 412 if something is", where="header"
)
LEVEL = Text(roles.LEVEL, "Only this level")
TEAM = Text(roles.TEAM, "Only people of this team")
MAC_IN_PATH = Text(
    "mac",
    "Id of the beacon in any spelling without a slash; a MAC with or without `:` or `-`",
    "C2A628384B08",
    "path",
    beacon_id.ID_TEXT,
)
