"""Strangers: what is stored of their messages, and the one code that they get."""

import secrets
from dataclasses import replace

from koboshi.domain import phrases
from koboshi.domain.ids import EntryId
from koboshi.domain.inbox import StrangersWords
from koboshi.domain.people import (
    ALPHABET,
    CODE_CHARS,
    NAME_CHARS_MAX,
    PERSON_CHARS_MAX,
    STRANGER_CHARS_MAX,
    code_hash,
)
from koboshi.kernel.context import VerbContext
from koboshi.kernel.enqueue import enqueue_delivery
from koboshi.kernel.keys import lock, people_key
from koboshi.kernel.sessions import find_or_make_session
from koboshi.kernel.transaction import Transaction
from koboshi.ports.channel import Inbound


def fresh_code() -> str:
    """A new code from a secure source."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARS))


def as_kept(inbound: Inbound) -> Inbound:
    """A stranger's message, cut to what is stored, so that strangers cannot fill the disk."""
    words, route = inbound.words, inbound.route
    kept = StrangersWords(
        text=words.text[:STRANGER_CHARS_MAX],
        sent_ms=words.sent_ms,
        anchor=words.anchor,
        question=words.question,
        choice_id=words.choice_id,
        busy=words.busy,
        files=words.files,
        group=words.group,
        name=words.name,
        is_forwarded=words.is_forwarded,
        chat=route.chat,
        thread=route.thread,
    )
    return replace(inbound, words=kept)


def forget_strangers(tx: Transaction, context: VerbContext) -> None:
    """Keep only the newest rows of strangers."""
    tx.change("entries_of_strangers_forget", kept=context.pairing.ignored_max)


def meet_stranger(
    tx: Transaction, context: VerbContext, inbound: Inbound, entry_id: EntryId
) -> None:
    """Handle a new message of a person without the right, in the transaction that stores it.

    In a private chat the person gets a code, once while it is valid, if the channel has room for
    another code.
    """
    if not inbound.is_private or len(inbound.sender) > PERSON_CHARS_MAX:
        return
    limits, channel = context.pairing, inbound.route.channel
    lock(tx, people_key(channel))
    # A clock that was set back must not turn an hour into a year.
    latest_ms = tx.now_ms + max(limits.code_ms, limits.silence_ms)
    tx.change("pairings_expire", now=tx.now_ms, latest_ms=latest_ms)
    if tx.row("pairing_of", channel=channel, person=inbound.sender):
        return
    if tx.number("pairings_good_count", channel=channel) >= limits.codes_max:
        return
    session, code = find_or_make_session(tx, inbound.route), context.new_code()
    tx.change(
        "pairing_insert",
        channel=channel,
        person=inbound.sender,
        name=inbound.sender_name[:NAME_CHARS_MAX],
        session_id=session.session_id,
        entry_id=entry_id,
        code_hash=code_hash(channel, inbound.sender, code),
        now=tx.now_ms,
        expires_ms=tx.now_ms + limits.code_ms,
    )
    words = phrases.pairing_code(code, limits.code_ms // 60_000)
    anchor = inbound.words.anchor
    enqueue_delivery(tx, session.session_id, None, f"pairing:{entry_id}", (words,), anchor=anchor)
