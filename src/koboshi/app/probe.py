"""Trying the model that a configuration names, before anything depends on it: one call."""

from anyio import fail_after

from koboshi.app.boot_config import opened_model
from koboshi.app.platforms.platform import ProbeFailed
from koboshi.config import Config
from koboshi.domain.errors import ModelBusy, ModelRefused, Unusable
from koboshi.domain.ids import EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.transcript import Message, Step
from koboshi.ports.model import Request

MODEL_SECONDS = 60.0


def complaint_about_model(name: str) -> str:
    """Why there can be no model of that name; empty if there can."""
    from koboshi.app.plugins import MODELS, find_plugins
    from koboshi.models.provider import is_ours, read_name, unknown_provider

    if name.partition(":")[0] == "scripted":
        return ""
    try:
        prefix, _ = read_name(name)
        installed = [plugin.name for plugin in find_plugins(MODELS)]
        if not is_ours(prefix) and prefix not in installed:
            raise unknown_provider(name, installed)
    except Unusable as error:
        return str(error)
    return ""


async def try_model(config: Config) -> str:
    """The first words of a reply to a tiny request. Raises ProbeFailed."""
    try:
        with fail_after(MODEL_SECONDS):
            async with opened_model(config) as model:
                reply = await model.respond(_tiny_request())
    except TimeoutError as error:
        raise ProbeFailed(f"there was no reply within {MODEL_SECONDS:g} s") from error
    except (ModelBusy, ModelRefused) as error:
        raise ProbeFailed(str(error), status=error.status) from error
    except Unusable as error:
        raise ProbeFailed(str(error)) from error
    return reply.text.strip()[:80]


def _tiny_request() -> Request:
    words = Message(text="Say: ok", sender="init", entry_id=EntryId(0), sent_ms=0)
    step = Step(seq=Seq(1), turn_id=TurnId(1), epoch=Epoch(1), at_ms=0, body=words)
    return Request(
        session_id=SessionId(1),
        turn_id=TurnId(1),
        system="Answer with one word.",
        steps=(step,),
        tools=(),
    )
