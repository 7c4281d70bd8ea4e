"""What the checks of the typed client stand on. Needs nothing but that client."""

from collections.abc import Awaitable
from typing import Any

import telegram as tg
from telegram.request import HTTPXRequest

from tests.fakes.telegram.remote import Remote

# The platform sends it; the client has given it up.
KNOWN_STRANGERS = {"all_members_are_administrators"}


class Stage:
    """The bot as the client library makes it, and people who are told what to do over HTTP."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url
        self.token = token
        self.bot = self.bot_with(token)
        self.offset = 0
        self._remote = Remote(url)

    def bot_with(self, token: str) -> tg.Bot:
        def request() -> HTTPXRequest:
            return HTTPXRequest(httpx_kwargs={"trust_env": False})

        return tg.Bot(
            token,
            base_url=f"{self.url}/bot",
            base_file_url=f"{self.url}/file/bot",
            request=request(),
            get_updates_request=request(),
        )

    def people(self, verb: str, **arguments: Any) -> Any:
        return self._remote.call(verb, **arguments)

    def person(self) -> int:
        """The id of a new person, and of the chat with them."""
        return int(self.people("private_chat")["id"])

    async def updates(self) -> list[tg.Update]:
        """What is new, acknowledged at once."""
        found = await self.bot.get_updates(offset=self.offset)
        if found:
            self.offset = found[-1].update_id + 1
            await self.bot.get_updates(offset=self.offset)
        for each in found:
            all_known(each)
        return list(found)

    async def update(self) -> tg.Update:
        (found,) = await self.updates()
        return found


def all_known(thing: object, path: str = "") -> None:
    """Fails if the fake gave a field that the client has no name for."""
    if isinstance(thing, list | tuple):
        for each in thing:
            all_known(each, path)
    if not isinstance(thing, tg.TelegramObject):
        return
    unknown = set(thing.api_kwargs) - KNOWN_STRANGERS
    assert not unknown, f"{path or type(thing).__name__}: {unknown}"
    for name in thing.to_dict():
        all_known(getattr(thing, "from_user" if name == "from" else name, None), f"{path}.{name}")


async def refused(kind: type[Exception], words: str, asked: Awaitable[object]) -> Exception:
    """The error, which must be of this very kind and hold these words."""
    raised: Exception | None = None
    try:
        await asked
    except kind as error:
        raised = error
    assert raised is not None, f"nothing was refused; expected {kind.__name__}"
    assert type(raised) is kind, repr(raised)
    assert words in str(raised), f"{raised!r} does not say {words!r}"
    return raised


def keyboard(*carried: str) -> tg.InlineKeyboardMarkup:
    """One row; on each button is written what it carries."""
    row = [tg.InlineKeyboardButton(each, callback_data=each) for each in carried]
    return tg.InlineKeyboardMarkup([row])
