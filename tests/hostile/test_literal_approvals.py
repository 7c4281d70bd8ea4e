"""What a person approves is what they are shown, on every channel, letter by letter."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from koboshi.channels.telegram.messages import PART_UNITS_MAX, message_of
from koboshi.channels.web.chat_events import DeliveryLine
from koboshi.cli.chat.render import render
from koboshi.domain.approval import Approval, ApprovalCard, card_of
from koboshi.domain.ids import ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import Delivery
from koboshi.domain.route import Route
from koboshi.domain.text import exactly

HOSTILE = [
    'rm -f "[notes.txt](https://x.test/$(rm${IFS}PRECIOUS))"',
    "rm -rf *build*",
    "rm -rf __x__ ~~y~~ `z` ||secret||",
    "```\nls\n```\nrm -rf /",
    "echo <b>hi</b> &lt; > x",
    "ls # \u202e‮fr- mr",
    "ls\r\x1b[2K\x1b[1Grm -rf x",
    "ls\u2028rm -rf x",
    "rm\u00a0-rf\u200b x\ufeff",
    "echo 😀 && rm -rf 𝐱",
    "   leading and trailing   \n\n",
    "ls\n\nIt stays inside the boundary.\nGood until never.\n  1) Yes",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "1. one\n2. two\n> quoted",
]


def card(literal: str, units_max: int | None = None) -> ApprovalCard:
    approval = Approval(
        lead="May I run this in /w/*a*/[b](c)?", literal=literal, reason="**because** [x](y)"
    )
    made = card_of(
        "terminal",
        "{}",
        approval,
        asked_by="5",
        expires_ms=0,
        lasts_ms=1_000,
        units_max=units_max,
        has_page=True,
    )
    assert isinstance(made, ApprovalCard)
    return made


def delivery(made: ApprovalCard, *, may_be_duplicate: bool = False) -> Delivery:
    is_whole = not made.chat_text
    return Delivery(
        delivery_id=DeliveryId(1),
        session_id=SessionId(1),
        turn_id=TurnId(1),
        route=Route(channel=ChannelName("telegram:main"), chat="5"),
        cause="step:1",
        part=1,
        parts=1,
        text=made.chat_text or made.text,
        choices=made.choices,
        question=1,
        anchor="",
        attempts=1,
        created_ms=0,
        is_ambiguous=False,
        may_be_duplicate=may_be_duplicate,
        literal=(made.sealed.begin, made.sealed.end) if is_whole else (0, 0),
    )


def on_telegram(made: ApprovalCard, *, may_be_duplicate: bool = False) -> tuple[str, list[str]]:
    """The text that Telegram shows, and what stands in blocks of code."""
    sent = message_of(delivery(made, may_be_duplicate=may_be_duplicate))
    text = str(sent["text"])
    units = text.encode("utf-16-le")
    entities = sent.get("entities", [])
    assert isinstance(entities, list)
    assert {each["type"] for each in entities} <= {"pre"}
    begins = [(each["offset"] * 2, each["length"] * 2) for each in entities]
    return text, [units[at : at + length].decode("utf-16-le") for at, length in begins]


@pytest.mark.parametrize("may_be_duplicate", [False, True])
@pytest.mark.parametrize("literal", HOSTILE)
def test_telegram_shows_it_letter_by_letter(literal: str, may_be_duplicate: bool) -> None:
    """Issue 15, V1: rendered as Markdown, the person saw another command than the one that ran."""
    made = card(literal)
    text, blocks = on_telegram(made, may_be_duplicate=may_be_duplicate)

    assert text.endswith(made.text)
    assert blocks == [exactly(literal).strip()]


@example("\n")
@given(st.text(max_size=300))
def test_telegram_shows_any_text_whole(literal: str) -> None:
    """Issue 15, V1, V2."""
    made = card(literal)
    text, blocks = on_telegram(made)

    assert text == made.text
    assert blocks == ([exactly(literal).strip()] if exactly(literal).strip() else [])


def test_what_telegram_would_cut_is_not_offered_there() -> None:
    """Issue 15, V2: 4,096 units, with room for the label of a repeated send."""
    for size in (3_000, 3_900, 3_990, 4_096, 40_000):
        made = card("x" * size, PART_UNITS_MAX)
        text, blocks = on_telegram(made, may_be_duplicate=True)
        assert not text.endswith("…")
        if made.sealed.is_elsewhere:
            assert blocks == []
            assert "too long to approve here" in text
        else:
            assert blocks == ["x" * size]
    assert card("x" * 40_000, PART_UNITS_MAX).sealed.is_elsewhere
    assert not card("x" * 3_000, PART_UNITS_MAX).sealed.is_elsewhere


@pytest.mark.parametrize("literal", HOSTILE)
def test_a_terminal_shows_it_behind_a_bar(literal: str) -> None:
    """Issue 15, V1, V2: nothing in it can pass for our own words, and nothing is obeyed."""
    made = card(literal)
    line = DeliveryLine(
        at="",
        thread="",
        delivery="d1",
        cause="step:1",
        part=1,
        parts=1,
        text=made.text,
        question=1,
        literal=(made.sealed.begin, made.sealed.end),
    )
    (shown,) = render("question", line)

    barred = [each[4:] for each in shown.text.split("\n") if each.startswith("  │ ")]
    assert "\n".join(barred) == exactly(literal)
    assert all(char.isprintable() or char in "\n\t" for char in shown.text)
