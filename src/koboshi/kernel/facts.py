"""What is durably known about a turn, read for recovery and for `explain` alike."""

from collections.abc import Sequence
from dataclasses import replace

from koboshi.domain.command import QuestionKind
from koboshi.domain.errors import ContradictoryFacts
from koboshi.domain.ids import ChannelName, EntryId, TurnId
from koboshi.domain.inbox import EntryKind
from koboshi.domain.recovery import Interruption, Policy, TurnFacts, Verdict, VerdictKind, decide
from koboshi.domain.role import NoRuling, Role, RoleStanding, least_role, why_no_ruling, work_folder
from koboshi.domain.schedule import Trigger
from koboshi.domain.session import Session
from koboshi.domain.standing import INTERRUPTED, stand_of
from koboshi.domain.transcript import (
    Author,
    CallRecord,
    Effect,
    Need,
    Question,
    StepKind,
    tail_of,
)
from koboshi.domain.turn import Claim, TurnEvent, TurnState
from koboshi.domain.worker import OPEN_BOOTS, Breaker, breaker_of
from koboshi.kernel.away import away_since_ms, is_agent_away
from koboshi.kernel.child_rows import depth_of
from koboshi.kernel.context import VerbContext
from koboshi.kernel.decode import first_text, number, numbers, text, texts, words_of
from koboshi.kernel.process_rows import process_of
from koboshi.kernel.rows import (
    BY_PERSON,
    EntryRow,
    TurnRow,
    call_of,
    find_session,
    is_gone,
    is_shown_in,
    read_question,
    read_session,
    read_unresolved,
    read_waiting,
    turn_of,
    worked_ms_of,
    worker_of,
)
from koboshi.kernel.transaction import Reading

LEFT_LOOKED_AT = 1_000
"""How many interrupted turns are read at most to count where turns stand."""

_GRAVEST = (Effect.ONCE, Effect.RESUMABLE, Effect.REPEATABLE, Effect.NONE)


def policy_of(context: VerbContext, session: Session) -> Policy:
    policy = context.world.policy
    chosen = session.settings.policy
    return policy if chosen is None else replace(policy, recovery=chosen)


def verdict_over(facts: TurnFacts, policy: Policy) -> Verdict:
    """The verdict. Facts that contradict each other are a bug, and get a rule of that name."""
    try:
        return decide(facts, policy)
    except ContradictoryFacts as error:
        return Verdict(kind=VerdictKind.GIVE_UP, rule="contradiction", because=str(error))


def facts_of(
    tx: Reading,
    context: VerbContext,
    turn: TurnRow,
    session: Session,
    arrived: EntryId | None = None,
) -> TurnFacts:
    """Everything that is durably known about a turn and matters for recovery."""
    world, channel = context.world, session.route.channel
    unresolved = read_unresolved(tx, turn.turn_id)
    under_way, is_host_away = _under_way(tx, context, turn, unresolved)
    if context.is_shared:
        is_host_away |= is_agent_away(tx, context.home, turn.turn_id, context.node_wait_ms)
    is_waiting = turn.state is TurnState.WAITING
    is_dead = turn.state is TurnState.RUNNING
    asked_by = None
    if is_waiting and turn.question_seq is not None:
        asked_by = read_question(tx, turn.question_seq).author
    gravest = min(under_way, key=_GRAVEST.index, default=None)
    return TurnFacts(
        state=turn.state,
        tail=tail_of(last=_last_kind(tx, turn), is_waiting=is_waiting, unresolved=unresolved),
        under_way=None if is_waiting else gravest,
        is_claimed_before=turn.epoch > 0,
        is_willed=_is_willed(turn),
        is_postponed=is_postponed(turn),
        is_current=turn.generation == session.generation,
        recoveries=turn.recoveries,
        crash_streak=turn.crash_streak + int(is_dead),
        idle_ms=max(0, tx.now_ms - max(turn.progressed_ms, worked_ms_of(tx, turn))),
        message_waits=waiting_message(tx, context, turn, session, arrived) is not None,
        message_behind=_message_behind(tx, context, session),
        asked_by=asked_by,
        is_person_allowed=may_run(tx, context, channel, turn),
        is_channel_known=channel in world.channels,
        is_interactive=world.channels.get(channel, False),
        interruption=_interruption(tx, context, turn),
        policy=policy_of(context, session).recovery,
        breaker=breaker_now(tx, context)[0],
        is_attached=turn.epoch > 0 and is_attached(tx, context, turn.turn_id),
        is_host_away=is_host_away and not is_waiting,
    )


def _under_way(
    tx: Reading, context: VerbContext, turn: TurnRow, unresolved: Sequence[CallRecord]
) -> tuple[list[Effect], bool]:
    """The effects of calls that were started and have no result; and whether a command of one runs
    on a node that has just gone away. One that is away for longer cannot be asked, so its call must
    not be repeated."""
    effects, is_host_away = [], False
    for record in (each for each in unresolved if each.is_under_way):
        effect = record.call.effect
        if context.is_shared and effect is Effect.RESUMABLE:
            call_id = record.call.call_id
            row = tx.row("process_by_call", turn_id=turn.turn_id, call_id=call_id)
            since_ms = None if row is None else away_since_ms(tx, context.home, process_of(row))
            if since_ms is not None:
                is_host_away |= tx.now_ms - since_ms < context.node_wait_ms
                effect = Effect.ONCE
        effects.append(effect)
    return effects, is_host_away


def is_attached(tx: Reading, context: VerbContext, turn_id: TurnId) -> bool:
    """Whether a foreign agent of this home works on the turn, as far as is stored, or has said
    more. What one of another home wrote can only be read there."""
    home = context.home
    return tx.row("agent_turn_attached", turn_id=turn_id, home=home) is not None


def is_worked_on(tx: Reading, turn: TurnRow) -> bool:
    return turn.state is TurnState.RUNNING and not is_gone(tx, turn.worker_id)


def verdict_now(tx: Reading, context: VerbContext, turn: TurnRow) -> Verdict | None:
    """What recovery would decide about a turn that was claimed before and has no worker now. None
    for every other turn: its state says enough."""
    is_alive = turn.state in (TurnState.QUEUED, TurnState.RUNNING)
    if not is_alive or turn.epoch == 0 or is_worked_on(tx, turn):
        return None
    session = read_session(tx, turn.session_id)
    return verdict_over(facts_of(tx, context, turn, session), policy_of(context, session))


def stand_now(tx: Reading, context: VerbContext, turn: TurnRow) -> str:
    """Where a turn stands, as in `domain/standing.py`."""
    verdict = verdict_now(tx, context, turn)
    return stand_of(turn.state, verdict, is_worked_on=is_worked_on(tx, turn))


def stands_counted(tx: Reading, context: VerbContext) -> dict[str, int]:
    """How many turns that are not closed stand where. Turns without a worker are read one by one
    only while the boot breaker is not closed, and at most `LEFT_LOOKED_AT` of them."""
    rows = tx.rows("turns_alive_by_state")
    counts = {text(state): number(count) for state, count in rows}
    if breaker_now(tx, context)[0] is Breaker.CLOSED:
        left = tx.number("count_turns_left")
        _count(counts, TurnState.RUNNING, INTERRUPTED, left)
        return counts
    for row in tx.rows("turns_left", limit=LEFT_LOOKED_AT):
        turn = turn_of(row)
        _count(counts, turn.state, stand_now(tx, context, turn), 1)
    return counts


def _count(counts: dict[str, int], state: str, stand: str, turns: int) -> None:
    """Count turns of a state where they stand instead."""
    if turns and stand != state:
        counts[state] -= turns
        counts[stand] = counts.get(stand, 0) + turns


def breaker_now(tx: Reading, context: VerbContext) -> tuple[Breaker, int]:
    """The state of the boot breaker, and until when it lasts."""
    if not context.world.policy.has_breaker:
        return Breaker.CLOSED, 0
    found = numbers(tx.rows("workers_unclean", limit=OPEN_BOOTS))
    if context.is_shared:
        found += numbers(tx.rows("workers_dead", limit=OPEN_BOOTS))
    return breaker_of(sorted(found, reverse=True)[:OPEN_BOOTS], tx.now_ms)


def waiting_message(
    tx: Reading,
    context: VerbContext,
    turn: TurnRow,
    session: Session,
    arrived: EntryId | None = None,
) -> EntryRow | None:
    """The oldest message of an allowed person that was accepted after the question or the death.
    `arrived` counts as such, whatever the clock says."""
    entries = read_waiting(tx, turn.session_id)
    if not entries:
        return None
    # The order of the commits says what came first: clocks jump, and a batch has one time.
    newest_before = tx.number("entry_newest_before_move", turn_id=turn.turn_id)
    channel = session.route.channel
    for waiting in entries:
        is_newer = waiting.entry_id > newest_before
        if waiting.entry_id == arrived:
            is_after = True
        elif turn.state is TurnState.RUNNING:
            is_after = is_newer and _came_after_death(tx, turn, waiting)
        else:
            is_after = is_newer
        is_heard = is_after and _is_heard(turn, waiting)
        if not is_heard or not context.allows(tx, channel, waiting.sender):
            continue
        if no_ruling(tx, context, session, turn, waiting.sender) is None:
            return waiting
    return None


def _came_after_death(tx: Reading, turn: TurnRow, waiting: EntryRow) -> bool:
    """Whether an entry was accepted by another worker than the claim's, which was dead by then."""
    if waiting.accepted_by in (None, turn.worker_id):
        return False
    row = tx.row(
        "came_after_death",
        worker_id=turn.worker_id,
        by=waiting.accepted_by,
        received_ms=waiting.received_ms,
    )
    return row is not None


def _is_heard(turn: TurnRow, waiting: EntryRow) -> bool:
    """Whether it is a message that matters to the turn. A message that was sent to wait or to
    steer, that was passed on, or that has no words, answers no question."""
    if waiting.kind != EntryKind.MESSAGE:
        return False
    if turn.state is not TurnState.WAITING:
        return True
    words = words_of(waiting.body)
    return words.busy is None and not words.is_forwarded and not words.is_wordless


def _message_behind(tx: Reading, context: VerbContext, session: Session) -> bool:
    """Whether a message of an allowed person waits, at whatever time it was accepted. A choice
    never does: it answers a question, and opens no turn."""
    return any(
        waiting.kind == EntryKind.MESSAGE
        and words_of(waiting.body).question is None
        and context.allows(tx, session.route.channel, waiting.sender)
        for waiting in read_waiting(tx, session.session_id)
    )


def _last_kind(tx: Reading, turn: TurnRow) -> StepKind | None:
    kind = first_text(tx.row("step_last_kind", **turn.span))
    return None if kind is None else StepKind(kind)


def _is_willed(turn: TurnRow) -> bool:
    if turn.state is not TurnState.QUEUED:
        return False
    resumed_by_person = turn.event == TurnEvent.RESUMED and turn.reason == BY_PERSON
    return turn.event == TurnEvent.REPLIED or resumed_by_person


def is_postponed(turn: TurnRow) -> bool:
    return turn.state is TurnState.QUEUED and turn.event == TurnEvent.POSTPONED


def _interruption(tx: Reading, context: VerbContext, turn: TurnRow) -> Interruption:
    if turn.state is TurnState.RUNNING:
        held = tx.row("worker_by_id", worker_id=turn.worker_id) if context.is_shared else None
        is_elsewhere = held is not None and worker_of(held).home != context.home
        return Interruption.NODE_LOST if is_elsewhere else Interruption.CRASH
    if turn.event == TurnEvent.RELEASED:
        return Interruption.DRAIN
    return Interruption.NONE


def are_senders_allowed(
    tx: Reading, context: VerbContext, channel: ChannelName, turn_id: TurnId, person: str
) -> bool:
    """Whether all senders of messages in the turn are allowed, and `person`, for whom it runs. A
    report of a process has no sender."""
    if not context.allows(tx, channel, person):
        return False
    others = texts(tx.rows("turn_senders", turn_id=turn_id, person=person))
    return all(context.allows(tx, channel, each) for each in others)


def barred_in(
    tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow
) -> tuple[str, ...]:
    """The senders who are not allowed, and so keep the turn from running."""
    others = texts(tx.rows("turn_senders", turn_id=turn.turn_id, person=turn.person))
    people = [turn.person, *others]
    return tuple(each for each in people if not context.allows(tx, channel, each))


def may_run(tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow) -> bool:
    return are_senders_allowed(tx, context, channel, turn.turn_id, turn.person)


def has_allowed_sender(
    tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow
) -> bool:
    """Whether a message of a person who may use the gateway is in the turn."""
    senders = texts(tx.rows("turn_senders", turn_id=turn.turn_id, person=""))
    return any(context.allows(tx, channel, each) for each in senders)


def role_of_turn(tx: Reading, context: VerbContext, channel: ChannelName, turn_id: TurnId) -> Role:
    """The least role of all whose words the turn holds, as they are now."""
    people = texts(tx.rows("turn_speakers", turn_id=turn_id))
    return least_role(context.role_of(tx, channel, person) for person in people)


def least_speaker(tx: Reading, context: VerbContext, channel: ChannelName, turn: TurnRow) -> str:
    """In whose name the agent orders something: that of the turn's person, unless the turn holds
    words of a person with a lesser role. What it orders must not have more rights than it has."""
    role = role_of_turn(tx, context, channel, turn.turn_id)
    people = sorted(texts(tx.rows("turn_speakers", turn_id=turn.turn_id)))
    ranked = [turn.person, *people]
    return next((one for one in ranked if context.role_of(tx, channel, one) is role), turn.person)


def standing_of_turn(tx: Reading, context: VerbContext, claim: Claim) -> RoleStanding:
    session = read_session(tx, claim.session_id)
    channel = session.route.channel
    # On a channel that is one owner's, such as the page, every chat is.
    of_chat = context.role_of(tx, channel, session.person)
    begun = trigger_of_turn(tx, claim.turn_id)
    return RoleStanding(
        role=role_of_turn(tx, context, channel, claim.turn_id),
        # Beside a conversation, the work is done in the folder of that.
        folder=work_folder(_conversation_of(tx, session).session_id, of_chat),
        is_scheduled=begun is not None,
        is_quiet=begun is not None and begun.is_quiet,
        depth=depth_of(tx, session),
    )


def _conversation_of(tx: Reading, session: Session) -> Session:
    found = find_session(tx, session.route) if session.aside else None
    return session if found is None else found


def trigger_of_turn(tx: Reading, turn_id: TurnId) -> Trigger | None:
    """What the occasion that began a turn carries; None if no schedule began it."""
    body = first_text(tx.row("turn_occasion", turn_id=turn_id))
    return None if body is None else words_of(body).trigger


def no_ruling(
    tx: Reading, context: VerbContext, session: Session, turn: TurnRow, person: str
) -> NoRuling | None:
    """Why words of this person, in this session, do not decide about the approval that the turn
    waits for; None if they do, or if the turn waits for no approval. The one place that decides it:
    for messages, buttons, commands, and for what waited while the gateway was down."""
    if turn.state is not TurnState.WAITING or turn.question_seq is None:
        return None
    question = read_question(tx, turn.question_seq)
    if question_kind(tx, turn.turn_id, question) is not QuestionKind.APPROVAL:
        return None
    channel = read_session(tx, turn.session_id).route.channel
    why = why_no_ruling(
        context.role_of(tx, session.route.channel, person),
        role_of_turn(tx, context, channel, turn.turn_id),
        is_shown_here=is_shown_in(tx, session, turn),
    )
    # In the chat of the turn itself, such a turn is judged before a word of anyone is heard.
    is_here = turn.session_id == session.session_id
    return why if why or is_here or may_run(tx, context, channel, turn) else NoRuling.BARRED


def question_kind(tx: Reading, turn_id: TurnId, question: Question) -> QuestionKind:
    """What a question of the turn wants to know."""
    if question.author is Author.GATEWAY:
        return QuestionKind.OFFER
    calls = (call_of(row).call for row in tx.rows("calls_of_turn", turn_id=turn_id))
    need = next(call.need for call in calls if call.call_id == question.call_id)
    return QuestionKind.APPROVAL if need is Need.APPROVAL else QuestionKind.ANSWER


def turns_held_up(tx: Reading, context: VerbContext) -> tuple[TurnId, ...]:
    """Turns with a sender who is no longer allowed, and with a message that waits behind them."""
    found = []
    for turn_id, person, channel in tx.rows("turns_held_up"):
        one, name = TurnId(number(turn_id)), ChannelName(text(channel))
        if not are_senders_allowed(tx, context, name, one, text(person)):
            found.append(one)
    return tuple(found)
