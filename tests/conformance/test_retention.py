"""Issue 13, A4: what is old and over is forgotten, and nothing that is decided or shown from it
changes."""

import pytest

from koboshi.domain.transcript import Answer, Message
from koboshi.ports.views import Page
from koboshi.runtime import retention as forgetting_module
from tests.harness.fake_time import DAY_MS
from tests.harness.homes import WEB, Home, a_call
from tests.harness.past import forget, later, talk

ALL = Page(limit=10_000, before=2**40, is_open=False)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forgetting_module, "PAUSE_SECONDS", 0.0)


async def seqs(home: Home) -> list[int]:
    return sorted(line.seq for line in await home.store.views.journal(ALL))


async def test_lines_and_deliveries_of_turns_that_closed_long_ago_are_forgotten(home: Home) -> None:
    """Issue 13, A4."""
    await talk(home, 3)
    await later(home, 91)
    boot = await home.store.retention.begin(home.worker.worker_id)
    lines, deliveries = await forget(home)

    assert (lines > 10, deliveries) == (True, 2)
    # The end of the last boot is a line of now.
    assert [seq for seq in await seqs(home) if seq < boot - 1] == []
    # The newest with an id of the platform stays: a later send of unknown outcome is looked for
    # behind it.
    (kept,) = await home.store.views.deliveries(ALL)
    assert kept.text == "answer 2"
    assert await forget(home) == (0, 0)


async def test_what_is_not_old_enough_stays(home: Home) -> None:
    await talk(home, 3)
    await later(home, 89)
    assert await forget(home) == (0, 0)


async def test_zero_is_for_ever(home: Home) -> None:
    await talk(home, 3)
    await later(home, 1_000)
    assert await forget(home, journal_days=0) == (0, 0)
    lines, deliveries = await forget(home, deliveries_days=0)
    assert (lines > 10, deliveries) == (True, 0)


async def test_deliveries_stay_as_long_as_the_lines_that_show_them(home: Home) -> None:
    await talk(home, 3)
    await later(home, 50)
    assert await forget(home, journal_days=90, deliveries_days=7) == (0, 0)


@pytest.mark.parametrize("what", ["turn", "waiting", "owed", "process"])
async def test_a_session_with_something_open_keeps_everything(home: Home, what: str) -> None:
    """Issue 13, A4: and the sessions beside it do not."""
    await talk(home, 2, chat="bob")
    await talk(home, 2)
    claim = await home.work_on("one more")
    if what == "owed":
        await home.answer(claim, "never delivered")
    if what == "waiting":
        await home.say("and this")
    if what == "process":
        (call_id,) = await home.propose(claim, a_call())
        await home.start(claim, call_id)
        await home.store.processes.begin(
            claim, call_id, command="sleep", workdir=".", is_foreground=False, watchers=()
        )
        await home.finish(claim, call_id)
        await home.answer(claim, "in the background")
        await home.deliver()
    ann, bob = await home.session_id(), await home.session_id("bob")
    before = [line for line in await home.store.views.journal(ALL) if line.session_id == ann]
    await later(home, 91)
    await forget(home)

    after = await home.store.views.journal(ALL)
    assert [line for line in after if line.session_id == ann] == before
    assert [line for line in after if line.session_id == bob] == []


async def test_what_opens_between_the_look_and_the_deleting_is_kept(home: Home) -> None:
    """Issue 13, A4: the look is made beside the writer, so the writer looks again."""
    await talk(home, 2)
    await later(home, 91)
    retention, now_ms = home.store.retention, home.clock.now_ms()
    boot = await retention.begin(home.worker.worker_id)
    lines = await retention.lines(0, now_ms - 90 * DAY_MS, boot)
    deliveries = await retention.deliveries(0, now_ms - 90 * DAY_MS)
    assert lines.ids
    assert deliveries.ids
    before = await seqs(home)
    await home.say("back again")

    # The lines of the first boot belong to no session.
    await retention.forget_lines(lines.ids)
    assert await retention.forget_deliveries(deliveries.ids) == 0
    ann = await home.session_id()
    kept = [line.seq for line in await home.store.views.journal(ALL) if line.session_id == ann]
    assert len(kept) > 10
    assert min(kept) < max(before)


async def test_no_id_is_used_again(home: Home) -> None:
    """Issue 13, A4: the newest row of each table stays, however old it is."""
    await talk(home, 2)
    newest_line, newest_delivery = max(await seqs(home)), 2
    home.clock.move(91 * DAY_MS)
    # Even where no boot protects its lines.
    retention, before_ms = home.store.retention, home.clock.now_ms()
    lines = await retention.lines(0, before_ms, 2**40)
    await retention.forget_lines(lines.ids)
    deliveries = await retention.deliveries(0, before_ms)
    await retention.forget_deliveries(deliveries.ids)
    assert await seqs(home) == [newest_line]

    await talk(home, 1)
    assert min(set(await seqs(home)) - {newest_line}) == newest_line + 1
    ids = {delivery.delivery_id for delivery in await home.store.views.deliveries(ALL)}
    assert ids == {newest_delivery, newest_delivery + 1}


async def test_lines_of_this_boot_stay(home: Home) -> None:
    """Issue 13, A4: metrics count from them."""
    await talk(home, 3)
    before = await seqs(home)
    home.clock.move(91 * DAY_MS)
    lines, deliveries = await forget(home)
    assert (lines, deliveries) == (0, 2)
    assert await seqs(home) == before


async def test_keys_and_transcripts_stay(home: Home) -> None:
    """Issue 13, A4: a message that is sent again after years is still the same one."""
    await home.say("hello", key="1")
    claim = await home.claim()
    await home.answer(claim, "hi")
    await home.deliver()
    turn = await home.view(claim.turn_id)
    await later(home, 1_000)
    await forget(home)

    assert (await home.say("hello", key="1")).is_duplicate
    assert await home.view(claim.turn_id) == turn
    steps = await home.store.views.steps_of(claim.turn_id, 10)
    assert [step.text for step in steps] == ["hello", "hi"]


async def test_a_chat_whose_lines_are_gone_shows_what_was_said(home: Home) -> None:
    """Issue 13, A4: from the transcript, and in the list of chats, too."""
    await talk(home, 2)
    await later(home, 91)
    assert await home.store.views.past(WEB, "ann", after=0, limit=100) is None
    await forget(home)

    past = await home.store.views.past(WEB, "ann", after=0, limit=100)
    assert past is not None
    said = [each.body.text for each in past.said if isinstance(each.body, Message | Answer)]
    assert said == ["question 0", "answer 0", "question 1", "answer 1"]
    assert await home.store.views.past(WEB, "ann", after=past.seq, limit=100) is None
    assert await home.store.views.last_event(WEB, "ann") == past.seq
    (chat,) = await home.store.views.chats(WEB, 10)
    assert chat.chat == "ann"

    await talk(home, 1)
    (event, *_) = await home.store.views.events(WEB, "ann", after=past.seq, limit=100)
    assert isinstance(event.body, Message)
    again = await home.store.views.past(WEB, "ann", after=0, limit=100)
    assert again is not None
    assert [each.body.text for each in again.said] == said


async def test_a_notice_of_lost_deliveries_goes_with_what_it_tells_of(home: Home) -> None:
    """Issue 13, A4: the rows that link them hold up nothing."""
    await talk(home, 1)
    await home.reopen(crash=False)
    await talk(home, 3)
    home.sql("INSERT INTO undelivered VALUES (3, 1), (3, 2)")
    await later(home, 91)
    _, deliveries = await forget(home)
    assert deliveries == 3
