"""What a column holds, and the value that it stands for: numbers, text, JSON.

A column is written by `encoded` and read by the function named for what it holds. Which columns a
row has is said in `rows.py`, `delivery_rows.py`, `process_rows.py` and `view_rows.py`.
"""

from collections.abc import Iterable, Sequence

import msgspec

from koboshi.domain.files import OutFile
from koboshi.domain.inbox import ChildWords, ReportWords, StrangersWords, Words
from koboshi.domain.session import Settings
from koboshi.domain.transcript import (
    Answer,
    Body,
    Choice,
    Message,
    Note,
    Question,
    Reply,
    Result,
    StepKind,
    Summary,
)

_encoder = msgspec.json.Encoder()
_BODIES: dict[str, msgspec.json.Decoder[Body]] = {
    kind: msgspec.json.Decoder(body)
    for kind, body in (
        (StepKind.MESSAGE, Message),
        (StepKind.NOTE, Note),
        (StepKind.REPLY, Reply),
        (StepKind.RESULT, Result),
        (StepKind.QUESTION, Question),
        (StepKind.ANSWER, Answer),
        (StepKind.SUMMARY, Summary),
    )
}
_words = msgspec.json.Decoder(Words)
_strangers_words = msgspec.json.Decoder(StrangersWords)
_report = msgspec.json.Decoder(ReportWords)
_child = msgspec.json.Decoder(ChildWords)
_settings = msgspec.json.Decoder(Settings)
_file = msgspec.json.Decoder(OutFile)
_choices = msgspec.json.Decoder(tuple[Choice, ...])
_ids = msgspec.json.Decoder(tuple[int, ...])
_literal = msgspec.json.Decoder(tuple[int, int])


def number(value: object) -> int:
    assert isinstance(value, int)
    return value


def text(value: object) -> str:
    assert isinstance(value, str)
    return value


def maybe_number(value: object) -> int | None:
    assert value is None or isinstance(value, int)
    return value


def maybe_text(value: object) -> str | None:
    assert value is None or isinstance(value, str)
    return value


def first_number(row: Sequence[object] | None) -> int | None:
    """The number in the first column of a row; None without a row, or where it is NULL."""
    return None if row is None else maybe_number(row[0])


def first_text(row: Sequence[object] | None) -> str | None:
    """The text in the first column of a row; None without a row, or where it is NULL."""
    return None if row is None else maybe_text(row[0])


def numbers(rows: Iterable[Sequence[object]]) -> list[int]:
    """The numbers in the first column of rows."""
    return [number(row[0]) for row in rows]


def texts(rows: Iterable[Sequence[object]]) -> list[str]:
    """The texts in the first column of rows."""
    return [text(row[0]) for row in rows]


def encoded(value: object) -> str:
    """The JSON that a column holds; readable with any SQLite shell."""
    return _encoder.encode(value).decode()


def body_of(kind: object, body: object) -> Body:
    return _BODIES[text(kind)].decode(text(body))


def report_of(body: object) -> ReportWords:
    return _report.decode(text(body))


def child_words_of(body: object) -> ChildWords:
    return _child.decode(text(body))


def words_of(body: object) -> Words:
    return _words.decode(text(body))


def strangers_words_of(body: object) -> StrangersWords:
    return _strangers_words.decode(text(body))


def choices_of(value: object) -> tuple[Choice, ...]:
    return () if value == "[]" else _choices.decode(text(value))


def file_of(value: object) -> OutFile:
    return _file.decode(text(value))


def literal_of(value: object) -> tuple[int, int] | None:
    return None if value is None else _literal.decode(text(value))


def settings_of(value: object) -> Settings:
    return Settings() if value == "{}" else _settings.decode(text(value))


def numbers_in(value: object) -> tuple[int, ...]:
    """The numbers of a list."""
    return _ids.decode(text(value))
