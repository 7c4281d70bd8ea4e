"""Approvals of turns that are not purely an owner's: asked in the owners' private chats, answered
there once."""

from dataclasses import dataclass

from koboshi.domain import phrases
from koboshi.domain.command import Command, CommandName, QuestionKind, Ruling
from koboshi.domain.errors import RoleLost
from koboshi.domain.ids import ChannelName, Seq, SessionId, TurnId
from koboshi.domain.inbox import Words, yes_or_no
from koboshi.domain.role import Role, is_less
from koboshi.domain.session import Session
from koboshi.domain.transcript import ApprovalSeal, Choice, Question
from koboshi.domain.turn import Claim
from koboshi.kernel.asides import turns_waiting_beside
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import number, numbers, text, texts
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.facts import no_ruling, question_kind, role_of_turn
from koboshi.kernel.keys import lock_session
from koboshi.kernel.questions import rule_on_approval
from koboshi.kernel.rows import TurnRow, read_session, turn_of
from koboshi.kernel.transaction import Reading, Transaction

CHATS_READ_MAX = 10_000
CHATS_ASKED_MAX = 20
"""How many owners are asked in their chats. All see it on the page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """A question as a chat is shown it."""

    question: Seq
    text: str
    choices: tuple[Choice, ...]
    literal: tuple[int, int] | None

    def owe(
        self, tx: Transaction, session_id: SessionId, turn_id: TurnId | None, *, anchor: str
    ) -> None:
        enqueue_delivery(
            tx,
            session_id,
            turn_id,
            f"step:{self.question}",
            (self.text,),
            anchor=anchor,
            choices=self.choices,
            question=self.question,
            literal=self.literal,
        )


def card_of(seq: Seq, question: Question, chat_text: str) -> Card:
    """What a chat is shown of a question: all of it, or `chat_text` where it does not fit."""
    is_whole = not chat_text
    return Card(
        question=seq,
        text=chat_text or question.text,
        choices=question.choices if is_whole else (phrases.NO,),
        literal=_literal_in(question.sealed, is_whole=is_whole),
    )


def _literal_in(sealed: ApprovalSeal | None, *, is_whole: bool) -> tuple[int, int] | None:
    """Which characters are shown as they are; where the chat is told something else, none are, and
    still nothing of it is Markdown."""
    if sealed is None:
        return None
    return (sealed.begin, sealed.end) if is_whole else (0, 0)


def require_role(tx: Reading, context: VerbContext, claim: Claim, role: Role) -> None:
    """Raise RoleLost if the turn has less than this role now."""
    channel = read_session(tx, claim.session_id).route.channel
    now = role_of_turn(tx, context, channel, claim.turn_id)
    if is_less(now, role):
        raise RoleLost(f"turn {claim.turn_id} is one of a {now}, not of an {role}")


def is_for_owners(tx: Reading, context: VerbContext, claim: Claim, question: Question) -> bool:
    """Whether it is an approval of a turn that holds words of others than owners."""
    if question_kind(tx, claim.turn_id, question) is not QuestionKind.APPROVAL:
        return False
    channel = read_session(tx, claim.session_id).route.channel
    return not role_of_turn(tx, context, channel, claim.turn_id).is_owner


def owner_chats(tx: Reading, context: VerbContext) -> tuple[SessionId, ...]:
    """The private chats of the owners, one for each owner of a channel."""
    found: dict[tuple[str, str], SessionId] = {}
    for session_id, channel, person in tx.rows("sessions_private", limit=CHATS_READ_MAX):
        who = text(channel), text(person)
        if who in found or who[0] not in context.world.channels:
            continue
        if context.role_of(tx, ChannelName(who[0]), who[1]) is Role.OWNER:
            found[who] = SessionId(number(session_id))
    return tuple(found.values())[:CHATS_ASKED_MAX]


def ask_owners(
    tx: Transaction, context: VerbContext, claim: Claim, card: Card, *, anchor: str
) -> None:
    """Owe the question to the owners' private chats, and a word about it to the chat of the turn.
    The page shows every open question."""
    session = read_session(tx, claim.session_id)
    people = sorted(texts(tx.rows("turn_speakers", turn_id=claim.turn_id)))
    for_whom = phrases.asked_for_others(session.route.channel, session.route.chat, people)
    chats = [each for each in owner_chats(tx, context) if each != claim.session_id]
    for chat in chats:
        lock_session(tx, chat)
        enqueue_delivery(tx, chat, None, f"asked-for:{card.question}", (for_whom,), anchor="")
        card.owe(tx, chat, None, anchor="")
    told = (phrases.owner_is_asked(has_chats=bool(chats)),)
    cause = f"step:{card.question}"
    enqueue_delivery(
        tx, claim.session_id, claim.turn_id, cause, told, anchor=anchor, to_person=True
    )


def turn_asked_here(tx: Reading, session: Session, words: Words) -> TurnRow | None:
    """The turn of another chat whose open approval a pressed button in this chat answers."""
    if words.question is None or words.choice_id is None:
        return None
    row = tx.row("turn_waiting_for", question=words.question)
    if row is None or turn_of(row).session_id == session.session_id:
        return None
    shown = {"session_id": session.session_id, "question": words.question}
    return turn_of(row) if tx.row("approval_shown", **shown) is not None else None


def turns_asked_here(tx: Reading, session: Session) -> tuple[TurnRow, ...]:
    """Turns of other chats whose open approvals were shown in this chat; at most two."""
    questions = numbers(tx.rows("approvals_shown", session_id=session.session_id))
    rows = [tx.row("turn_waiting_for", question=each) for each in questions]
    return tuple(turn_of(row) for row in rows if row is not None)


def settle_from_here(
    tx: Transaction,
    context: VerbContext,
    session: Session,
    turn: TurnRow,
    person: str,
    words: Words,
) -> str:
    """Apply a pressed button to the approval of another chat. Returns what the person is told."""
    why = no_ruling(tx, context, session, turn, person)
    if why is not None:
        return phrases.NO_RULING[why]
    said = yes_or_no(words)
    if said is None:
        return phrases.no_such_choice()
    lock_session(tx, turn.session_id)
    rule_on_approval(tx, turn, person, "", Ruling(is_yes=said), speaks=False)
    return phrases.ruled(is_yes=said)


def asked_about(
    tx: Reading, session: Session, open_row: TurnRow | None, command: Command
) -> TurnRow | None:
    """The turn whose question `/approve` and `/deny` answer here: the open one, or the only one of
    a schedule beside it or of another chat that was asked about in this one."""
    is_ruling = command.name in (CommandName.APPROVE, CommandName.DENY)
    if not is_ruling or (open_row is not None and open_row.question_seq is not None):
        return open_row
    asked = (*turns_waiting_beside(tx, session), *turns_asked_here(tx, session))
    return asked[0] if len(asked) == 1 else open_row
