"""Rows of the outbox, as the verbs that send them see them."""

from typing import NamedTuple

from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId, WorkerId
from koboshi.domain.outbox import Delivery, DeliveryState
from koboshi.domain.route import Route
from koboshi.kernel.decode import choices_of, file_of, literal_of, number, text
from koboshi.kernel.transaction import Reading, Row, Value
from koboshi.ports.outbox import Due


class OwedRow(NamedTuple):
    """A delivery that is to be sent: the columns `owed` of `queries.sql`."""

    delivery_id: DeliveryId
    session_id: SessionId
    turn_id: TurnId | None
    cause: str
    part: int
    parts: int
    text: str
    choices: str
    question: int | None
    anchor: str
    attempts: int
    created_ms: int
    ambiguous: int
    labelled: int
    state: str
    not_before_ms: int
    worker_id: WorkerId | None
    channel: ChannelName
    chat: str
    thread: str
    file: str | None
    aged_from_ms: int
    tried_by: WorkerId | None
    unsure: int
    strikes: int
    wait_ms: int
    literal: str | None
    until_ms: int | None
    """Until when the pause of its chat lasts."""
    random: str | None
    """The random part of send keys, once there is one."""

    def attempt(self, worker_id: WorkerId, now_ms: int, send_id: str) -> Delivery:
        """The delivery as it is with one more attempt of this worker."""
        return Delivery(
            delivery_id=self.delivery_id,
            send_key=f"{send_id}-{self.delivery_id}",
            session_id=self.session_id,
            turn_id=self.turn_id,
            cause=self.cause,
            part=self.part,
            parts=self.parts,
            text=self.text,
            choices=choices_of(self.choices),
            question=self.question,
            anchor=self.anchor,
            attempts=self.attempts + 1,
            created_ms=self.created_ms,
            is_ambiguous=self.state == DeliveryState.SENDING or bool(self.ambiguous),
            may_be_duplicate=bool(self.labelled),
            file=None if self.file is None else file_of(self.file),
            route=Route(channel=self.channel, chat=self.chat, thread=self.thread),
            age_ms=now_ms - self.aged_from_ms,
            is_tried=self.tried_by == worker_id,
            unsure=self.unsure,
            strikes=self.strikes,
            waited_ms=self.wait_ms,
            literal=literal_of(self.literal),
        )


def read_owed(tx: Reading, query: str, **values: Value) -> OwedRow | None:
    """The delivery that the named query finds; it selects `{owed}`."""
    row = tx.row(query, **values)
    return None if row is None else OwedRow._make(row)


def due_of(row: Row, now_ms: int) -> Due:
    """What is next in a session to which something is owed, and when."""
    delivery_id, session_id, channel, chat, thread, due_ms, needs_channel, reply_ms = row
    return Due(
        delivery_id=DeliveryId(number(delivery_id)),
        session_id=SessionId(number(session_id)),
        route=Route(channel=ChannelName(text(channel)), chat=text(chat), thread=text(thread)),
        wait_ms=max(0, number(due_ms) - now_ms),
        needs_channel=bool(needs_channel),
        reply_wait_ms=None if reply_ms is None else max(0, number(reply_ms) - now_ms),
    )
