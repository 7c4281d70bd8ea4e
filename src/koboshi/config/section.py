"""What the sections of the file are made of."""

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from koboshi.config import rules
from koboshi.config.values import SECRET_CHARS_MAX

# Long enough to mean "for ever", short enough to stay a plain number of milliseconds.
SECONDS_MAX = 1_000_000_000

Seconds: TypeAlias = Annotated[float, Meta(ge=0, le=SECONDS_MAX)]
SecondsFrom1: TypeAlias = Annotated[float, Meta(ge=1, le=SECONDS_MAX)]
Port: TypeAlias = Annotated[int, Meta(ge=0, le=65_535)]
Host: TypeAlias = Annotated[str, Meta(max_length=256)]
Url: TypeAlias = Annotated[str, Meta(max_length=2_048)]
VariableName: TypeAlias = Annotated[str, Meta(max_length=SECRET_CHARS_MAX), rules.variable_name]

TOKEN = "the secret itself; allowed, and warned about"
TOKEN_ENV = "the variable that holds it"
TOKEN_FILE = "a file that holds it, readable by its owner only"


class Section(Struct, frozen=True, kw_only=True):
    """A table of the file. An address may hold a password, so that its repr leaves it out."""

    def __repr__(self) -> str:
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        told = [f"{name}={value!r}" for name, value in values.items() if "://" not in str(value)]
        return f"{type(self).__name__}({', '.join(told)})"
