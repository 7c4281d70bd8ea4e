"""What is wrong with a configuration, in sentences for the person who wrote it."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

PROBLEMS_MAX = 100
_SHOWN_CHARS_MAX = 60
_PATH_CHARS_MAX = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a value was written: a line of a file, a variable, or nowhere (the default)."""

    file: Path | None = None
    line: int | None = None
    column: int | None = None
    variable: str = ""

    def __str__(self) -> str:
        if self.variable:
            return shown(self.variable)
        if self.file is None:
            return "default"
        line = f" line {self.line}" if self.line is not None else ""
        column = f", column {self.column}" if self.column is not None else ""
        return f"{shown(self.file.name or str(self.file))}{line}{column}"


NOWHERE = Origin()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigProblem:
    """One thing to correct: which key, where it is written, what is wrong, what would help."""

    key: str
    message: str
    hint: str = ""
    origin: Origin = NOWHERE

    @property
    def file(self) -> Path | None:
        return self.origin.file

    @property
    def line(self) -> int | None:
        return self.origin.line

    def __str__(self) -> str:
        where = "" if self.origin == NOWHERE else f"{self.origin}: "
        hint = f"; {self.hint}" if self.hint else ""
        return f"{where}{self.message}{hint}"


class ConfigError(Exception):
    """The configuration or the home is wrong; starting again without a change cannot help."""

    exit_code: ClassVar[int] = 78

    def __init__(self, problems: Iterable[ConfigProblem]) -> None:
        self.problems: tuple[ConfigProblem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class InvalidValue(Exception):
    """A value is not what its key takes; the message goes after the key's name."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Problems:
    """The problems found so far, at most `PROBLEMS_MAX` of them."""

    def __init__(self) -> None:
        self._kept: list[ConfigProblem] = []

    def add(self, key: str, message: str, *, hint: str = "", origin: Origin = NOWHERE) -> None:
        """Note that `key` is wrong; `message` is the whole sentence, naming the key."""
        if not self.is_full:
            self._kept.append(ConfigProblem(key=key, message=message, hint=hint, origin=origin))

    @property
    def is_full(self) -> bool:
        return len(self._kept) >= PROBLEMS_MAX

    def concern(self, keys: Iterable[str]) -> bool:
        """Whether one of `keys` already has a problem, so that more about it is noise."""
        wanted = set(keys)
        return any(problem.key in wanted for problem in self._kept)

    def concern_section(self, section: str) -> bool:
        """Whether anything in a section already has a problem, known key or not."""
        return any(f"{problem.key}.".startswith(f"{section}.") for problem in self._kept)

    def raise_if_any(self) -> None:
        """Raise ConfigError with everything noted, or return if there is nothing."""
        if not self._kept:
            return
        last = "there are too many problems to show; fix these first"
        more = [ConfigProblem(key="", message=last)] if self.is_full else []
        raise ConfigError([*self._kept, *more])


def shown(text: str, chars_max: int = _SHOWN_CHARS_MAX) -> str:
    """`text` as it may be printed: no control or invisible characters, not endless."""
    cut = escaped(text[:chars_max])
    return f"{cut}…" if len(text) > chars_max else cut


def shown_path(path: Path) -> str:
    """`path` as it may be printed; a person must be able to go there."""
    return shown(str(path), _PATH_CHARS_MAX)


def escaped(text: str) -> str:
    """`text` with everything unprintable (controls, bidi marks, surrogates) written out."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in text
    )
