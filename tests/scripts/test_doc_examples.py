"""Every example of the README and the docs is run, or its page says why not.

A comment above an example marks what cannot run here: `<!-- not run: why -->` all of it,
`<!-- not run (pip install, sudo): why -->` the lines that begin so. Configurations are loaded by
`scripts/check_docs.py`; programs of other packages are run by the tests that are named here.
"""

import asyncio
import re
import shlex
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from scripts.check_docs import OURS
from tests.cli.knocking import strangers_knock
from tests.cli.process import Gateway, child_of, ended, environment, gateway, koboshi, until
from tests.harness.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BLOCK = re.compile(
    r"(?:^<!-- not run(?: \((?P<lines>[^)]*)\))?: (?P<why>[^>]*?) -->\n)?"
    r"^```(?P<kind>\w*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
LONG_MARK = "<!-- not run"
RUN_ELSEWHERE = {
    "writing-a-tool.md": "test_docs.py::test_the_example_of_a_plug_in_is_the_one_that_is_tested",
    "writing-a-channel.md": "test_docs.py::test_the_example_of_a_plug_in_is_the_one_that_is_tested",
    "writing-a-model.md": "test_doc_pages.py::test_the_example_of_a_model_works",
}
"""Pages with programs of other packages, and the test that runs them."""
GENERATED = "mermaid"
CODE = "K7WQ2MXA"
KILL = ["pkill", "-9", "-f", "koboshi run$"]
WHY_CHARS_MIN = 12


@dataclass(frozen=True, slots=True)
class Example:
    page: Path
    kind: str
    body: str
    why: str
    """Why it is not run, or some of its lines."""
    marked: tuple[str, ...]
    """How the lines begin that are not run; all of them if there is a reason and none is named."""

    @property
    def name(self) -> str:
        return f"{self.page.name}: {self.body.splitlines()[0][:40]}"

    @property
    def is_run(self) -> bool:
        return not self.why or bool(self.marked)

    def lines(self) -> list[list[str]]:
        """The commands to run, as words."""
        commands = [line for line in self.body.splitlines() if not line.startswith(self.marked)]
        return [words for line in commands if (words := shlex.split(line, comments=True))]


def examples() -> Iterator[Example]:
    for page in PAGES:
        for found in BLOCK.finditer(page.read_text(encoding="utf-8")):
            marked = tuple(filter(None, (found["lines"] or "").split(", ")))
            yield Example(page, found["kind"], found["body"], found["why"] or "", marked)


EXAMPLES = tuple(examples())
SHELL = [each for each in EXAMPLES if each.kind == "sh" and each.is_run]


def test_every_example_is_run_or_says_why_not() -> None:
    complaints = []
    for each in EXAMPLES:
        match each.kind:
            case "sh":
                is_accounted = True
            case "toml":
                found = tomllib.loads(each.body)
                is_accounted = bool({*found} & OURS) or each.page.name in RUN_ELSEWHERE
            case "python":
                is_accounted = each.page.name in RUN_ELSEWHERE
            case kind:
                is_accounted = kind == GENERATED or bool(each.why)
        if not is_accounted or (each.why and len(each.why) < WHY_CHARS_MIN):
            complaints.append(each.name)

    assert complaints == []
    for page in PAGES:
        marks = page.read_text(encoding="utf-8").count(LONG_MARK)
        assert marks == sum(1 for each in EXAMPLES if each.page == page and each.why), page.name
    for name in RUN_ELSEWHERE.values():
        file, _, test = name.partition("::")
        assert f"def {test}(" in (ROOT / "tests" / "scripts" / file).read_text()


def test_marked_lines_are_there() -> None:
    """A mark for a line that is gone would hide a later one."""
    gone = [
        f"{each.name}: {begin}"
        for each in EXAMPLES
        for begin in each.marked
        if not any(line.startswith(begin) for line in each.body.splitlines())
    ]

    assert gone == []


@dataclass(slots=True)
class Place:
    """Where examples run: a folder with a supervised gateway, a person who asks to be let in, and
    a backup, as the pages speak of them."""

    folder: Path
    gateways: list[Gateway]
    port: int

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str]:
        # Without the variables that the pages name: what is set is tried, at the provider.
        return {"KOBOSHI__CHANNELS__WEB__MAIN__PORT": str(self.port)}

    def start(self) -> None:
        one = Gateway(self.home, "--supervise", **self.variables)
        self.gateways.append(one)
        one.wait_serving()

    def run(self, words: list[str]) -> None:
        if words == KILL:
            self._kill()
            return
        assert Path(words[0]).name == "koboshi", f"{words[0]} is not run here: mark it"
        given = [self._filled(word) for word in words[1:]]
        if given == ["run"]:
            self.start()
            return
        # `init` writes a configuration; the gateway of the other examples goes on without it.
        home = self.folder / "new-home" if given[0] == "init" else self.home
        done = koboshi(*given, home=home, **self.variables)
        assert done.code == 0, f"{words}: {done.code}\n{done.out}\n{done.err}"
        assert done.out.strip(), f"{words} says nothing"

    def _filled(self, word: str) -> str:
        backup = str(self.folder / "backup.db")
        copies = {"FILE": backup, "backup.db": backup, "/mnt/disk/a.db": str(self.folder / "a.db")}
        return copies.get(word, word)

    def _kill(self) -> None:
        """As the example does, and no gateway but ours: the parent starts it again."""
        parent = self.gateways[-1]
        before = child_of(parent)
        ended(["kill", "-9", str(before)], environment())
        until(lambda: _other_child(parent, before), "the gateway is started again")

    def close(self) -> None:
        for each in self.gateways:
            each.stop() if each.process.poll() is None else None
            each.bury()


def _other_child(parent: Gateway, before: int) -> bool:
    status = koboshi("status", "--json", home=parent.home).document
    return bool(status["is_running"]) and status["worker"]["pid"] != before


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    folder = tmp_path_factory.mktemp("examples")
    made = Place(folder, [], free_port())
    made.home.mkdir(mode=0o700)
    with gateway(made.home) as first:
        first.wait_state(first.say("main", "echo hello"), "done")
    asyncio.run(strangers_knock(made.home, "123456789", given=[CODE]))
    made.start()
    backup = str(folder / "backup.db")
    assert koboshi("backup", "create", "--to", backup, home=made.home).code == 0
    yield made
    for each in koboshi("processes", "--json", home=made.home).document["processes"]:
        koboshi("processes", "kill", f"p{each['process']['process_id']}", home=made.home)
    made.close()


@pytest.mark.parametrize("example", SHELL, ids=lambda each: each.name)
def test_an_example_for_the_shell_works(place: Place, example: Example) -> None:
    """In the order of the pages, against one gateway."""
    lines = example.lines()
    assert lines, "a page says that it is run, and it has no command"
    for words in lines:
        place.run(words)
