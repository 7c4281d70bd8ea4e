"""The verbs of moving in. People, schedules, what was remembered and the list of files are one
transaction; the files follow it, and a start finishes what a kill left."""

import json

from koboshi.domain.incoming import Incoming, IncomingSchedule, MovedIn, Newcomer, StagedFile
from koboshi.domain.memory import Scope, ScopeKind
from koboshi.domain.memory_elsewhere import NO_ROOM
from koboshi.domain.phrases import excerpt
from koboshi.domain.role import Role
from koboshi.domain.route import Route
from koboshi.domain.schedule import ScheduleEvent
from koboshi.domain.wish import MakeSchedule, MoveSchedule, WishOutcome, WishStatus
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import text
from koboshi.kernel.filing import FILING
from koboshi.kernel.keys import chat_key, key_named, people_key
from koboshi.kernel.memory_changes import bring
from koboshi.kernel.sessions import find_or_make_session, known_as_private
from koboshi.kernel.transaction import Keys, Readers, Reading, Transaction, Writer
from koboshi.kernel.wishes import grant, wisher_in

NO_ENTRY = 0
"""No message of theirs let these people in."""


class ImportVerbs:
    def __init__(self, writer: Writer, readers: Readers, context: VerbContext) -> None:
        self._writer = writer
        self._readers = readers
        self._context = context

    async def commit(self, incoming: Incoming) -> MovedIn:
        chats = {chat_key(each.channel, each.chat) for each in incoming.schedules}
        chats |= {people_key(each.channel) for each in incoming.people}
        keys = Keys(chats=(*sorted(chats), key_named("imports")))
        return await self._writer.write(
            "imports.commit", lambda tx: _commit(tx, self._context, incoming), keys
        )

    async def unfinished(self) -> tuple[Incoming, ...]:
        def look(tx: Reading) -> tuple[Incoming, ...]:
            rows = tx.rows("imports_unfinished")
            return tuple(
                Incoming(digest=text(digest), source=text(source), files=_files_of(text(files)))
                for digest, source, files in rows
            )

        return await self._readers.read(look)

    async def finish(self, digest: str) -> None:
        await self._writer.write(
            "imports.finish", lambda tx: tx.change("import_finish", digest=digest, now=tx.now_ms)
        )


def _commit(tx: Transaction, context: VerbContext, incoming: Incoming) -> MovedIn:
    if tx.row("import_known", digest=incoming.digest) is not None:
        return _with_owner(tx, context, incoming)
    files = json.dumps([(each.staged, each.target) for each in incoming.files])
    tx.change(
        "import_insert",
        digest=incoming.digest,
        source=incoming.source,
        files=files,
        now=tx.now_ms,
    )
    people = sum(_let_in(tx, context, each) for each in incoming.people)
    granted = [
        (each.order.name, _make(tx, context, incoming.source, each)) for each in incoming.schedules
    ]
    remembered, not_remembered = _remember(tx, context, incoming)
    return MovedIn(
        is_new=True,
        people=people,
        remembered=remembered,
        not_remembered=not_remembered,
        schedules=tuple((name, done.times) for name, done in granted if done.schedule is not None),
        refused=tuple((name, done.words) for name, done in granted if done.schedule is None),
    )


def _with_owner(tx: Transaction, context: VerbContext, incoming: Incoming) -> MovedIn:
    """It moved in before. An owner who was not named then gets what had none: the
    role, the memory, and schedules that name no chat."""
    named = [each for each in incoming.people if each.role is Role.OWNER]
    owner = next((each for each in named if not _is_owner(tx, context, each)), None)
    if owner is None:
        return MovedIn(is_new=False)
    who = {"channel": owner.channel, "person": owner.person}
    if not tx.change("person_set_role", **who, role=Role.OWNER, now=tx.now_ms):
        why = "this person may not write here; `koboshi pairing approve` lets them in"
        return MovedIn(is_new=False, not_remembered=((f"{owner.channel}/{owner.person}", why),))
    theirs = [
        each
        for each in incoming.schedules
        if (each.channel, each.person) == (owner.channel, owner.person)
    ]
    granted = [(each.order.name, _make(tx, context, incoming.source, each)) for each in theirs]
    remembered, not_remembered = _remember(tx, context, incoming)
    return MovedIn(
        is_new=False,
        is_owned_now=True,
        remembered=tuple(each for each in remembered if each[1]),
        not_remembered=not_remembered,
        schedules=tuple(
            (name, done.times) for name, done in granted if done.status is WishStatus.DONE
        ),
    )


def _is_owner(tx: Transaction, context: VerbContext, newcomer: Newcomer) -> bool:
    return context.role_of(tx, newcomer.channel, newcomer.person) is Role.OWNER


def _let_in(tx: Transaction, context: VerbContext, newcomer: Newcomer) -> bool:
    """A person who is known here stays what they are, also one whose right was taken away."""
    who = {"channel": newcomer.channel, "person": newcomer.person}
    if _is_owner(tx, context, newcomer) or tx.row("person_known", **who) is not None:
        return False
    tx.change(
        "person_insert",
        **who,
        name=newcomer.name,
        entry_id=NO_ENTRY,
        role=newcomer.role,
        now=tx.now_ms,
    )
    return True


def _make(
    tx: Transaction, context: VerbContext, source: str, incoming: IncomingSchedule
) -> WishOutcome:
    """The schedule, paused."""
    route = Route(channel=incoming.channel, chat=incoming.chat, thread=incoming.thread)
    session = find_or_make_session(tx, route)
    if incoming.chat == incoming.person:
        session = known_as_private(tx, session, incoming.person)
    wisher = wisher_in(tx, context, incoming.channel, incoming.person, is_operator=True)
    by = f"moved:{source}:{incoming.key}"
    made = grant(tx, context, session, wisher, MakeSchedule(order=incoming.order), by, FILING)
    if made.status is WishStatus.DONE and made.schedule is not None:
        pause = MoveSchedule(schedule_id=made.schedule.schedule_id, event=ScheduleEvent.PAUSED)
        grant(tx, context, session, wisher, pause, by, FILING)
    return made


def _remember(
    tx: Transaction, context: VerbContext, incoming: Incoming
) -> tuple[tuple[tuple[str, int], ...], tuple[tuple[str, str], ...]]:
    """Bring what was remembered into the memories of the owner. It may be private: a person who is
    no owner here, known before or barred, gets none of it."""
    taken: list[tuple[str, int]] = []
    left: list[tuple[str, str]] = []
    for scope in incoming.memory.scopes if incoming.memory.texts else ():
        if context.role_of(tx, scope.channel, scope.name) is not Role.OWNER:
            left.append((f"memory of {scope}", "this person is no owner here"))
            continue
        if other := _who_has_it(tx, incoming, scope):
            left.append((f"memory of {scope}", f"{other} has it as the first owner"))
            continue
        by = f"migrate:{incoming.digest}:{scope}"
        fits = bring(tx, context.memory_limits, scope, incoming.memory.texts, by)
        taken.append((str(scope), len(fits.taken)))
        left += [(f"memory of {scope}: «{excerpt(words, 60)}»", NO_ROOM) for _, words in fits.left]
    return tuple(taken), tuple(left)


def _who_has_it(tx: Transaction, incoming: Incoming, scope: Scope) -> str:
    """The person who got it as the owner, if that was another one; else empty."""
    for each in incoming.people:
        other = Scope(channel=each.channel, kind=ScopeKind.PERSON, name=each.person)
        by = f"migrate:{incoming.digest}:{other}"
        if other != scope and scope.name and tx.row("memory_revision_by", made_by=by) is not None:
            return str(other)
    return ""


def _files_of(stored: str) -> tuple[StagedFile, ...]:
    return tuple(StagedFile(staged=staged, target=target) for staged, target in json.loads(stored))
