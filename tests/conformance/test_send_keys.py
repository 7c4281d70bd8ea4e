"""A send has one key, however often it is tried and whatever dies in between."""

from tests.harness.homes import Home


async def test_a_repeat_after_a_crash_has_the_same_key_and_others_have_theirs(home: Home) -> None:
    """Issue 17: by it, a platform tells a repeat from something new."""
    for chat in ("ann", "bob"):
        await home.answer(await home.work_on(chat=chat), "an answer")
    first, other = await home.take_delivery("ann"), await home.take_delivery("bob")
    await home.reopen(crash=True)
    again = await home.take_delivery("ann")

    assert again.send_key == first.send_key != other.send_key
    assert again.is_ambiguous
    assert len(first.send_key) <= 25
    assert first.send_key.endswith(f"-{first.delivery_id}")
