"""What is said while a turn works, and when."""

import json
from dataclasses import replace

import pytest

from koboshi.domain.ids import CallId, ChannelName, DeliveryId, SessionId, TurnId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryState,
    Later,
    Reroute,
    SendOutcome,
    Settle,
    Unsure,
    after_send,
    ending_of,
)
from koboshi.domain.outbox import Moved as ChatMoved
from koboshi.domain.progress import (
    ProgressFacts,
    Rest,
    Rewrite,
    Say,
    Telling,
    Told,
    doing,
    ordinal_in,
    progress_cause,
    telling_of,
)
from koboshi.domain.route import Route
from koboshi.domain.transcript import Call, CallRecord, Effect

ROUTE = Route(channel=ChannelName("fake:main"), chat="room")
MINUTE = 60_000
BEGIN = 1_000 * MINUTE


def under_way(tool: str, **arguments: object) -> CallRecord:
    call = Call(
        call_id=CallId("1.0"), tool=tool, arguments=json.dumps(arguments), effect=Effect.NONE
    )
    return CallRecord(call=call, started_ms=BEGIN)


def said_at(ms: int, *, ordinal: int = 1, settled: bool = True, known: str | None = "p1") -> Told:
    return Told(ordinal=ordinal, at_ms=ms, is_settled=settled, platform_id=known)


def test_a_command_that_waits_for_others_to_end_is_said_to_wait() -> None:
    """Issue 13: no model thinks, and nothing runs yet."""
    waiting = replace(under_way("terminal", command="make test"), started_ms=None)

    assert doing((), str, (waiting,)) == "waiting for a slot before running `make test`"
    assert doing((), str, (waiting, waiting)).endswith("`make test` and 1 more")
    assert doing((under_way("fetch"),), str, (waiting,)) == "using `fetch`"


def telling(
    now_ms: int, told: Told | None = None, *, can_edit: bool = False, since_ms: int = BEGIN
) -> Telling:
    facts = ProgressFacts(
        route=ROUTE,
        since_ms=since_ms,
        now_ms=now_ms,
        under_way=(under_way("terminal", command="make test"),),
        told=told,
    )
    return telling_of(facts, every_ms=3 * MINUTE, can_edit=can_edit, redact=lambda text: text)


def words(record: CallRecord, *more: CallRecord) -> str:
    return doing((record, *more), lambda text: text.replace("hunter2", "***"))


def test_nothing_is_said_before_the_interval_is_over() -> None:
    """S102: and it is known how long that still is."""
    assert telling(BEGIN + MINUTE) == Rest(wait_ms=2 * MINUTE)


def test_after_the_interval_it_says_how_long_and_what() -> None:
    """S103: the time is that of the turn."""
    assert telling(BEGIN + 3 * MINUTE + 20_000) == Say(
        ordinal=1, text="Still working, 3 min, running `make test`."
    )


def test_the_next_one_comes_an_interval_after_the_last_and_has_its_own_number() -> None:
    """S99: at most one in each interval, from any source."""
    last = said_at(BEGIN + 4 * MINUTE)
    assert telling(BEGIN + 5 * MINUTE, last) == Rest(wait_ms=2 * MINUTE)
    again = telling(BEGIN + 7 * MINUTE, last)
    assert again == Say(ordinal=2, text="Still working, 7 min, running `make test`.")


def test_where_a_message_can_be_edited_it_is() -> None:
    """S102."""
    last = said_at(BEGIN + 3 * MINUTE)
    again = telling(BEGIN + 6 * MINUTE, last, can_edit=True)
    assert again == Rewrite(platform_id="p1", text="Still working, 6 min, running `make test`.")


def test_one_that_never_arrived_is_not_edited_but_followed_by_another() -> None:
    last = said_at(BEGIN + 3 * MINUTE, known=None)
    assert isinstance(telling(BEGIN + 6 * MINUTE, last, can_edit=True), Say)


@pytest.mark.parametrize("can_edit", [False, True])
def test_none_is_added_to_one_that_waits_to_be_sent(can_edit: bool) -> None:
    last = said_at(BEGIN + 3 * MINUTE, settled=False, known=None)
    assert isinstance(telling(BEGIN + 9 * MINUTE, last, can_edit=can_edit), Rest)


def test_what_was_said_before_a_question_is_left_alone() -> None:
    """S103: after the answer the time runs anew, and the message is a new one, further down."""
    last, answered = said_at(BEGIN + 3 * MINUTE, ordinal=4), BEGIN + 60 * MINUTE
    assert isinstance(telling(answered + MINUTE, last, since_ms=answered, can_edit=True), Rest)
    assert telling(answered + 3 * MINUTE, last, since_ms=answered, can_edit=True) == Say(
        ordinal=5, text="Still working, 3 min, running `make test`."
    )


def test_a_clock_that_was_set_back_does_not_silence_it() -> None:
    last = said_at(BEGIN + 3 * MINUTE)
    back = telling(BEGIN - 600 * MINUTE, last)
    assert back == Say(ordinal=2, text="Still working, 0 s, running `make test`.")


def test_what_a_turn_does_is_told_in_a_few_words() -> None:
    assert doing((), str) == "thinking"
    assert words(under_way("read_file", path="notes.md")) == "using `read_file` on `notes.md`"
    assert words(under_way("tracker_list")) == "using `tracker_list`"
    both = words(under_way("terminal", command="make"), under_way("pause"), under_way("pause"))
    assert both == "running `make` and 2 more"


def test_a_long_command_is_one_short_line_that_hides_nothing() -> None:
    command = "echo `id`\n\u202eecho  two\x1b[31m" + " and more" * 50
    told = words(under_way("terminal", command=command))
    assert told.startswith("running `echo 'id' echo two and more")
    assert len(told) < 80
    assert told.count("`") == 2


@pytest.mark.parametrize("arguments", ["", "[1]", "[" * 100_000, '{"command": 3}', "\x00"])
def test_arguments_that_are_no_object_do_no_harm(arguments: str) -> None:
    call = Call(call_id=CallId("1.0"), tool="odd", arguments=arguments, effect=Effect.NONE)
    assert doing((CallRecord(call=call),), str) == "using `odd`"


@pytest.mark.parametrize(
    "command",
    [
        "login hunter2",
        "API_TOKEN=abcdef make",
        "curl -H 'Authorization: Bearer abcdef'",
        "git clone https://ann:abcdef@example.com/x",
        "mysql --password abcdef",
        f"{'x' * 57} hunter2",
    ],
)
def test_secrets_are_not_told(command: str) -> None:
    told = words(under_way("terminal", command=command))
    assert "abcdef" not in told
    assert "hunt" not in told


def test_a_cause_tells_its_number() -> None:
    assert ordinal_in(progress_cause(TurnId(12), 34)) == 34


@pytest.mark.parametrize("outcome", [Later(wait_ms=1_000), Unsure(reason="reset")])
def test_a_notice_that_could_not_be_sent_is_not_sent_later(outcome: SendOutcome) -> None:
    """S100: it must not hold up what is said after it, nor be said twice."""
    change = after_send(notice(), outcome)
    assert isinstance(change, Settle)
    assert change.state is DeliveryState.ABANDONED


def test_a_notice_follows_its_chat() -> None:
    assert after_send(notice(), ChatMoved(chat="hall")) == Reroute(chat="hall")


def test_a_notice_that_waited_for_a_minute_is_no_longer_true() -> None:
    assert ending_of(replace(notice(), age_ms=MINUTE)) is None
    ending = ending_of(replace(notice(), age_ms=MINUTE + 1))
    assert ending is not None
    assert not ending.is_told


def notice() -> Delivery:
    return Delivery(
        delivery_id=DeliveryId(1),
        session_id=SessionId(1),
        turn_id=TurnId(1),
        route=ROUTE,
        cause=progress_cause(TurnId(1), 1),
        part=1,
        parts=1,
        text="Still working.",
        choices=(),
        question=None,
        anchor="",
        attempts=1,
        created_ms=BEGIN,
        is_ambiguous=False,
        may_be_duplicate=False,
    )
