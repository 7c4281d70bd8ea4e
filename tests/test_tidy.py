"""The house rules that a linter does not know. Every failure names a file, a line and the rule."""

import ast
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "koboshi"

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50

# Words that say nothing about what a thing is (STYLE.md, 1).
BANNED_WORDS = frozenset(
    "manager managers helper helpers util utils handler handlers "
    "data info flag flags pending".split()
)
# Names a library makes us define. Add one only with the library's name beside it.
NAMES_GIVEN_BY_LIBRARIES: frozenset[str] = frozenset({"data_received"})


# Subjects that name no thing, as words and within names (STYLE.md, 4). A whole text in quotes is a
# stored value, and capitals are a constant's name.
VAGUE_SUBJECT = re.compile(
    r"(?<![A-Za-z\"'])(?:[Ww]hoever|[Ss]omebody|[Nn]obody|[Aa]nybody|[Ee]verybody)"
    r"(?![A-Za-z\"]|'(?!s\b))"
)
TWO_WORDS = re.compile(r"\b[Cc]an not\b")
# Phrases that no person says (issue 19, point 1), over everything that people read.
# A phrase may go on in the next line. The lists are split so that they do not find themselves.
STILTED = tuple(
    phrase.replace("|", " ")
    for phrase in (
        *("what is|owed", "speaks|against", "given up with a|word", "chat begins|so"),
        *("code reads|so", "is|mended", "list it no|more", "dies again and|again", "for want|of"),
        *("left in|peace", "leave the key|away", "turns that died|twice"),
    )
)
STILTED_FORMS = re.compile(
    r"let (?:\w+ )?in no[ ]more|can[ ]rule\b|answers as[ ]no\b|was dropped:[ ]cut\b"
    r"|running \d+ (?:s|min)[ ]ago"
)
COMMENT_MARKS = frozenset({"#", "//", "--", "*"})
PROSE = ("src", "docs", "scripts", "benchmarks", "deploy", "changes", "tests")
PROSE_KINDS = frozenset({".py", ".sql", ".js", ".css", ".html", ".md", ".toml", ".yaml", ".sh"})

# The supervised edges (STYLE.md, 6): each logs the traceback and changes durable state.
MAY_CATCH_EVERYTHING = frozenset(
    {
        "src/koboshi/runtime/intake.py",  # a channel's task
        "src/koboshi/runtime/turn.py",  # a turn
        "src/koboshi/runtime/calls.py",  # a tool call
        "src/koboshi/runtime/goals.py",  # a judge
        "src/koboshi/runtime/deliver.py",  # a send
        "src/koboshi/runtime/progress.py",  # what is only shown; nothing durable depends on it
        "src/koboshi/runtime/drafts.py",  # likewise
        "src/koboshi/runtime/attachments.py",  # the file of a person
        "src/koboshi/channels/common/called.py",  # a call of the platform: it brings it again
        "src/koboshi/channels/matrix/encryption.py",  # keys of strangers, opened by foreign code
        "src/koboshi/app/platforms/foreign.py",  # code of another distribution: its channel is down
        "src/koboshi/control/socket.py",  # a request of the command line
        "src/koboshi/stores/batch_writer.py",  # the thread that hands errors to who waits
        "src/koboshi/stores/reader_threads.py",  # likewise
        "src/koboshi/stores/sqlite/writer.py",  # likewise, for an operation of a batch
        "src/koboshi/stores/postgres/rounds.py",  # likewise, for an operation of a batch
        "src/koboshi/tools/mcp/server.py",  # the connection to a tool server
        "src/koboshi/tools/plugins.py",  # loading foreign tools
        "src/koboshi/tools/guarded.py",  # a foreign tool
        "src/koboshi/models/plugin.py",  # a foreign model
        "src/koboshi/dashboard/app.py",  # a dashboard request
    }
)

# Where the real clock is read; all other code is handed a Clock or a `now`.
MAY_READ_THE_CLOCK = (
    "src/koboshi/clock.py",
    "src/koboshi/runner/",
    "src/koboshi/cli/update/launcher.py",  # belongs to no version, so it imports nothing of ours
    "src/koboshi/models/chat/failures.py",  # a provider may name a date to come back at
)
CLOCK_READERS = frozenset(
    "time.time time.time_ns time.monotonic time.monotonic_ns time.perf_counter "
    "time.perf_counter_ns time.localtime time.gmtime datetime.now datetime.utcnow datetime.today "
    "datetime.datetime.now datetime.datetime.utcnow datetime.datetime.today "
    "date.today datetime.date.today".split()
)

# These make statements from those in the .sql files of the kernel.
MAY_WRITE_SQL = frozenset(
    {
        "src/koboshi/app/moving_in/openclaw.py",  # reads the database of another program
        "src/koboshi/app/moving_in/talks.py",  # likewise
        "src/koboshi/stores/moving/table_rows.py",
        "src/koboshi/stores/postgres/changes.py",
        "src/koboshi/stores/postgres/schema.py",
        "src/koboshi/stores/postgres/translate.py",
    }
)

# Statements belong in .sql files; connection housekeeping may stand in a store.
SQL = re.compile(
    r"\s*(?:(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP|REPLACE)\s+\S"
    r"|(?i:select\s.+\sfrom\s|insert\s+(?:or\s+\w+\s+)?into\s|update\s+\S+\s+set\s|delete\s+from\s"
    r"|(?:create|alter|drop)\s+(?:\w+\s+)?(?:table|index|view|trigger)\s))",
    re.DOTALL,
)
SQL_OF_A_CONNECTION = re.compile(r"\s*(?:PRAGMA|ATTACH|SAVEPOINT|VACUUM)\s")

DATABASE_WORD = re.compile(r"(?:^|[^a-z])(?:db|database)(?:[^a-z]|$)")
FILE_CALLS = frozenset("open read_text read_bytes write_text write_bytes".split())

LEFTOVER = re.compile(r"\b(?:TO[D]O|FIX[M]E|X[X]X)\b")
MACHINE_PATH = re.compile(r"(?<![\w.~-])/(?:work|root|home)/")
REGISTRY_HOST = re.compile(r"\b(?:pypi|debian|npmjs|pythonhosted)[.](?:org|com)\b")
CHANGE_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*[.](?:added|changed|fixed)[.]md")
NOT_OURS = re.compile(
    r"[.]git|[.]venv.*|[.]npm-neighbours.*|[.]bench|[.].*_cache|[.]hypothesis|[.]coverage.*|__pycache__"
    r"|htmlcov|build|dist"
)

# What the conformance suite may not know: it runs on any store.
OF_ONE_STORE = re.compile(r"apsw|psycopg|sqlite3|koboshi[.](?:stores|kernel)(?:[.]|$)")

PARSES_MARKUP = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document[.]write|DOMParser|createContextualFragment"
    r"|\beval\(|new Function|setAttribute[(]\"style"
)
LOADS = re.compile(r"(?:src|href|import|from|url)\s*[=(]?\s*[\"']?(?:https?:)?//")

# Words of the code that a stranger must be able to look up.
GLOSSARY_WORDS = (
    "answer call channel claim cut delivery drain effect epoch facts generation hint inbox note "
    "process question release report route rule runner session step tail transcript turn unowned "
    "verdict watcher worker"
).split()


def test_files_are_short() -> None:
    complain(
        f"{name(path)}:{lines}: {lines} lines; a file has at most {FILE_LINES_MAX}"
        for path in modules()
        if (lines := len(text(path).splitlines())) > FILE_LINES_MAX
    )


def test_files_of_the_page_are_short() -> None:
    complain(
        f"{name(path)}:{lines}: {lines} lines; a file has at most {FILE_LINES_MAX}"
        for path in page_files()
        if (lines := len(text(path).splitlines())) > FILE_LINES_MAX
    )


def test_the_page_never_parses_words_as_markup() -> None:
    complain(
        f"{name(path)}:{number}: makes markup of words; use h() of dom.js: {line.strip()}"
        for path in page_files()
        for number, line in numbered_lines(path)
        if PARSES_MARKUP.search(line)
    )


def test_the_page_loads_nothing_from_elsewhere() -> None:
    complain(
        f"{name(path)}:{number}: {line.strip()[:100]}"
        for path in page_files()
        for number, line in numbered_lines(path)
        if LOADS.search(line)
    )


def test_functions_are_short() -> None:
    complain(
        f"{at(path, node)}: {node.name}() has {lines} lines; at most {FUNCTION_LINES_MAX}"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := body_lines(node)) > FUNCTION_LINES_MAX
    )


def test_names_use_no_empty_words() -> None:
    complain(
        f"{place}: the name {defined!r} holds the banned word {word!r}"
        for path in modules()
        for place, defined in names_defined(path)
        if defined not in NAMES_GIVEN_BY_LIBRARIES
        for word in words(defined)
        if word in BANNED_WORDS
    )


def test_a_class_has_a_name_of_its_own() -> None:
    """Issue 14, point 6: a reader who finds a name has found the thing."""
    found: dict[str, list[str]] = {}
    for path in modules():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, []).append(at(path, node))
    complain(
        f"{places[1]}: {each} is also at {places[0]}; a class has a name of its own"
        for each, places in found.items()
        if len(places) > 1
    )


def test_no_test_imports_another_test() -> None:
    """Issue 14, point 7: what two tests share is in tests/harness, or in a file of their folder."""
    complain(
        f"{at(path, node)}: imports {module}; move what is shared to tests/harness"
        for path in files_of_tests()
        for node, module in imported(path)
        if any(part.startswith("test_") for part in module.split("."))
    )


def test_the_conformance_suite_knows_no_store() -> None:
    """Issue 14, point 7: a second store runs it without a change."""
    complain(
        f"{at(path, node)}: imports {module}; use home.rows() or home.sql(), or tests/sqlite"
        for path in files_of_tests()
        if path.parent.name == "conformance"
        for node, module in imported(path)
        if OF_ONE_STORE.match(module) or module.endswith(".SqliteBackend")
    )


def test_files_of_the_harness_are_short() -> None:
    complain(
        f"{name(path)}:{lines}: {lines} lines; a file has at most {FILE_LINES_MAX}"
        for path in files_of_tests()
        if path.parent.name == "harness"
        if (lines := len(text(path).splitlines())) > FILE_LINES_MAX
    )


def test_prose_names_the_thing() -> None:
    """Issue 14, point 6: the subject of a sentence is a thing of the glossary."""
    complain(
        f"{name(path)}:{number}: {why}: {line.strip()[:100]}"
        for path in prose_files()
        for number, line in numbered_lines(path)
        if (why := what_is_vague(line))
    )


def test_prose_is_said_as_a_person_would() -> None:
    """Issue 19, point 1: the phrases that must go, also where a line ends within one."""
    complain(
        f"{name(path)}: say it as a person would: {phrase!r}"
        for path in prose_files()
        for phrase in what_is_stilted(text(path))
    )


def test_vague_prose_is_found() -> None:
    vague = (
        "Who" + "ever asks waits.",
        "it can " + "not be read",
        "def let_no" + "body_in():",
        "it is no" + "body's command",
    )
    assert all(map(what_is_vague, vague))
    assert not any(map(what_is_vague, ("need = 'no" + "body'", "Need.NO" + "BODY", "it cannot")))


def test_stilted_prose_is_found() -> None:
    stilted = (
        "nothing speaks " + "against it",
        "Give up what is " + "owed",
        "What is " + "owed to people",
        "# it was given up\n# with a " + "word",
        "No chat begins " + "so.",
        "no code reads " + "so",
        "the gateway dies again and " + "again while it works",
        "running 6 s " + "ago",
        "m56 was dropped: " + "cut",
        "they are let in no " + "more.",
    )
    assert all(map(what_is_stilted, stilted))
    assert not what_is_stilted("it was dropped: cutting it short")


def what_is_stilted(prose: str) -> list[str]:
    """The phrases in it, also where a line ends within one."""
    flat = " ".join(each for each in prose.lower().split() if each not in COMMENT_MARKS)
    formed = STILTED_FORMS.search(flat)
    return [phrase for phrase in STILTED if phrase in flat] + ([formed[0]] if formed else [])


def what_is_vague(line: str) -> str:
    if VAGUE_SUBJECT.search(line):
        return "name the thing: a worker, a caller, the operator, a person"
    return "write it as one word" if TWO_WORDS.search(line) else ""


def test_sql_lives_in_sql_files() -> None:
    complain(
        f"{at(path, node)}: SQL in Python; give it a name in queries.sql"
        for path in modules()
        if name(path) not in MAY_WRITE_SQL
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if SQL.match(node.value)
        or (SQL_OF_A_CONNECTION.match(node.value) and PACKAGE / "stores" not in path.parents)
    )


def test_nothing_is_left_for_later() -> None:
    complain(
        f"{name(path)}:{number}: finish it or file it: {line.strip()}"
        for path in committed_files()
        if path.suffix in {".py", ".sql", ".sh", ".toml"}
        for number, line in numbered_lines(path)
        if LEFTOVER.search(line)
    )


def test_everything_is_caught_only_at_the_supervised_edges() -> None:
    complain(
        f"{at(path, node)}: catches everything; only the files in MAY_CATCH_EVERYTHING may"
        for path in modules()
        if name(path) not in MAY_CATCH_EVERYTHING
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ExceptHandler) and catches_everything(node)
    )


def test_only_the_clock_reads_the_time() -> None:
    complain(
        f"{place}: reads {reader}; take a Clock or a `now` instead"
        for path in modules()
        if not name(path).startswith(MAY_READ_THE_CLOCK)
        for place, reader in clock_readings(path)
    )


def test_the_database_file_is_opened_only_by_the_database_library() -> None:
    """Closing any other descriptor of the file would drop SQLite's own locks on it."""
    complain(
        f"{at(path, node)}: {ast.unparse(node)} touches the database file behind SQLite's back"
        for path in modules()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Call) and opens_a_file(node)
        if DATABASE_WORD.search(ast.unparse(node).lower())
    )


def test_the_glossary_explains_our_words() -> None:
    glossary = text(ROOT / "GLOSSARY.md")
    complain(
        f"GLOSSARY.md:1: no entry for **{word}**"
        for word in GLOSSARY_WORDS
        if f"**{word}**" not in glossary
    )


def test_no_file_names_a_path_of_one_machine() -> None:
    complain(
        f"{name(path)}:{number}: a path of one machine: {line.strip()[:100]}"
        for path in committed_files()
        for number, line in numbered_lines(path)
        if MACHINE_PATH.search(line)
    )


def test_no_file_names_a_registry_host() -> None:
    complain(
        f"{name(path)}:{number}: a registry's address: {line.strip()[:100]}"
        for path in committed_files()
        for number, line in numbered_lines(path)
        if REGISTRY_HOST.search(line)
    )


def test_requirements_are_pinned_hashed_and_name_no_index() -> None:
    complain(
        f"{name(path)}:{number}: neither a pinned requirement nor a hash: {line}"
        for path in sorted((ROOT / "requirements").glob("*.txt"))
        for number, line in numbered_lines(path)
        if not re.match(r"\S+==\S+ .*\\$|    --hash=sha256:|    # via ", line)
    )


def test_change_notes_are_well_named() -> None:
    complain(
        f"{name(path)}:1: call it <topic>.<added|changed|fixed>.md and say something in it"
        for path in sorted((ROOT / "changes").glob("*"))
        if path.name != "README.md"
        if not CHANGE_NAME.fullmatch(path.name) or not text(path).strip()
    )


def complain(offences: Iterator[str]) -> None:
    found = list(offences)
    assert not found, "\n" + "\n".join(found)


@cache
def modules() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


@cache
def files_of_tests() -> tuple[Path, ...]:
    return tuple(sorted((ROOT / "tests").rglob("*.py")))


def imported(path: Path) -> Iterator[tuple[ast.stmt, str]]:
    """Yield what a file imports, as dotted names."""
    for node in ast.walk(tree(path)):
        match node:
            case ast.Import():
                yield from ((node, alias.name) for alias in node.names)
            case ast.ImportFrom():
                yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
            case _:
                pass


@cache
def page_files() -> tuple[Path, ...]:
    """Without the font, which is no text."""
    found = (PACKAGE / "dashboard" / "static").iterdir()
    return tuple(sorted(path for path in found if path.suffix != ".woff2"))


def prose_files() -> Iterator[Path]:
    """All that people read in the tree."""
    for path in committed_files():
        first = path.relative_to(ROOT).parts[0]
        if path.suffix in PROSE_KINDS and (first in PROSE or path.parent == ROOT):
            yield path


@cache
def committed_files() -> tuple[Path, ...]:
    """Every text file of the tree, found without git: a source archive is checked as well."""
    found: list[Path] = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [each for each in folders if not NOT_OURS.fullmatch(each)]
        found += [Path(folder, each) for each in files if not NOT_OURS.fullmatch(each)]
    return tuple(sorted(path for path in found if is_text(path)))


def is_text(path: Path) -> bool:
    with path.open("rb") as file:
        return b"\0" not in file.read(4096)


@cache
def text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(text(path), str(path))


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    return enumerate(text(path).splitlines(), start=1)


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def at(path: Path, node: ast.expr | ast.stmt | ast.arg | ast.excepthandler) -> str:
    return f"{name(path)}:{node.lineno}"


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines from `def` to the end, without the docstring."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function) is not None:
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return lines


def names_defined(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the names of the module, its classes, functions, parameters and fields."""
    yield f"{name(path)}:1", path.parent.name if path.stem == "__init__" else path.stem
    for node in ast.walk(tree(path)):
        match node:
            case ast.ClassDef():
                yield at(path, node), node.name
                for field in node.body:
                    if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                        yield at(path, field), field.target.id
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield at(path, node), node.name
            case ast.arg():
                yield at(path, node), node.arg
            case _:
                pass


def words(identifier: str) -> list[str]:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier)
    return snake.lower().split("_")


def catches_everything(clause: ast.ExceptHandler) -> bool:
    if clause.type is None:
        return True
    caught = clause.type.elts if isinstance(clause.type, ast.Tuple) else [clause.type]
    return any(ast.unparse(each) in {"Exception", "BaseException"} for each in caught)


def clock_readings(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in CLOCK_READERS:
            yield at(path, node), ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            for alias in node.names:
                if f"time.{alias.name}" in CLOCK_READERS:
                    yield at(path, node), f"time.{alias.name}"


def opens_a_file(call: ast.Call) -> bool:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr in FILE_CALLS
    return isinstance(function, ast.Name) and function.id == "open"
