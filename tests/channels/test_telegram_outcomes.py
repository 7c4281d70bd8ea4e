"""What Telegram's answers mean, and what it is asked. Pure."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koboshi.channels.telegram.messages import (
    CAPTION_UNITS_MAX,
    TEXT_UNITS_MAX,
    caption_of,
    markup_of,
    message_of,
)
from koboshi.channels.telegram.outcomes import (
    complains_of_entities,
    is_ours,
    outcome_of,
    wait_ms_of,
)
from koboshi.channels.telegram.render import units
from koboshi.channels.telegram.types import BotAnswer, Parameters
from koboshi.domain.outbox import Later, Moved, Refused, Sent, Unsure
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.route import Route
from koboshi.domain.transcript import Choice
from tests.channels.telegram_rig import MAIN, owed

PRIVATE = Route(channel=MAIN, chat="7")


def refusal(code: int, words: str, **parameters: float) -> BotAnswer:
    told = Parameters(**parameters) if parameters else None  # type: ignore[arg-type]
    return BotAnswer(ok=False, error_code=code, description=words, parameters=told)


def test_a_message_that_was_taken_has_a_number() -> None:
    assert outcome_of(BotAnswer(ok=True, result={"message_id": 5})) == Sent(platform_id="5")


@pytest.mark.parametrize("result", [None, True, {}, {"message_id": "5"}, []])
def test_taken_without_a_number_is_unsure(result: object) -> None:
    assert isinstance(outcome_of(BotAnswer(ok=True, result=result)), Unsure)


@pytest.mark.parametrize(
    "answer, kind",
    [
        (refusal(400, "Bad Request: chat not found"), Refused),
        (refusal(403, "Forbidden: bot was blocked by the user"), Refused),
        (refusal(400, ""), Refused),
        (refusal(401, "Unauthorized"), Later),
        (refusal(404, "Not Found"), Later),
        (refusal(429, "Too Many Requests: retry after 3", retry_after=3), Later),
        (refusal(429, "Too Many Requests"), Later),
        (refusal(400, "Bad Request: upgraded", migrate_to_chat_id=-1005), Moved),
    ],
)
def test_what_was_not_taken_was_not_sent(answer: BotAnswer, kind: type) -> None:
    outcome = outcome_of(answer)

    assert isinstance(outcome, kind)
    if isinstance(outcome, Refused):
        assert outcome.reason


@pytest.mark.parametrize("retry_after, wait_ms", [(3, 3_000), (0.5, 500), (0, 1_000), (-4, 1)])
def test_the_wait_is_as_long_as_asked(retry_after: float, wait_ms: int) -> None:
    assert wait_ms_of(refusal(429, "", retry_after=retry_after)) == wait_ms


@pytest.mark.parametrize(
    "words, verdict",
    [
        ("Bad Request: message is not modified: specified new message content", True),
        ("Bad Request: message to edit not found", False),
        ("Bad Request: MESSAGE_ID_INVALID", False),
        ("Bad Request: message can't be edited", False),
        ("Forbidden: bot was kicked from the supergroup chat", None),
        ("Bad Request: chat not found", None),
        ("", None),
    ],
)
def test_an_edit_that_changes_nothing_tells_whose_it_is(words: str, verdict: bool | None) -> None:
    assert is_ours(refusal(400, words)) is verdict


def test_an_edit_that_was_carried_out_tells_nothing() -> None:
    assert is_ours(BotAnswer(ok=True, result={"message_id": 5})) is None


@pytest.mark.parametrize(
    "words, complains",
    [
        ("Bad Request: can't parse entities: Can't find end", True),
        ("Bad Request: ENTITY_BOUNDS_INVALID", True),
        ("Bad Request: chat not found", False),
        ("Request Entity Too Large", False),
    ],
)
def test_a_complaint_of_the_formatting_is_known(words: str, complains: bool) -> None:
    assert complains_of_entities(refusal(400, words)) is complains


def test_only_the_first_part_hangs_on_what_it_answers() -> None:
    first = owed(PRIVATE, anchor="12", parts=2)

    assert "reply_parameters" in message_of(first)
    assert "reply_parameters" not in message_of(replace(first, part=2))
    assert "reply_parameters" not in message_of(replace(first, anchor=""))
    assert "reply_parameters" not in message_of(replace(first, anchor="web-12"))


def test_a_topic_is_named_in_what_is_sent_there() -> None:
    """S152."""
    topic = Route(channel=MAIN, chat="-1005", thread="9")

    assert message_of(owed(topic))["message_thread_id"] == 9
    assert "message_thread_id" not in message_of(owed(PRIVATE))


@pytest.mark.parametrize("cause", ["report:5", "command:5"])
def test_what_commands_print_is_shown_as_it_is(cause: str) -> None:
    said = message_of(owed(PRIVATE, "a*b*c __init__", cause=cause))

    assert said["text"] == "a*b*c __init__"
    assert "entities" not in said


def test_a_label_moves_the_formatting_along() -> None:
    plain = message_of(owed(PRIVATE, "**bold**"))
    labelled = message_of(owed(PRIVATE, "**bold**", may_be_duplicate=True))

    assert labelled["text"] == DUPLICATE_LABEL + "bold"
    assert plain["entities"] == [{"type": "bold", "offset": 0, "length": 4}]
    moved = {"type": "bold", "offset": units(DUPLICATE_LABEL), "length": 4}
    assert labelled["entities"] == [moved]


@given(st.text(max_size=9_000), st.booleans())
def test_no_message_and_no_caption_is_too_long(text: str, is_labelled: bool) -> None:
    delivery = owed(PRIVATE, text, may_be_duplicate=is_labelled)

    assert units(str(message_of(delivery)["text"])) <= TEXT_UNITS_MAX
    assert units(str(caption_of(delivery).get("caption", ""))) <= CAPTION_UNITS_MAX


@given(st.integers(0, 10**17), st.text(min_size=1, max_size=10), st.text(max_size=200))
def test_a_button_fits(question: int, choice_id: str, label: str) -> None:
    """The platform takes 64 bytes of ours, and a label that is not empty."""
    choices = (Choice(choice_id=choice_id, label=label),)
    markup = markup_of(owed(PRIVATE, choices=choices, question=question))
    rows = markup["inline_keyboard"]
    assert isinstance(rows, list)
    button: dict[str, str] = rows[0][0]

    assert button["text"]
    assert len(button["text"]) <= 60
    assert len(button["callback_data"].encode()) <= 64
