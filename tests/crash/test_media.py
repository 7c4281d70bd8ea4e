"""Pictures, documents and voice messages: read once and shown to the model, also over a kill."""

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from anyio import Event, fail_after
from PIL import Image
from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

from koboshi.domain.phrases import no_spoken_ruling
from tests.crash.telling import checked
from tests.fakes.model_servers.server import Answer, ModelServer, as_json, serving
from tests.harness.home_file import number, numbers, opened
from tests.harness.http import connection
from tests.harness.lives import KILLED_BY_HAND
from tests.harness.modelled import Modelled, ask, modelled, run, words_in
from tests.harness.polling import WITHIN_S, until
from tests.harness.telegram import a_bot
from tests.models.forms import FORMS

pytestmark = pytest.mark.crash

OPENAI = next(form for form in FORMS if form.name == "openai")
SEES = {"KOBOSHI__MODEL__PICTURES": "yes"}
NOT_WORDS = "something else than words"
USED = """SELECT body ->> '$.seconds' FROM steps WHERE body ->> '$.model' = 'voice:whisper-1'"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def picture(width: int = 3_000, height: int = 2_000) -> bytes:
    made = io.BytesIO()
    Image.new("RGB", (width, height), (200, 30, 30)).save(made, "JPEG")
    return made.getvalue()


def pdf(words: str) -> bytes:
    writer = PdfWriter()
    page = writer.add_blank_page(300, 300)
    font = DictionaryObject(
        {
            NameObject("/Type"): NameObject("/Font"),
            NameObject("/Subtype"): NameObject("/Type1"),
            NameObject("/BaseFont"): NameObject("/Helvetica"),
        }
    )
    fonts = DictionaryObject({NameObject("/F1"): writer._add_object(font)})
    page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
    stream = DecodedStreamObject()
    stream.set_data(f"BT /F1 12 Tf 20 200 Td ({words}) Tj ET".encode())
    page[NameObject("/Contents")] = writer._add_object(stream)
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


async def send(
    it: Modelled, key: str, *files: tuple[str, bytes], text: str = "look", chat: str = ""
) -> None:
    """A message with files, as the page sends it."""
    path = f"/api/v1/sessions/{chat or it.person.chat}"
    address = await it.gateway.wait_ready()
    async with connection(address, it.gateway.token) as http:
        named = []
        for name, content in files:
            stored = await http.post(f"{path}/uploads", params={"name": name}, content=content)
            named.append({"file": stored.json()["file"], "name": name})
        said = await http.post(
            f"{path}/messages",
            json={"text": text, "files": named},
            headers={"Idempotency-Key": key},
        )
    assert said.status_code == 202, said.text


def pictures_in(body: dict[str, Any]) -> list[Image.Image]:
    found: list[Image.Image] = []
    for message in body["messages"]:
        for part in message["content"] if isinstance(message["content"], list) else []:
            if part["type"] == "image_url":
                content = part["image_url"]["url"].partition("base64,")[2]
                found.append(Image.open(io.BytesIO(base64.b64decode(content))))
    return found


async def test_a_picture_and_a_document_are_shown_once_and_the_same_after_a_kill(
    home: Path,
) -> None:
    async with modelled(home, OPENAI, **SEES) as it:
        words, begun = it.says("a red field, and a sentence"), Event()
        it.server.answers += [Answer(pieces=words.pieces[:-2], hangs_after=begun), words]
        await send(it, "1", ("red.jpg", picture()), ("note.pdf", pdf("The doll gets up again")))
        with fail_after(WITHIN_S):
            await begun.wait()
        await it.restart(KILLED_BY_HAND)
        await it.person.hears("a red field, and a sentence")
        rows = await checked(it.life)

    first, second = it.server.requests
    assert pictures_in(first.body)[0].size == (1_568, 1_045)
    assert "The doll gets up again" in words_in(first.body)
    told = [row["cause"].split(":")[0] for row in rows.of("steps", kind="note")]
    assert sorted(each for each in told if each in ("picture", "document")) == [
        "document",
        "picture",
    ]
    assert len(pictures_in(second.body)) == 1
    assert words_in(second.body).count("The doll gets up again") == 1


async def test_a_model_without_eyes_is_told_so_in_words(home: Path) -> None:
    async with modelled(home, OPENAI) as it:
        it.server.answers.append(it.says("I cannot see it"))
        await send(it, "1", ("red.jpg", picture(20, 20)))
        await it.person.hears("I cannot see it")

    assert pictures_in(it.server.last) == []
    assert "cannot be shown pictures" in words_in(it.server.last)


async def test_a_file_that_breaks_its_parser_is_told_once_and_stays(home: Path) -> None:
    broken = {"bad.png": b"\x89PNG\r\n\x1a\n" + b"\xff" * 500, "bad.pdf": b"%PDF-1.7 nonsense"}
    async with modelled(home, OPENAI, **SEES) as it:
        it.server.answers += [it.says("both are broken"), it.says("still here")]
        await send(it, "1", *broken.items())
        await it.person.hears("both are broken")
        await it.restart(KILLED_BY_HAND)
        await it.person.say("and now?", "2")
        await it.person.hears("still here")
        kept = [path.name for path in it.workdir.glob("received/**/*") if path.is_file()]

    shown = words_in(it.server.last)
    assert shown.count("could not be read") == 2
    assert all(any(name in each for each in kept) for name in broken)


@asynccontextmanager
async def speech_service(*answers: Answer) -> AsyncIterator[ModelServer]:
    async with serving(lambda _: None) as server:
        server.answers += answers
        yield server


def heard(text: str) -> Answer:
    return as_json({"text": text}, status=200)


@pytest.mark.parametrize(
    "answers, shown",
    [
        ([heard("buy some milk")], "buy some milk"),
        ([as_json({}, status=503), heard("buy some milk")], "buy some milk"),
        ([as_json({}, status=401)], "the service answered 401"),
        ([as_json(["what"], status=200)], NOT_WORDS),
        ([heard("  ")], "no words were heard"),
    ],
    ids=["well", "busy", "refused", "wrong", "silent"],
)
async def test_a_voice_message_is_written_down_or_it_is_said_why_not(
    home: Path, answers: list[Answer], shown: str
) -> None:
    async with speech_service(*answers) as service:
        settings = {"KOBOSHI__VOICE__URL": f"{service.url}/v1"}
        async with modelled(home, OPENAI, **settings) as it:
            it.server.answers.append(it.says("understood"))
            await send(it, "1", ("said.ogg", b"OggS" + bytes(200)), text="")
            await it.person.hears("understood")
            with opened(home) as connection:
                used = numbers(connection, USED)

    assert shown in words_in(it.server.last)
    assert used == [(1,)] * (answers[-1].status == 200 and shown != NOT_WORDS), "as `/usage` tells"
    assert service.requests[0].path == "/v1/audio/transcriptions"
    assert len(service.requests) == len(answers)


async def test_a_spoken_answer_answers_a_question_and_never_an_approval(home: Path) -> None:
    """Issue 21, also over a kill. To an approval it is neither a yes nor a no."""
    async with speech_service(heard("the red one")) as service:
        settings = {
            "KOBOSHI__VOICE__URL": f"{service.url}/v1",
            "KOBOSHI__TOOLS__TERMINAL__APPROVAL": "always",
        }
        async with modelled(home, OPENAI, **settings) as it:
            it.server.answers += [
                it.proposes(ask("Which one?", "red", "blue")),
                it.says("red it is"),
                it.proposes(run("echo ran >> lines")),
            ]
            await it.person.say("choose", "1")
            await it.person.hears("Which one?")
            await it.restart(KILLED_BY_HAND)
            await send(it, "2", ("said.ogg", b"OggS" + bytes(200)), text="")
            await it.person.hears("red it is")
            first = words_in(it.server.last)
            await it.person.say("run it", "3")
            await until(lambda: asked_for(home) == 1, "the approval", otherwise=it.person.told)
            await send(it, "4", ("yes.ogg", b"OggS" + bytes(300)), text="")
            await it.person.hears(no_spoken_ruling())
            ran = it.lines()

    assert "the red one" in first
    assert ran == []
    assert len(service.requests) == 1


def asked_for(home: Path) -> int:
    with opened(home) as connection:
        return number(connection, "SELECT count(*) FROM calls WHERE need = 'approval'")


async def test_files_sent_while_the_gateway_is_down_are_each_read_once_over_a_kill(
    home: Path,
) -> None:
    """Issue 21, must show. The service of speech hangs in the first life; only the note counts."""
    begun = Event()
    hangs = Answer(pieces=(b"{",), hangs_after=begun)
    async with speech_service(hangs, heard("buy some milk")) as service:
        settings = {"KOBOSHI__VOICE__URL": f"{service.url}/v1", **SEES}
        async with a_bot(home, env=settings) as bot:
            bot.say("echo seen", photo=picture(40, 30))
            bot.say("echo heard", voice=b"OggS" + bytes(200))
            bot.say("echo read", document=pdf("The doll gets up again"))
            bot.start()
            with fail_after(WITHIN_S):
                await begun.wait()
            bot.restart()
            rows = await bot.comes_to_rest()
            said = " ".join(bot.said())

    told = [row["body"] for row in rows.of("steps", kind="note")]
    for words in ("40×30", "buy some milk", "The doll gets up again"):
        assert len([body for body in told if words in body]) == 1, told
    assert len(service.requests) == 2
    assert [said.count(each) for each in ("seen", "heard", "read")] == [1, 1, 1]


async def test_voice_messages_are_paid_from_the_budget_and_wait_when_it_is_spent(
    home: Path,
) -> None:
    """Issue 21: the intent of a transcription reserves its estimate, like every billed call."""
    minute = b"OggS" + bytes(119_996)
    async with speech_service(heard("buy some milk"), heard("never asked for")) as service:
        settings = {
            "KOBOSHI__VOICE__URL": f"{service.url}/v1",
            "KOBOSHI__BUDGET__UNIT": "tokens",
            "KOBOSHI__BUDGET__DAY": "900",
        }
        async with modelled(home, OPENAI, **settings) as it:
            await send(it, "1", ("one.ogg", minute), text="")
            await until(lambda: held(home) == 1, "the turn waits", otherwise=it.person.told)
            await it.restart(KILLED_BY_HAND)
            await send(it, "2", ("two.ogg", minute), text="", chat="another")
            await until(lambda: held(home) == 2, "the other waits", otherwise=it.person.told)
            with opened(home) as connection:
                assert numbers(connection, "SELECT used, reserved FROM purses") == [(1_000, 0)]

    assert len(service.requests) == 1, "the second recording is not sent anywhere"
    assert not it.server.requests


def held(home: Path) -> int:
    with opened(home) as connection:
        return number(connection, "SELECT count(*) FROM turns WHERE reason LIKE 'budget: %'")
