"""The home of another gateway in the store: people, paused schedules and files, once."""

from dataclasses import replace

from koboshi.domain.incoming import (
    Incoming,
    IncomingMemory,
    IncomingSchedule,
    Newcomer,
    StagedFile,
)
from koboshi.domain.memory import Scope, ScopeKind, Shelf
from koboshi.domain.role import Role
from koboshi.domain.schedule import ScheduleState
from koboshi.ports.store import Arrival
from tests.harness.homes import FRONT, WEB, Home
from tests.harness.timed import CRON, an_order

MOVED = Incoming(
    digest="d1",
    source="hermes",
    people=(
        Newcomer(channel=FRONT, person="cat", name="Cat", role=Role.OWNER),
        Newcomer(channel=FRONT, person="ben"),
        Newcomer(channel=FRONT, person="ann"),  # whom the configuration names
    ),
    schedules=(
        IncomingSchedule(key="a", channel=FRONT, chat="ann", person="ann", order=an_order(CRON)),
        IncomingSchedule(key="b", channel=FRONT, chat="ann", person="ann", order=an_order(CRON)),
    ),
    files=(StagedFile(staged="x", target="skills/x"),),
)
CATS = Scope(channel=FRONT, kind=ScopeKind.PERSON, name="cat")
PAGE = Scope(channel=WEB, kind=ScopeKind.PERSON, name="")
REMEMBERED = replace(
    MOVED,
    memory=IncomingMemory(
        texts=(
            (Shelf.USER, "likes tea"),
            *((Shelf.MEMORY, each * 900) for each in "xyz"),
            (Shelf.MEMORY, "short"),
        ),
        scopes=(CATS, PAGE),
    ),
)


async def memories(home: Home) -> dict[str, list[str]]:
    """Whose memory has which entries, cut short."""
    return {
        str(view.scope): sorted(each.text[:9] for each in view.entries)
        for view in await home.store.memory.views(9)
    }


async def test_people_and_paused_schedules_come_in_once(home: Home) -> None:
    moved = await home.store.imports.commit(MOVED)

    assert moved.is_new
    assert moved.people == 2
    assert [len(times) for _, times in moved.schedules] == [3, 3]
    assert await home.store.people.role_of(FRONT, "cat") is Role.OWNER
    assert await home.store.people.role_of(FRONT, "ben") is Role.MEMBER
    views = await home.store.schedules.views(limit=10)
    assert [each.schedule.state for each in views] == [ScheduleState.PAUSED] * 2

    assert not (await home.store.imports.commit(MOVED)).is_new
    assert len(await home.store.schedules.views(limit=10)) == 2


async def test_a_home_that_changed_since_adds_what_is_new(home: Home) -> None:
    await home.store.imports.commit(MOVED)
    third = IncomingSchedule(key="c", channel=FRONT, chat="ann", person="ann", order=an_order(CRON))
    later = replace(MOVED, digest="d2", schedules=(*MOVED.schedules, third))

    moved = await home.store.imports.commit(later)

    assert moved.is_new
    assert moved.people == 0
    assert len(await home.store.schedules.views(limit=10)) == 3


async def test_a_revoked_person_stays_out(home: Home) -> None:
    await home.store.imports.commit(MOVED)
    await home.store.people.revoke(FRONT, "ben")

    await home.store.imports.commit(replace(MOVED, digest="d2"))

    assert not await home.store.people.is_allowed(FRONT, "ben")


async def test_files_are_owed_until_they_are_in_place(home: Home) -> None:
    await home.store.imports.commit(MOVED)
    await home.reopen(crash=True)

    (found,) = await home.store.imports.unfinished()
    assert (found.digest, found.source, found.files) == ("d1", "hermes", MOVED.files)

    await home.store.imports.finish("d1")
    assert await home.store.imports.unfinished() == ()


async def test_what_was_remembered_is_the_owners_once(home: Home) -> None:
    moved = await home.store.imports.commit(REMEMBERED)

    expected = ["likes tea", "short", "x" * 9, "y" * 9]
    assert moved.remembered == ((str(CATS), 4), (str(PAGE), 4))
    assert [what.partition(": ")[2][:5] for what, _ in moved.not_remembered] == ["«zzzz"] * 2
    assert await memories(home) == {str(CATS): expected, str(PAGE): expected}

    await home.reopen(crash=True)
    again = await home.store.imports.commit(REMEMBERED)
    assert (again.is_new, again.remembered) == (False, ())
    assert await memories(home) == {str(CATS): expected, str(PAGE): expected}


async def test_the_next_turn_of_the_owner_is_shown_it(home: Home) -> None:
    await home.store.imports.commit(REMEMBERED)

    page = await home.work_on(chat="tab")
    seen = (await home.store.memory.look(page)).memory
    assert seen is not None
    assert seen.texts(Shelf.USER) == ["likes tea"]
    for person, is_private, knows in (("cat", True, True), ("ben", True, False), ("cat", False, 0)):
        inbound = home.inbound("hello", chat=f"{person}{is_private}", person=person, channel=FRONT)
        inbound = replace(inbound, is_private=is_private, is_group=not is_private)
        await home.accept(Arrival(inbound=inbound))
        seen = (await home.store.memory.look(await home.claim())).memory
        assert (seen is not None) == bool(knows), (person, is_private)


async def test_a_home_that_changed_since_adds_what_it_remembered_since(home: Home) -> None:
    await home.store.imports.commit(REMEMBERED)
    memory = replace(REMEMBERED.memory, texts=((Shelf.USER, "likes tea"), (Shelf.USER, "is tall")))

    moved = await home.store.imports.commit(replace(REMEMBERED, digest="d2", memory=memory))

    assert moved.remembered == ((str(CATS), 1), (str(PAGE), 1))
    assert (await memories(home))[str(PAGE)].count("likes tea") == 1


async def test_a_person_who_is_no_owner_here_is_not_given_the_memory(home: Home) -> None:
    """One who is known as a member stays one, and a right that was taken away stays away."""
    member = replace(MOVED, people=(Newcomer(channel=FRONT, person="cat"),))
    await home.store.imports.commit(member)
    for step, digest in enumerate(("d2", "d3")):
        if step:
            await home.store.people.revoke(FRONT, "cat")
        moved = await home.store.imports.commit(replace(REMEMBERED, digest=digest))
        assert moved.not_remembered[0] == (f"memory of {CATS}", "this person is no owner here")
    assert str(CATS) not in await memories(home)


UNOWNED = replace(
    REMEMBERED,
    people=tuple(replace(each, role=Role.MEMBER) for each in MOVED.people),
    memory=replace(REMEMBERED.memory, scopes=(PAGE,)),
)
FOR_CAT = IncomingSchedule(key="c", channel=FRONT, chat="cat", person="cat", order=an_order(CRON))


async def test_an_owner_who_is_named_later_gets_what_was_left(home: Home) -> None:
    """Issue 21: a move without an owner puts the memory on the page alone; the next one, with an
    owner, brings it to their chats, too, and changes nothing else."""
    await home.store.imports.commit(UNOWNED)
    assert set(await memories(home)) == {str(PAGE)}
    again = replace(REMEMBERED, schedules=(*REMEMBERED.schedules, FOR_CAT))

    named = await home.store.imports.commit(again)

    assert (named.is_new, named.is_owned_now) == (False, True)
    assert [whose for whose, _ in named.remembered] == [str(CATS)]
    assert len(named.schedules) == 1
    assert await home.store.people.role_of(FRONT, "cat") is Role.OWNER
    shelves = await memories(home)
    assert shelves[str(CATS)] == shelves[str(PAGE)]

    once_more = await home.store.imports.commit(again)
    assert not once_more.is_owned_now
    assert not once_more.remembered
    assert await memories(home) == shelves


async def test_what_one_owner_got_goes_to_no_other(home: Home) -> None:
    await home.store.imports.commit(REMEMBERED)
    bens = Scope(channel=FRONT, kind=ScopeKind.PERSON, name="ben")
    people = tuple(
        replace(each, role=Role.OWNER if each.person == "ben" else Role.MEMBER)
        for each in MOVED.people
    )
    other = replace(
        REMEMBERED, people=people, memory=replace(REMEMBERED.memory, scopes=(bens, PAGE))
    )

    named = await home.store.imports.commit(other)

    assert named.not_remembered[0] == (f"memory of {bens}", f"{CATS} has it as the first owner")
    assert str(bens) not in await memories(home)


async def test_a_person_whose_right_was_taken_away_is_named_in_vain(home: Home) -> None:
    await home.store.imports.commit(UNOWNED)
    await home.store.people.revoke(FRONT, "cat")

    named = await home.store.imports.commit(REMEMBERED)

    assert not named.is_owned_now
    assert "may not write here" in named.not_remembered[0][1]
    assert await home.store.people.role_of(FRONT, "cat") is not Role.OWNER
