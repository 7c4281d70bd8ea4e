"""Trying what a configuration names, before anybody depends on it: one call each."""

from anyio import fail_after

from koboshi.app.world import opened_model
from koboshi.config import Config, TelegramConfig
from koboshi.domain.errors import ModelBusy, ModelRefused, Unusable
from koboshi.domain.ids import EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.transcript import Message, Step
from koboshi.ports.model import Request

TELEGRAM_SECONDS = 15.0
MODEL_SECONDS = 60.0


class Disappointed(Exception):
    """What was tried does not work, in words for a person."""


async def try_telegram(bot: TelegramConfig) -> str:
    """The name of the bot whose token it is. Raises Disappointed."""
    import httpx2

    from koboshi.channels.telegram.client import BotApi, NoAnswer, NotReached
    from koboshi.lanes import Lanes

    assert bot.token is not None, "a channel that is enabled has its token"
    lanes = Lanes(count_max=1, timeout=httpx2.Timeout(TELEGRAM_SECONDS))
    api = BotApi(lanes=lanes, base=bot.api_base, token=bot.token.reveal())
    try:
        answer = await api.call("getMe", {}, seconds=TELEGRAM_SECONDS)
    except (NotReached, NoAnswer) as error:
        said = f"{bot.api_base} was not reached, or did not answer: {error}"
        raise Disappointed(said) from error
    finally:
        await lanes.aclose()
    if not answer.ok:
        raise Disappointed(f"Telegram does not take the token: {answer.description}")
    match answer.result:
        case {"username": str(name)}:
            return name
        case _:
            raise Disappointed(f"{bot.api_base} answers as no Bot API does")


async def try_model(config: Config) -> str:
    """The first words of a reply to a tiny request. Raises Disappointed."""
    try:
        with fail_after(MODEL_SECONDS):
            async with opened_model(config) as model:
                reply = await model.respond(_tiny_request())
    except TimeoutError as error:
        raise Disappointed(f"there was no reply within {MODEL_SECONDS:g} s") from error
    except (ModelBusy, ModelRefused, Unusable) as error:
        raise Disappointed(str(error)) from error
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
