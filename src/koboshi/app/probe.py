"""Trying what a configuration names, before anything depends on it: one call each."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

from anyio import fail_after

from koboshi.app.boot_config import opened_model
from koboshi.config import Config, TelegramConfig
from koboshi.domain.errors import ModelBusy, ModelRefused, Unusable
from koboshi.domain.ids import EntryId, Epoch, Seq, SessionId, TurnId
from koboshi.domain.transcript import Message, Step
from koboshi.ports.clock import Clock
from koboshi.ports.model import Request

TELEGRAM_SECONDS = 15.0
MODEL_SECONDS = 60.0


class ProbeFailed(Exception):
    """What was tried does not work, in words for a person."""

    def __init__(self, words: str, *, status: int | None = None) -> None:
        super().__init__(words)
        self.status = status
        """The status that a provider answered with; None if it did not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookStanding:
    """How Telegram and the rest of the world get to a bot's webhook."""

    registered: str
    """The address that Telegram calls; empty if it calls none."""
    error: str
    """Why its last call failed; empty if it did not."""
    answered: int | None
    """What a call without the secret is answered with; None without an answer."""
    why: str = ""


async def try_telegram(bot: TelegramConfig) -> str:
    """The name of the bot whose token it is. Raises ProbeFailed."""
    match await _asked(bot, "getMe"):
        case {"username": str(name)}:
            return name
        case _:
            raise ProbeFailed(f"{bot.api_base} answers as no Bot API does")


async def hears_groups(bot: TelegramConfig) -> bool:
    """Whether Telegram brings it all that is said in a group. Raises ProbeFailed."""
    me = await _asked(bot, "getMe")
    return isinstance(me, dict) and me.get("can_read_all_group_messages") is True


async def webhook_standing(bot: TelegramConfig) -> WebhookStanding:
    """Asked of Telegram, and tried from here. Raises ProbeFailed."""
    told = await _asked(bot, "getWebhookInfo")
    found: Mapping[str, object] = told if isinstance(told, dict) else {}
    registered, error = found.get("url", ""), found.get("last_error_message", "")
    answered, why, _ = await _reached(bot.webhook_url)
    return WebhookStanding(registered=str(registered), error=str(error), answered=answered, why=why)


async def clock_ahead_s(base: str, clock: Clock) -> float | None:
    """How far our clock is ahead of a server's; None if it does not tell the time."""
    _, _, date = await _reached(base)
    return None if date is None else clock.now_ms() / 1000 - date.timestamp()


async def _reached(url: str) -> tuple[int | None, str, datetime | None]:
    """How an address answers a call without credentials, or why it does not, and its time."""
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=TELEGRAM_SECONDS, follow_redirects=False) as http:
            answer = await http.post(url, content=b"{}")
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        return None, type(error).__name__, None
    try:
        date = parsedate_to_datetime(answer.headers.get("Date", ""))
    except ValueError:
        return answer.status_code, "", None
    return answer.status_code, "", date if date.tzinfo else None


async def _asked(bot: TelegramConfig, method: str) -> object:
    """What the bot's platform answers to a method without parameters. Raises ProbeFailed."""
    import httpx2

    from koboshi.channels.telegram.client import BotApi, NoAnswer, NotReached
    from koboshi.http_pool import HttpPool

    assert bot.token is not None, "a channel that is enabled has its token"
    lanes = HttpPool(count_max=1, timeout=httpx2.Timeout(TELEGRAM_SECONDS))
    api = BotApi(lanes=lanes, base=bot.api_base, token=bot.token.reveal())
    try:
        answer = await api.call(method, {}, seconds=TELEGRAM_SECONDS)
    except (NotReached, NoAnswer) as error:
        said = f"{bot.api_base} was not reached, or did not answer: {error}"
        raise ProbeFailed(said) from error
    finally:
        await lanes.aclose()
    if not answer.ok:
        raise ProbeFailed(f"Telegram does not take the token: {answer.description}")
    return answer.result


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
