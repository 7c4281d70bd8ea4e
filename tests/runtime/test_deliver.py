"""What a platform may do to a delivery, and what people then see."""

from pathlib import Path

import pytest
from anyio import Event

from koboshi.domain import phrases
from koboshi.domain.ids import DeliveryId
from koboshi.domain.outbox import (
    Delivery,
    DeliveryLimits,
    Later,
    Moved,
    Refused,
    SendOutcome,
    Sent,
    Unsure,
)
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.ports.channel import Abilities
from tests.harness.compose import Bounds
from tests.harness.invariants import check_rows
from tests.harness.platform import (
    FINDING,
    IDEMPOTENT,
    NON_IDEMPOTENT,
    in_turn,
    only_in,
)
from tests.runtime.gateway import Life, Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import says, script

ARRIVED = Unsure(reason="reset"), True
"""It arrived, and we do not know."""
LOST = Unsure(reason="reset"), False
"""It did not arrive, and we do not know."""


@pytest.fixture
def setting(home: Path) -> Setting:
    return Setting(home=home)


async def test_a_delivery_waits_as_long_as_the_platform_asks(setting: Setting) -> None:
    """Later: provably not sent, so it is sent again plainly, and not before."""
    setting.platform.outcomes = in_turn((Later(wait_ms=45_000), False))
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        waited = life.clock.monotonic() - began

    assert 45 <= waited < 50
    (_, shown) = setting.platform.tried
    assert (shown.attempts, shown.is_ambiguous, shown.may_be_duplicate) == (2, False, False)


async def test_the_wait_is_remembered_over_a_death(setting: Setting) -> None:
    """S145, S148: the next life waits for the rest of it."""
    setting.platform.outcomes = in_turn((Later(wait_ms=600_000), False))
    async with living(setting) as life:
        began = life.clock.now_ms()
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.passes(10)
    async with living(setting) as life:
        await life.shows("room", "hello")
        assert life.clock.now_ms() - began >= 600_000

    check_rows(setting.rows())


async def test_others_do_not_wait_for_a_chat_that_must(setting: Setting) -> None:
    """S52, S164: only the chat that the platform is cross with waits."""
    setting.platform.outcomes = only_in("room", in_turn((Later(wait_ms=60_000), False)))
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.tried, "the first try")
        began = life.clock.monotonic()
        await life.says("other", "echo hello")
        await life.shows("other", "hello")
        assert life.clock.monotonic() - began < 1
        await life.shows("room", "hello")


@pytest.mark.parametrize("wait_s", [30, 600])
async def test_the_other_threads_of_a_chat_wait_with_it(setting: Setting, wait_s: int) -> None:
    """Where a platform cannot tell repeats apart, its chats are served one send at a time."""
    setting.platform.outcomes = in_turn((Later(wait_ms=wait_s * 1_000), False))
    async with living(setting) as life:
        await life.says("room", "echo first", thread="one")
        await life.until(lambda: setting.platform.tried, "the first try")
        began = life.clock.monotonic()
        await life.says("room", "echo second", thread="two")
        await life.until(lambda: setting.platform.texts("room", "two"), "the second thread")
        assert life.clock.monotonic() - began >= wait_s - 1
        await life.until(lambda: setting.platform.texts("room", "one"), "the first thread")


async def test_the_other_threads_of_a_chat_wait_also_after_a_death(setting: Setting) -> None:
    """S148: the platform asked for quiet in the chat, and does not care that we died."""
    async with living(setting) as life:
        await life.says("room", "echo early", thread="one")
        await life.until(lambda: setting.platform.shown, "the first thread")
        setting.platform.outcomes = in_turn((Later(wait_ms=600_000), False))
        await life.says("room", "echo late", thread="two")
        await life.until(lambda: len(setting.platform.tried) == 2, "the platform wants quiet")
        await life.says("room", "echo next", thread="one")
        await life.passes(1)
    async with living(setting) as life:
        await life.passes(60)

    assert setting.platform.texts("room", "one") == ["early"]


async def test_a_session_hears_everything_in_order(setting: Setting) -> None:
    """S93, S150: an answer that must wait is overtaken neither by the next nor by a command's
    reply."""
    setting.platform.outcomes = in_turn((Later(wait_ms=20_000), False))
    async with living(setting) as life:
        await life.says("room", "echo one")
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.says("room", "echo two")
        await life.passes(1)
        await life.says("room", "/help")
        await life.until(lambda: len(setting.platform.shown) == 3, "all three")

    (one, two, helped) = setting.platform.texts("room")
    assert (one, two) == ("one", "two")
    assert "/stop" in helped
    check_rows(setting.rows())


@pytest.mark.parametrize("abilities, at_once", [(NON_IDEMPOTENT, 1), (IDEMPOTENT, 3)])
async def test_where_repeats_cannot_be_told_apart_one_send_is_under_way_in_a_chat(
    setting: Setting, abilities: Abilities, at_once: int
) -> None:
    """S146: so at most one is ever of unknown outcome there; others are not held up by that."""
    setting.platform.abilities = abilities
    gate = setting.platform.gates["room"] = Event()
    async with living(setting) as life:
        for thread in ("one", "two", "three"):
            await life.says("room", f"echo {thread}", thread=thread)
        await life.says("other", "echo hello")
        await life.shows("other", "hello")
        await life.passes(50)
        gate.set()
        await life.rests()

    for thread in ("one", "two", "three"):
        assert setting.platform.texts("room", thread) == [thread]
    assert setting.platform.sending_at_once["room"] == at_once
    check_rows(setting.rows())


@pytest.mark.parametrize(
    "first, seen",
    [
        (ARRIVED, ["hello", f"{DUPLICATE_LABEL}hello"]),
        (LOST, [f"{DUPLICATE_LABEL}hello"]),
    ],
)
async def test_a_send_of_unknown_outcome_is_repeated_with_a_label(
    setting: Setting, first: tuple[SendOutcome, bool], seen: list[str]
) -> None:
    """S145, S146: never lost, and never twice without saying so."""
    setting.platform.outcomes = in_turn(first)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", *seen)
        await life.passes(100)

    assert setting.platform.texts("room") == seen
    check_rows(setting.rows())


@pytest.mark.parametrize("first", [ARRIVED, LOST])
async def test_where_a_repeat_is_recognised_it_is_repeated_plainly(
    setting: Setting, first: tuple[SendOutcome, bool]
) -> None:
    """S146, S149: the person sees it once, without a label."""
    setting.platform.abilities = IDEMPOTENT
    setting.platform.outcomes = in_turn(first)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: len(setting.platform.tried) == 2, "the second try")
        await life.passes(100)

    assert setting.platform.texts("room") == ["hello"]
    assert {delivery.delivery_id for delivery in setting.platform.tried} == {1}
    check_rows(setting.rows())


async def test_what_is_found_is_not_sent_again(setting: Setting) -> None:
    """S146: the platform can tell that it arrived."""
    setting.platform.abilities = FINDING
    setting.platform.outcomes = in_turn(ARRIVED)
    setting.platform.found = lambda _: Sent(platform_id="found")
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", "hello")
        await life.passes(100)

    assert len(setting.platform.tried) == 1
    (row,) = setting.rows().outbox
    assert (row["state"], row["platform_id"], row["labelled"]) == ("delivered", "found", 0)


async def test_what_cannot_be_found_is_sent_with_a_label(setting: Setting) -> None:
    """S146: the outcome is unknown, and the person is told so."""
    setting.platform.abilities = FINDING
    setting.platform.outcomes = in_turn(LOST)
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", f"{DUPLICATE_LABEL}hello")


async def test_a_search_that_fails_is_made_again_and_harms_no_other(setting: Setting) -> None:
    """S52, S146: it is neither an answer nor a reason to send a second copy."""
    setting.platform.abilities = FINDING
    setting.platform.outcomes = only_in("room", in_turn(ARRIVED))
    searches = 0

    def found(_: Delivery) -> SendOutcome:
        nonlocal searches
        searches += 1
        if searches < 3:
            raise ConnectionResetError("the platform hung up")
        return Sent(platform_id="found")

    setting.platform.found = found
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: searches == 3, "it is found")
        await life.says("other", "echo hello")
        await life.shows("other", "hello")

    assert setting.platform.texts("room") == ["hello"]
    check_rows(setting.rows())


@pytest.mark.parametrize("found", [None, Later(wait_ms=0)])
async def test_what_was_looked_for_is_not_looked_for_at_each_try(
    setting: Setting, found: SendOutcome | None
) -> None:
    """S146, S148: looking costs the platform's patience; it would never come to be sent."""
    searches = 0

    def look(_: Delivery) -> SendOutcome | None:
        nonlocal searches
        searches += 1
        return found

    busy = Later(wait_ms=1_000), False
    setting.platform.abilities = FINDING
    setting.platform.found = look
    setting.platform.outcomes = in_turn(LOST, busy, busy)
    label = DUPLICATE_LABEL if found is None else ""
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", f"{label}hello")

    assert searches == 1
    assert len(setting.platform.tried) == 4
    check_rows(setting.rows())


async def test_a_send_that_breaks_is_of_unknown_outcome(setting: Setting) -> None:
    """A channel's bug, or a library that raises: the words may have arrived."""

    def break_once(delivery: Delivery) -> None:
        if delivery.attempts == 1:
            raise RuntimeError("a bug of the channel")

    setting.platform.outcomes = break_once
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.shows("room", f"{DUPLICATE_LABEL}hello")


async def test_an_unknown_outcome_is_repeated_with_growing_pauses(setting: Setting) -> None:
    """Issue 12, A1: sent, sent again with a label, and both times the outcome is unknown. It was
    given up then; now it is repeated, ever more seldom, until the platform says yes."""
    lost = [LOST] * 4
    setting.platform.outcomes = in_turn(*lost)
    async with living(setting) as life:
        began = life.clock.monotonic()
        await life.says("room", "echo hello")
        await life.shows("room", f"{DUPLICATE_LABEL}hello")
        waited = life.clock.monotonic() - began
        await life.rests()

    assert 5 + 10 + 20 + 40 <= waited < 80
    rows = setting.rows()
    check_rows(rows)
    (row,) = rows.outbox
    assert (row["state"], row["attempts"], row["unsure"]) == ("delivered", 5, 4)


@pytest.mark.parametrize("outcome", [(Later(wait_ms=0), False), LOST], ids=["later", "lost"])
async def test_what_is_never_taken_ends_by_its_age(
    setting: Setting, outcome: tuple[SendOutcome, bool]
) -> None:
    """S148; issue 12, A1: nothing but its age ends it, the person is told, and the next one is
    tried."""
    setting.platform.abilities = IDEMPOTENT
    setting.bounds = Bounds(deliveries=DeliveryLimits(age_ms_max=200_000))
    setting.platform.outcomes = lambda delivery: outcome if delivery.delivery_id == 1 else None
    async with living(setting) as life:
        await life.says("room", "echo one")
        await life.says("room", "echo two")
        await life.until(lambda: len(setting.platform.texts("room")) == 2, "the next, the notice")

    rows = setting.rows()
    check_rows(rows)
    assert rows.outbox[0]["state"] == "abandoned"
    assert "expired" in rows.outbox[0]["reason"]
    two, notice = setting.platform.texts("room")
    assert two == "two"
    assert notice == phrases.undelivered([DeliveryId(1)])


async def test_what_is_too_old_is_not_sent(setting: Setting) -> None:
    """S148: it expires, with a reason; newer words are sent."""
    setting.bounds = Bounds(deliveries=DeliveryLimits(age_ms_max=60_000))
    setting.platform.outcomes = in_turn((Later(wait_ms=70_000), False))
    async with living(setting) as life:
        await life.says("room", "echo old")
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.passes(30)
        await life.says("room", "echo new")
        await life.shows("room", "new", phrases.undelivered([DeliveryId(1)]))
        await life.rests()

    rows = setting.rows()
    check_rows(rows)
    assert [row["state"] for row in rows.outbox] == ["abandoned", "delivered", "delivered"]
    assert "expired" in rows.outbox[0]["reason"]


async def test_what_the_platform_refuses_is_over(setting: Setting) -> None:
    """S146, S149: not tried again, with the reason; the turn is over and the next words go out."""
    setting.platform.outcomes = in_turn((Refused(reason="the text is forbidden"), False))
    async with living(setting) as life:
        await life.says("room", "echo bad")
        await life.says("room", "echo good")
        await life.until(lambda: "good" in setting.platform.texts("room"), "the next words")
        await life.passes(100)

    rows = setting.rows()
    check_rows(rows)
    assert rows.outbox[0]["state"] == "rejected"
    assert rows.outbox[0]["reason"] == "the text is forbidden"
    assert [turn["state"] for turn in rows.turns] == ["done", "done"]


async def test_a_chat_that_moved_is_followed(setting: Setting) -> None:
    """The session moves with everything that is owed to it; it is the same conversation."""
    setting.platform.outcomes = only_in("group", lambda _: (Moved(chat="supergroup"), False))
    async with living(setting) as life:
        await life.says("group", "echo one")
        await life.shows("supergroup", "one")
        await life.says("supergroup", "echo two")
        await life.shows("supergroup", "one", "two")

    rows = setting.rows()
    check_rows(rows)
    assert [row["chat"] for row in rows.sessions] == ["supergroup"]


async def test_a_chat_that_moved_to_where_a_session_is_already(setting: Setting) -> None:
    """The first person to write there keeps their conversation; the words still arrive, once, and
    the platform is not asked without end."""
    setting.platform.outcomes = only_in("group", lambda _: (Moved(chat="supergroup"), False))
    async with living(setting) as life:
        await life.says("supergroup", "echo here")
        await life.shows("supergroup", "here")
        await life.says("group", "echo moved")
        await life.until(lambda: "moved" in setting.platform.texts("supergroup"), "it arrives")
        await life.passes(600)

    assert setting.platform.texts("supergroup") == ["here", "moved"]
    assert len(setting.platform.tried) < 10
    check_rows(setting.rows())


@pytest.mark.parametrize(
    "abilities, seen",
    [
        (NON_IDEMPOTENT, ["hello", f"{DUPLICATE_LABEL}hello"]),
        (IDEMPOTENT, ["hello"]),
        (FINDING, ["hello"]),
    ],
)
async def test_the_power_fails_while_an_answer_is_being_sent(
    setting: Setting, abilities: Abilities, seen: list[str]
) -> None:
    """S145, S146, S147, S149: the next life knows that it does not know. The model is not asked
    again, and no person sees it twice without a label."""
    model = setting.model = WatchedModel()
    setting.platform.abilities = abilities
    setting.platform.found = lambda _: Sent(platform_id="found")
    setting.platform.gates["room"] = Event()
    async with living(setting) as life:
        await life.says("room", "echo hello")
        await life.until(lambda: setting.platform.shown, "it is under way")
    assert setting.rows().one("outbox")["state"] == "sending"
    del setting.platform.gates["room"]
    async with living(setting) as life:
        await life.shows("room", *seen)
        await life.passes(100)

    assert setting.platform.texts("room") == seen
    assert len(model.requests) == 1
    check_rows(setting.rows())


async def test_the_power_fails_before_an_answer_is_sent(setting: Setting) -> None:
    """S54, S145, S147: it was owed and never tried: it is sent plainly, without the model."""
    model = setting.model = WatchedModel()

    def lose_power(verb: str) -> None:
        life.tracked.is_dead |= verb == "outbox.claim"

    async with living(setting) as life:
        life.tracked.on_verb = lose_power
        await life.says("room", "echo hello")
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    assert setting.rows().one("outbox")["state"] == "owed"
    async with living(setting) as life:
        await life.shows("room", "hello")
        await life.passes(100)

    assert len(model.requests) == 1
    assert len(setting.platform.tried) == 1


async def test_the_power_fails_between_two_parts_of_an_answer(setting: Setting) -> None:
    """S150: the parts that arrived stay, the others follow, in order."""
    text = "\n\n".join(f"paragraph {number} " + "word " * 40 for number in range(20))
    sent = 0

    def lose_power(verb: str) -> None:
        nonlocal sent
        sent += verb == "outbox.settle"
        life.tracked.is_dead |= verb == "outbox.claim" and sent == 2

    async with living(setting) as life:
        life.tracked.on_verb = lose_power
        await life.says("room", script(says(text)))
        await life.until(lambda: life.tracked.is_dead, "the power fails")
    assert len(setting.platform.shown) == 2
    async with living(setting) as life:
        await life.until(lambda: "paragraph 19" in "".join(setting.platform.texts("room")), "all")

    assert "".join(setting.platform.texts("room")) == text
    check_rows(setting.rows())


async def test_the_outbox_is_asked_once_for_each_part(setting: Setting) -> None:
    """What settles the last one says that there is no more: every claim is a commit."""
    text = "\n\n".join(f"paragraph {number} " + "word " * 40 for number in range(20))
    verbs: list[str] = []
    async with living(setting) as life:
        life.tracked.on_verb = verbs.append
        await life.says("room", script(says(text)))
        await life.until(lambda: "paragraph 19" in "".join(setting.platform.texts("room")), "all")
        await life.says("room", "echo behind it")
        await life.until(lambda: "behind it" in setting.platform.texts("room"), "the last")
        await life.passes(1)

    assert len(setting.platform.shown) > 2
    assert verbs.count("outbox.claim") == len(setting.platform.shown)


async def test_a_stopped_turn_does_not_say_what_it_still_owed(setting: Setting) -> None:
    """S87, S162: a question that was not sent yet is abandoned with its turn; the answers of
    earlier turns still go out."""
    setting.platform.outcomes = in_turn((Later(wait_ms=30_000), False))
    async with living(setting) as life:
        await life.says("room", "echo earlier")
        await life.until(lambda: setting.platform.tried, "the first try")
        await life.says("room", "ask me which drink: tea or coffee")
        await _until_waiting(life)
        await life.says("room", "/stop")
        await life.until(lambda: len(setting.platform.shown) == 2, "the reply")
        await life.passes(100)

    (earlier, stopped) = setting.platform.texts("room")
    assert earlier == "earlier"
    assert stopped.startswith("Stopped")
    check_rows(setting.rows())


async def _until_waiting(life: Life) -> None:
    """Until the turn of the room has asked its question."""
    verbs: list[str] = []
    life.tracked.on_verb = verbs.append
    await life.until(lambda: "turns.ask" in verbs, "it asks")
    await life.passes(0.1)
