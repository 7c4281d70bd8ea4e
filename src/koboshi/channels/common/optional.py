"""What a channel may leave out: a channel that begins here adds the rest of the contract."""

from pathlib import Path

from koboshi.domain.errors import FileNotHad
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import NOT_LISTENING, Hearing
from koboshi.domain.ids import TurnId
from koboshi.domain.outbox import Delivery, Near, SendOutcome
from koboshi.domain.route import Route
from koboshi.domain.splitting import split_text

TEXT_MAX = 2_000


class OptionalParts:
    """One account, short texts, no rate limits, nothing shown in passing, no files."""

    @property
    def account(self) -> str:
        return ""

    @property
    def hearing(self) -> Hearing:
        return NOT_LISTENING

    def split(self, text: str) -> tuple[str, ...]:
        return split_text(text, TEXT_MAX)

    async def pace(self, route: Route) -> None:
        """At once."""

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        """It cannot be known."""

    async def typing(self, route: Route) -> None:
        """Nothing is shown."""

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        """What was sent stays as it is."""

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Nothing is shown."""

    async def fetch(self, attachment: Attachment, path: Path) -> None:  # noqa: ARG002
        raise FileNotHad("files cannot be sent from here")
