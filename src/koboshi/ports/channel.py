"""A connection to a platform: where messages come from and deliveries go to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, TypeAlias

from koboshi.domain.approver import SentBy
from koboshi.domain.files import Attachment
from koboshi.domain.hearing import Hearing
from koboshi.domain.ids import ChannelName, EntryId, TurnId
from koboshi.domain.inbox import EntryState, Words
from koboshi.domain.outbox import Delivery, Near, SendOutcome
from koboshi.domain.route import Route

NO_WATERMARKS: Mapping[str, str] = MappingProxyType({})

Watermarks: TypeAlias = Callable[[str], Awaitable[Mapping[str, str]]]
"""How far each chat was read as an account, as the store has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    edits: bool = False
    """`edit` can replace the text of a message of ours."""
    threads: bool = False
    typing: bool = False
    idempotent_send: bool = False
    """Repeating a send with the same `send_key` leaves one copy."""
    repeat_within_ms: int | None = None
    """For how long the platform remembers a key; later, a send of unknown outcome is looked for.
    None where it is for ever."""
    finds_sent: bool = False
    """`find` can tell whether a delivery arrived."""
    holds_unsure: bool = False
    """The owner wants to decide about sends of unknown outcome."""
    drafts: bool = False
    """`draft` can show a text while it grows."""
    interactive: bool = True
    """A person reads along and can answer."""
    parts_max: int = 8
    """An answer of several parts is not sent as that many messages."""
    takes_files: bool = False
    """A delivery can carry a file."""
    begins_once: bool = False
    """What a thread of ours begins with is a call that is never repeated; the platform tells of the
    thread by itself (`Inbound.begins`)."""
    exclusive: bool = False
    """Where several gateways share a database, one of them alone receives and sends as the account:
    the platform gives what is new to one, and asks for a pace of all together."""
    question_units_max: int | None = None
    """An approval longer than this, in UTF-16 code units, cannot be shown whole in one message, so
    it is not offered there; None where everything can."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """One thing a platform delivered, as its codec read it. `ignored` says why it is not for us."""

    route: Route
    external_id: str
    sender: str
    """The platform's stable id of the person. Names change hands and prove nothing."""
    words: Words
    ignored: str | None = None
    sender_name: str = ""
    """The person's own name for themselves; shown to the operator, never compared."""
    is_private: bool = False
    """Only the sender reads along, so a code can be sent."""
    is_group: bool = False
    """Others write in the same conversation, so the agent is told who speaks."""
    is_addressed: bool = True
    """It addresses us. Other words in a group are kept only where the agent listens to all."""
    edits: str = ""
    """The external id of an earlier message that this one replaces, while that waits."""
    moved_to: str = ""
    """The chat is this one from now on."""
    sent_by: SentBy = SentBy.PERSON
    begins: str = ""
    """The name of a thread that we have made, which the platform tells of; the route is there."""
    zone: str = ""
    """The time zone of the sender, where the platform tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of one `Inbound`; it is on disk. `is_same` is False where the external id was
    used before with other words. One that was `refused`, for this reason, left no trace."""

    entry_id: EntryId
    state: EntryState
    is_duplicate: bool
    is_same: bool = True
    refused: str = ""


class Accept(Protocol):
    async def __call__(
        self,
        batch: Sequence[Inbound],
        cursor: str | None = None,
        watermarks: Mapping[str, str] = NO_WATERMARKS,
    ) -> tuple[Receipt, ...]:
        """Store the batch, and how far we have read, in one transaction: in all (`cursor`), and in
        single chats (`watermarks`; an empty one forgets the chat). Acknowledge to the platform only
        after this has returned. A channel with an account calls it with nothing at
        all, once it is connected and before it reads: the platform knows the account."""
        ...


class Channel(Protocol):
    @property
    def name(self) -> ChannelName: ...

    @property
    def account(self) -> str:
        """The platform's stable id of our own account, known before connecting. Ids of chats,
        messages and updates are valid for one account. Empty where there is only one."""

    @property
    def abilities(self) -> Abilities: ...

    @property
    def trouble(self) -> str | None:
        """Why the platform is out of reach now; None if the channel is up. Meanwhile, no send of
        unknown outcome is repeated. A channel that comes back hints at that."""
        ...

    @property
    def hearing(self) -> Hearing:
        """When the platform was last heard, and how far we are behind."""
        ...

    async def receive(self, cursor: str | None, accept: Accept) -> None:
        """Bring in what people write, from `cursor` on, until cancelled. Raises when the
        connection is lost; the caller comes back after a pause."""
        ...

    def split(self, text: str) -> tuple[str, ...]:
        """The parts in which the platform takes a text; each is sent separately."""
        ...

    async def pace(self, route: Route) -> None:
        """Wait until the platform's rate limits allow one more message there."""
        ...

    async def send(self, delivery: Delivery) -> SendOutcome:
        """Try to deliver once. Never raises for an error of a platform or a network."""
        ...

    async def find(self, delivery: Delivery, near: Near) -> SendOutcome | None:
        """What became of an earlier send of unknown outcome: Sent, Later if it certainly did not
        arrive, Unsure if the caller must ask again, None if it cannot be known."""
        ...

    async def typing(self, route: Route) -> None:
        """Show for some seconds that the agent is working, where the platform can. Best effort."""
        ...

    async def edit(self, route: Route, platform_id: str, text: str) -> None:
        """Replace the text of a message that arrived, where `abilities.edits` says so. Best
        effort: it may fail and may be cut off, and nothing depends on it."""
        ...

    async def draft(self, route: Route, turn_id: TurnId, text: str) -> None:
        """Show a text that is still growing, where `abilities.drafts` says so. Best effort, and
        gone by itself: the answer is a delivery like any other."""
        ...

    async def fetch(self, attachment: Attachment, path: Path) -> None:
        """Bring a file that came with a message to `path`, whole or not at all. Raises FileNotHad
        with words for the model if it can never be fetched, and any other error if it may come
        later."""
        ...
