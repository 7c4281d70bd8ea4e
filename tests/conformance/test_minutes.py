"""The minutes of a gateway: every line of the journal is counted once."""

from tests.harness.homes import WEB, Home


async def note(home: Home) -> None:
    tokens, costs = {"m": 5, "unpriced": 7}, {"m": 250}
    await home.store.minutes.note(tokens=tokens, costs=costs, memory_bytes=1_000, store_bytes=2_000)


async def test_messages_and_answer_times_are_counted_once_over_a_crash(home: Home) -> None:
    await note(home)
    claim = await home.work_on("hello")
    home.clock.move(3_000)
    await home.answer(claim)
    await note(home)
    await home.reopen(crash=True)
    await note(home)

    minutes = await home.store.views.minutes(0)

    assert sum(each.messages for each in minutes) == 1
    assert [each.latency_p95_ms for each in minutes if each.latency_p95_ms] == [3_000]
    assert minutes[-1].memory_bytes == 1_000
    assert minutes[-1].tokens == (("m", 5), ("unpriced", 7))
    assert minutes[-1].costs == (("m", 250),)
    heard = {name for each in minutes for name, _ in each.heard}
    assert heard <= {WEB}


async def test_old_minutes_go(home: Home) -> None:
    await note(home)
    home.clock.move(3 * 86_400_000)
    await note(home)

    assert len(await home.store.views.minutes(0)) == 1
