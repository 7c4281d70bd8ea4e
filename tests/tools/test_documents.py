"""The text of office files, read by a parser that is locked in."""

import io
import json
import resource
import struct
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from koboshi.app.builders.parsers import parsers_of
from koboshi.config import Config
from koboshi.ports.parsers import NotParsed, ParserKind

WORD = '<w:d xmlns:w="w"><w:body><w:p><w:r><w:t>Dear Ann,</w:t></w:r></w:p></w:body></w:d>'
SHEET = '<w xmlns="m"><row><c t="s"><v>0</v></c><c><v>7</v></c></row></w>'
STRINGS = '<sst xmlns="m"><si><t>dolls</t></si></sst>'
OPEN = '<d xmlns:text="t"><text:p>An open letter</text:p></d>'


def zipped(**parts: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name.replace("__", "/") + ".xml", text)
    return made.getvalue()


@pytest.mark.parametrize(
    "source, words",
    [
        (zipped(word__document=WORD), "Dear Ann,"),
        (zipped(xl__sharedStrings=STRINGS, xl__worksheets__sheet1=SHEET), "dolls\t7"),
        (zipped(content=OPEN), "An open letter"),
    ],
    ids=["docx", "xlsx", "odt"],
)
async def test_office_files_are_read_as_text(tmp_path: Path, source: bytes, words: str) -> None:
    parsers = parsers_of(Config(home=tmp_path / "home"), {"PATH": "/usr/bin:/bin"})
    read = await parsers.parse(ParserKind.DOCUMENT, source, {"chars_max": 1_000})

    assert words in json.loads(read)["text"]


async def test_a_file_that_unpacks_to_too_much_is_not_read(tmp_path: Path) -> None:
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", bytes(60_000_000))
    parsers = parsers_of(Config(home=tmp_path / "home"), {"PATH": "/usr/bin:/bin"})

    with pytest.raises(NotParsed, match="too large"):
        await parsers.parse(ParserKind.DOCUMENT, bomb.getvalue(), {"chars_max": 1_000})


def png(width: int, height: int) -> bytes:
    """A picture that is small on the disk and claims to be large."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        whole = kind + content
        return struct.pack(">I", len(content)) + whole + struct.pack(">I", zlib.crc32(whole))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(bytes(10_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def pdf_of(*objects: bytes) -> bytes:
    """The objects of a PDF without its table; readers mend that."""
    return b"%PDF-1.7\n" + b"\n".join(objects) + b"\ntrailer << /Root 1 0 R >>\n%%EOF\n"


LAUGHS = "".join(
    f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' if n else '<!ENTITY a0 "ha">' for n in range(12)
)
PACKED = zlib.compress(zlib.compress(b"BT (x) Tj ET " * 4_000_000, 1), 1)
BOMBS: dict[str, tuple[ParserKind, Callable[[], bytes]]] = {
    "a picture of 3.6 gigapixels": (ParserKind.PICTURE, lambda: png(60_000, 60_000)),
    "a picture that breaks off": (ParserKind.PICTURE, lambda: png(7_000, 7_000)[:2_000]),
    "a billion laughs": (
        ParserKind.DOCUMENT,
        lambda: zipped(word__document=f"<!DOCTYPE d [{LAUGHS}]><d><p>&a11;</p></d>"),
    ),
    "pages that are their own parents": (
        ParserKind.DOCUMENT,
        lambda: pdf_of(
            b"1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj",
            b"2 0 obj << /Type /Pages /Kids [2 0 R 2 0 R] /Count 2 >> endobj",
        ),
    ),
    "packed twice": (
        ParserKind.DOCUMENT,
        lambda: pdf_of(
            b"1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj",
            b"2 0 obj << /Type /Pages /Kids [3 0 R] /Count 1 >> endobj",
            b"3 0 obj << /Type /Page /Parent 2 0 R /Contents 4 0 R /MediaBox [0 0 9 9] >> endobj",
            b"4 0 obj << /Filter [/FlateDecode /FlateDecode] /Length %d >> stream\n" % len(PACKED)
            + PACKED
            + b"\nendstream endobj",
        ),
    ),
}


@pytest.mark.parametrize("name", BOMBS)
async def test_a_bomb_is_told_in_words_or_read_within_the_limits(tmp_path: Path, name: str) -> None:
    """Its parser dies alone; the memory of this process does not grow by what it unpacks to."""
    kind, make = BOMBS[name]
    made = parsers_of(Config(home=tmp_path / "home"), {"PATH": "/usr/bin:/bin"})
    parsers = replace(made, limits=replace(made.limits, seconds_max=20.0))
    source = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        said = await parsers.parse(kind, source, {"chars_max": 1_000, "side_max": 100})
    except NotParsed as error:
        said = str(error).encode()
    assert len(said) < 20_000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
