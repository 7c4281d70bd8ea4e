"""A turn whose rows cannot all be true."""

from koboshi.domain.recovery import VerdictKind
from tests.harness.homes import Home


async def test_a_turn_whose_facts_contradict_each_other_is_closed_alone(home: Home) -> None:
    """A bug of ours; the person is told, and the others go on."""
    broken = await home.work_on("one", chat="ann")
    whole = await home.work_on("two", chat="bob")
    await home.store.close()
    home.sql("UPDATE turns SET generation = 7 WHERE turn_id = 1")
    await home.boot()

    explained = await home.explain(broken.turn_id)
    assert explained.why is not None
    assert explained.why.rule == "contradiction"
    verdict = await home.recover(broken.turn_id)
    assert (verdict.kind, verdict.rule) == (VerdictKind.GIVE_UP, "contradiction")
    assert (await home.view(broken.turn_id)).state == "failed"
    assert (await home.recover(whole.turn_id)).kind is VerdictKind.RESUME
    (apology,) = await home.deliver()
    assert "does not fit together" in apology.text
