"""The text of a PDF or an office file: the file on standard input, JSON with `text` and `is_cut` on
standard output.

A program of its own, started for one file by `locked.py`. It imports nothing of koboshi.
"""

import io
import json
import re
import sys
import zipfile
from collections.abc import Iterator
from xml.etree import ElementTree

PART_BYTES_MAX = 50_000_000
WRITTEN = re.compile(r"word/(document|footnotes)\.xml|ppt/slides/slide\d+\.xml|content\.xml")
SHEETS = re.compile(r"xl/worksheets/sheet\d+\.xml")
SHARED = "xl/sharedStrings.xml"
BREAKS = ("p", "h", "br", "tr", "row", "si", "tab", "line-break", "table-row")
"""Elements that end a line, in either family of office files."""


def main() -> None:
    chars_max = int(json.loads(sys.argv[1])["chars_max"])
    source = sys.stdin.buffer.read()
    pieces = of_pdf(source) if source.startswith(b"%PDF-") else of_office(source)
    text = ""
    for piece in pieces:
        text += piece
        if len(text) > chars_max:
            break
    text = re.sub(r"\n{3,}", "\n\n", text.strip())
    said = {"text": text[:chars_max], "is_cut": len(text) > chars_max}
    sys.stdout.write(json.dumps(said))


def of_pdf(source: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(io.BytesIO(source))
    if reader.is_encrypted and not reader.decrypt(""):
        sys.exit("it is locked with a password")
    for page in reader.pages:
        yield page.extract_text() + "\n\n"


def of_office(source: bytes) -> Iterator[str]:
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        names = sorted(archive.namelist())
        for name in filter(WRITTEN.fullmatch, names):
            yield from words_in(tree_of(archive, name))
            yield "\n\n"
        shared = []
        if SHARED in names:
            shared = ["".join(words_in(each)).strip() for each in tree_of(archive, SHARED)]
        for name in filter(SHEETS.fullmatch, names):
            yield from cells_in(tree_of(archive, name), shared)


def tree_of(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    with archive.open(name) as part:
        content = part.read(PART_BYTES_MAX + 1)
    if len(content) > PART_BYTES_MAX:
        sys.exit(f"{name} in it is too large")
    return ElementTree.fromstring(content)


def cells_in(sheet: ElementTree.Element, shared: list[str]) -> Iterator[str]:
    """The cells of a table, line by line. Its texts stand elsewhere, by their numbers."""
    for row in sheet.iterfind(".//{*}row"):
        cells = []
        for cell in row.iterfind("{*}c"):
            value = cell.findtext("{*}v") or "".join(cell.itertext())
            is_shared = cell.get("t") == "s" and value.isdigit() and int(value) < len(shared)
            cells.append(shared[int(value)] if is_shared else value)
        yield "\t".join(cells) + "\n"
    yield "\n"


def words_in(element: ElementTree.Element) -> Iterator[str]:
    for each in element.iter():
        kind = each.tag.rpartition("}")[2]
        if kind in BREAKS:
            yield "\n"
        elif kind in ("c", "table-cell"):
            yield "\t"
        if each.text:
            yield each.text
        if each.tail and each.tail.strip():
            yield each.tail


if __name__ == "__main__":
    main()
