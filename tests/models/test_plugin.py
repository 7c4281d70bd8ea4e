"""A model of another distribution: loaded at the first request, and never believed blindly."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from anyio import create_task_group, sleep
from structlog.testing import capture_logs

from koboshi.domain.ids import SessionId, TurnId
from koboshi.models.limits import ModelLimits
from koboshi.models.plugin import PluginModel
from koboshi.plugin import CallRequest, ModelBusy, ModelRefused, ModelReply, ModelSetting, Request
from koboshi.ports.plugin import Plugin

REQUEST = Request(session_id=SessionId(1), turn_id=TurnId(1), system="", steps=(), tools=())
SETTING = ModelSetting(model="grey", api_key="secret")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """A traceback takes long to be drawn."""
    with capture_logs():
        yield


@dataclass
class Parrot:
    reply: Callable[[], Any] = lambda: ModelReply(text="hello")
    closed: list[str] = field(default_factory=list)

    async def respond(self, request: Request) -> Any:
        return self.reply()

    async def aclose(self) -> None:
        self.closed.append("closed")


def raises(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object) -> object:
        raise error

    return fail


def opened(load: Callable[[], Any], **limits: Any) -> PluginModel:
    plugin = Plugin(name="parrot", distribution="parrots 3", load=load)
    return PluginModel(plugin, SETTING, ModelLimits(**limits))


async def test_it_is_made_once_and_with_its_setting_when_it_is_first_asked() -> None:
    made: list[ModelSetting] = []

    def make(setting: ModelSetting) -> Parrot:
        made.append(setting)
        return Parrot()

    model = opened(lambda: make)
    assert made == []
    async with create_task_group() as tasks:
        for _ in range(3):
            tasks.start_soon(model.respond, REQUEST)

    assert made == [SETTING]
    assert "secret" not in repr(SETTING)
    reply = await model.respond(REQUEST)
    assert (reply.text, reply.model, reply.is_cut) == ("hello", "parrot:grey", False)


@pytest.mark.parametrize(
    "load",
    [
        raises(ImportError("no feathers")),
        raises(SystemExit(1)),
        lambda: raises(ValueError("no feathers")),
        lambda: 5,
        lambda: lambda _: "not a model",
    ],
)
async def test_one_that_cannot_be_loaded_refuses_and_says_whose_it_is(
    load: Callable[[], Any],
) -> None:
    with pytest.raises(ModelRefused, match=r"plug-in parrot \(parrots 3\).*could not be loaded"):
        await opened(load).respond(REQUEST)


@pytest.mark.parametrize(
    "reply",
    [
        raises(RuntimeError("fell off the perch")),
        raises(SystemExit(1)),
        lambda: "hello",
        lambda: ModelReply(text=5),  # type: ignore[arg-type]
        lambda: ModelReply(text="x" * 200),
        lambda: ModelReply(text="", calls=("pause",)),  # type: ignore[arg-type]
        lambda: ModelReply(
            text="", calls=(CallRequest(provider_id="", tool="pause", arguments="[1]"),)
        ),
        lambda: ModelReply(
            text="", calls=(CallRequest(provider_id="", tool="pause", arguments='{"a"'),)
        ),
    ],
)
async def test_what_is_no_reply_is_refused(reply: Callable[[], Any]) -> None:
    model = opened(lambda: lambda _: Parrot(reply), reply_chars_max=100)

    with pytest.raises(ModelRefused, match="it broke while it was asked"):
        await model.respond(REQUEST)


@pytest.mark.parametrize("error", [ModelBusy("later", 5), ModelRefused("never")])
async def test_its_own_errors_are_told_as_they_are(error: Exception) -> None:
    with pytest.raises(type(error)) as told:
        await opened(lambda: lambda _: Parrot(raises(error))).respond(REQUEST)

    assert told.value is error


async def test_one_that_does_not_answer_is_busy() -> None:
    class Sleeper(Parrot):
        async def respond(self, request: Request) -> Any:
            await sleep(60)

    with pytest.raises(ModelBusy, match="did not finish its reply"):
        await opened(lambda: lambda _: Sleeper(), total_s=0.01).respond(REQUEST)


async def test_it_is_closed_if_it_was_made() -> None:
    parrot = Parrot()
    unused, used = opened(raises(AssertionError("made"))), opened(lambda: lambda _: parrot)
    await used.respond(REQUEST)
    await unused.aclose()
    await used.aclose()

    assert parrot.closed == ["closed"]
