"""The pages are true: links, examples, commands, metrics."""

import re
from pathlib import Path
from types import ModuleType

import pytest

from koboshi.cli.doctor import checks as doctor_checks
from koboshi.cli.doctor import more_checks as doctor_more
from koboshi.domain.ids import EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.transcript import Message, Step
from koboshi.plugin import ModelSetting, Request
from scripts import check_docs

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_pages_are_in_order() -> None:
    assert list(check_docs.problems()) == []


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("[a](nowhere.md)", "there is no nowhere.md"),
        ("# A\n[a](#b)", "has no #b"),
        ("```python\nif\n```\n", "an example of python cannot be read"),
        ("```toml\na = \n```\n", "an example of toml cannot be read"),
        ("```sh\nif true; then\n```\n", "an example of sh cannot be read"),
        ("```sh\nkoboshi outbox sell\n```\n", "there is no `koboshi outbox sell`"),
        ("run `koboshi dance` now", "there is no `koboshi dance`"),
        ("```sh\nkoboshi outbox list --opn\n```\n", "no `koboshi outbox list --opn`"),
        ("say `koboshi backup create --two x`", "no `koboshi backup create --two`"),
        ("```toml\n[gateway]\nbusi = 1\n```\n", "gateway.busi"),
    ],
)
def test_what_is_wrong_with_a_page_is_found(
    text: str, complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr(check_docs, "PAGES", (page,))
    monkeypatch.setattr(check_docs, "ROOT", tmp_path)

    (found,) = check_docs.problems()
    assert complaint in found


async def test_the_example_of_a_model_works() -> None:
    page = (ROOT / "docs" / "writing-a-model.md").read_text()
    (example,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    module = ModuleType("koboshi_parrot")
    exec(example, module.__dict__)
    parrot = module.open_parrot(ModelSetting(model="grey", base_url="", api_key=None))
    words = Message(text="hello", sender="ann", entry_id=EntryId(1), sent_ms=0)
    step = Step(seq=Seq(1), turn_id=TurnId(1), epoch=Epoch(1), at_ms=0, body=words)
    request = Request(
        session_id=SessionId(1), turn_id=TurnId(1), system="", steps=(step,), tools=()
    )

    assert (await parrot.respond(request)).text == "hello"


def test_every_page_is_found_from_the_first() -> None:
    docs = ROOT / "docs"
    linked = set(re.findall(r"\]\(([\w-]+\.md)", (docs / "README.md").read_text()))

    assert linked >= {page.name for page in docs.glob("*.md")} - {"README.md", "proof.md"}


def test_every_check_of_the_doctor_is_explained() -> None:
    page = (ROOT / "docs" / "running-as-a-service.md").read_text()
    explained = {
        name
        for row in re.findall(r"^\| (`[^|]+) \| [^|]+ \|$", page, re.M)
        for name in re.findall(r"`([^`]+)`", row)
    }

    assert explained >= {*doctor_checks.CHECKS, *doctor_more.CHECKS}
