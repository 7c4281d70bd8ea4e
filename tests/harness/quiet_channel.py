"""The optional parts of a channel, empty: no rate limit, and nothing shown in passing."""

from pathlib import Path

from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import NOT_LISTENING, Hearing
from koboshi.domain.ids import TurnId
from koboshi.domain.route import Route
from koboshi.domain.splitting import split_text


class QuietChannel:
    text_max = 1_000
    trouble: str | None = None

    @property
    def account(self) -> str:
        return ""

    @property
    def hearing(self) -> Hearing:
        return NOT_LISTENING

    def split(self, text: str) -> tuple[str, ...]:
        return split_text(text, self.text_max)

    async def pace(self, route: Route) -> None:
        return

    async def typing(self, route: Route) -> None:
        return

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        return

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        return

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        raise FileNotHad("there are no files here")
