"""Issue 12, C18: a torture that does not come to rest says what is still open, and waits for the
pauses that the gateway itself shows."""

from koboshi.torture.rest import OpenDelivery, OpenEntry, RestRoute, StillOpen, TurnLeftOpen

NOW_MS = 1_000_000
WEB = RestRoute(channel="web:main", chat="p1")
TOPIC = RestRoute(channel="telegram:main", chat="-100", thread="7")


def test_everything_that_is_open_is_named() -> None:
    turns = (
        TurnLeftOpen(
            turn_id=5, route=TOPIC, state="queued", event="postponed", due_ms=NOW_MS + 30_000
        ),
        TurnLeftOpen(turn_id=6, route=WEB, state="running", event="claimed"),
    )
    reason = "no answer"
    deliveries = (
        OpenDelivery(
            delivery_id=9,
            session_id=2,
            cause="answer:4",
            state="owed",
            attempts=6,
            reason=reason,
            due_ms=NOW_MS + 79_600,
        ),
        OpenDelivery(
            delivery_id=10,
            session_id=2,
            cause="answer:5",
            state="owed",
            attempts=0,
            due_ms=NOW_MS - 1,
        ),
    )
    still_open = StillOpen(
        turns=turns,
        entries=(OpenEntry(entry_id=7, session_id=1, kind="message", state="waiting"),),
        deliveries=deliveries,
        unreached=("telegram:main: not connected",),
        runners=(62,),
        updates=3,
    )

    assert still_open.words(NOW_MS).split("; ") == [
        "t5 in telegram:main/-100/7 is queued, postponed, due in 30 s",
        "t6 in web:main/p1 is running, claimed",
        "the message m7 in s1 is waiting",
        "d9 (answer:4) in s2 is owed (no answer), tried 6 times, due in 80 s",
        "d10 (answer:5) in s2 is owed, tried 0 times, due now",
        "the runner of p62 lives",
        "3 updates of the platform are not acknowledged",
        "telegram:main: not connected",
    ]


def test_the_last_moment_that_is_waited_for_counts() -> None:
    waits = TurnLeftOpen(
        turn_id=5, route=WEB, state="queued", event="resumed", due_ms=NOW_MS + 2_000
    )
    owed = OpenDelivery(
        delivery_id=9,
        session_id=2,
        cause="answer:4",
        state="owed",
        attempts=6,
        due_ms=NOW_MS + 80_000,
    )

    assert StillOpen(turns=(waits,), deliveries=(owed,)).due_in_s(NOW_MS) == 80
    assert StillOpen(turns=(waits,)).due_in_s(NOW_MS) == 2


def test_what_is_due_or_waits_for_no_time_gives_no_time() -> None:
    at_work = TurnLeftOpen(turn_id=5, route=WEB, state="running", event="claimed")
    late = TurnLeftOpen(
        turn_id=6, route=WEB, state="queued", event="resumed", due_ms=NOW_MS - 2_000
    )

    assert StillOpen(turns=(at_work, late), runners=(1,), updates=2).due_in_s(NOW_MS) == 0
    assert StillOpen().due_in_s(NOW_MS) == 0
    assert StillOpen().words(NOW_MS) == "nothing that the gateway shows"


def test_what_is_gone_since_the_last_look_has_ended() -> None:
    """A group with a rate of 20 messages in a minute empties a long queue, one by one."""
    queue = tuple(
        OpenDelivery(delivery_id=number, session_id=2, cause="step:1", state="owed", attempts=0)
        for number in range(3)
    )
    before = StillOpen(deliveries=queue)

    assert StillOpen(deliveries=queue[1:]).has_ended_some_of(before)
    assert not StillOpen(deliveries=queue).has_ended_some_of(before)
    # More to do is no end.
    assert not before.has_ended_some_of(StillOpen(deliveries=queue[1:]))
