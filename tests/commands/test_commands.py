"""Commands: what is one, what it does, and that every acknowledgement is true (S162)."""

from dataclasses import replace

import pytest

from koboshi.commands.parse import message_in, parse_command
from koboshi.commands.run import REPLY_CHARS_MAX, respond
from koboshi.domain.command import (
    Command,
    CommandName,
    Failed,
    OperatorAction,
    QuestionEnd,
    QuestionGlance,
    QuestionKind,
    Response,
    Retry,
    Ruling,
    SessionFacts,
)
from koboshi.domain.durations import ago, duration
from koboshi.domain.ids import TurnId
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.role import Role
from koboshi.domain.session import Busy, CutKind, Settings
from koboshi.domain.turn import CLOSED, OPEN, TurnState
from tests.harness.session_facts import BUSY, DONE, IDLE, NOW_MS, TURN


@pytest.mark.parametrize(
    "unsent, on_the_way, reply",
    [
        (1, 0, "Stopped: 1 part of my answer is not sent any more."),
        (3, 1, "Stopped: 3 parts of my answer are not sent any more. 1 part may still arrive."),
    ],
)
def test_a_stop_while_an_answer_goes_out_says_what_is_not_sent(
    unsent: int, on_the_way: int, reply: str
) -> None:
    """Issue 12, B15."""
    facts = replace(IDLE, unsent=unsent, on_the_way=on_the_way)

    assert response_to("/stop", facts) == Response(reply=reply, cut=CutKind.STOP)


def response_to(text: str, facts: SessionFacts) -> Response:
    command = parse_command(text)
    assert command is not None
    return respond(command, facts)


@pytest.mark.parametrize("name", list(CommandName))
@pytest.mark.parametrize("form", ["/{}", "  /{}", "/{}\n", "/{}@koboshi_bot", "/{}!"])
def test_every_command_is_recognised(name: CommandName, form: str) -> None:
    """S96: a command never becomes words for the model."""
    for written in (name.value, name.value.upper(), name.value.title()):
        command = parse_command(form.format(written))
        assert command is not None
        assert (command.name, command.argument) == (name, "")


@pytest.mark.parametrize(
    "text,argument",
    [("/stop all", "all"), ("/stop@bot  all ", "all"), ("/new\nlet us talk", "let us talk")],
)
def test_the_rest_of_the_text_is_the_argument(text: str, argument: str) -> None:
    command = parse_command(text)

    assert command is not None
    assert command.argument == argument


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "hello",
        "stop",
        "say /stop",
        "/",
        "/ hello",
        "//",
        "// a comment",
        "/usr/bin/ls",
        "/etc/passwd is a file",
        "/stop/all",
        "/5",
        "/?",
        "/_x",
    ],
)
def test_paths_and_lone_slashes_are_messages(text: str) -> None:
    assert parse_command(text) is None


def test_an_unknown_word_is_a_command_without_a_name() -> None:
    assert parse_command("/frobnicate it") == Command(name=None, said="/frobnicate", argument="it")


@pytest.mark.parametrize(
    "said,nearest",
    [("/stpo", "/stop"), ("/hlep@bot", "/help"), ("/STATSU", "/status"), ("/news", "/new")],
)
def test_the_nearest_command_is_offered(said: str, nearest: str) -> None:
    response = response_to(said, BUSY)

    assert response.cut is None
    assert f"Did you mean {nearest}?" in response.reply
    assert "/help" in response.reply


def test_a_word_like_no_command_points_to_help() -> None:
    assert response_to("/frobnicate", BUSY) == Response(
        reply="I do not know /frobnicate. /help lists what I understand."
    )


def test_help_names_every_command() -> None:
    response = response_to("/help", IDLE)

    assert response.cut is None
    assert all(f"/{name}" in response.reply for name in CommandName)
    assert "/stop all" in response.reply


def test_stop_with_nothing_to_stop_changes_nothing_and_says_so() -> None:
    """S82."""
    assert response_to("/stop", IDLE) == Response(reply="There is nothing to stop.")
    assert response_to("/stop all", IDLE) == Response(reply="There is nothing to stop.")


@pytest.mark.parametrize("state", sorted(OPEN))
def test_stop_ends_whatever_is_open(state: TurnState) -> None:
    """S80, S81: running, waiting or not yet started."""
    facts = replace(IDLE, open_turn=replace(TURN, state=state))

    assert response_to("/stop", facts) == Response(
        reply="Stopped: «build the house».", cut=CutKind.STOP
    )


@pytest.mark.parametrize(
    "waiting,counted",
    [(1, "1 waiting message was dropped."), (3, "3 waiting messages were dropped.")],
)
def test_stop_counts_the_messages_it_drops(waiting: int, counted: str) -> None:
    """S85."""
    response = response_to("/stop", replace(BUSY, waiting=waiting))

    assert response.reply == f"Stopped: «build the house». {counted}"
    assert response_to("/stop", replace(IDLE, waiting=waiting)) == Response(
        reply=counted, cut=CutKind.STOP
    )


def test_stop_names_the_processes_that_keep_running() -> None:
    """S85: they are the person's, and only `/stop all` ends them."""
    facts = replace(BUSY, running_processes=("p3 make test", "p4 npm start"))

    response = response_to("/stop", facts)

    assert response.cut is CutKind.STOP
    assert response.reply == (
        "Stopped: «build the house». "
        "Still running: p3 make test, p4 npm start. /stop all ends them, too."
    )


def test_stop_beside_a_running_process_cuts_nothing_and_shows_the_way() -> None:
    facts = replace(IDLE, running_processes=("p3 make test",))

    assert response_to("/stop", facts) == Response(
        reply="There is nothing to stop. Still running: p3 make test. /stop all ends it, too."
    )


@pytest.mark.parametrize("said", ["/stop all", "/stop ALL", "/stop all!"])
def test_stop_all_also_ends_the_processes(said: str) -> None:
    facts = replace(BUSY, waiting=1, running_processes=("p3 make test",))

    assert response_to(said, facts) == Response(
        reply="Stopped: «build the house». 1 waiting message was dropped. "
        "I am ending: p3 make test.",
        cut=CutKind.STOP_ALL,
    )


def test_stop_all_ends_processes_when_nothing_else_is_there() -> None:
    facts = replace(IDLE, running_processes=("p3 make test",))

    assert response_to("/stop all", facts) == Response(
        reply="I am ending: p3 make test.", cut=CutKind.STOP_ALL
    )


def test_stop_with_other_words_behind_it_stops() -> None:
    assert response_to("/stop it please", BUSY).cut is CutKind.STOP


def test_many_processes_are_summed_up() -> None:
    names = tuple(f"p{number} " + "sleep " * 50 for number in range(200))

    reply = response_to("/stop", replace(BUSY, running_processes=names)).reply

    assert "and 195 more" in reply
    assert len(reply) < 600


def test_new_keeps_the_old_conversation_but_does_not_look_at_it() -> None:
    facts = replace(IDLE, last_turn=DONE)

    assert response_to("/new", facts) == Response(
        reply="This is a new conversation. The old one is kept, but I no longer look at it.",
        cut=CutKind.NEW,
    )


def test_new_says_what_it_stopped_and_dropped() -> None:
    facts = replace(BUSY, waiting=2, running_processes=("p3 make test",))

    response = response_to("/new", facts)

    assert response.cut is CutKind.NEW
    assert "Stopped: «build the house». 2 waiting messages were dropped." in response.reply
    assert "Still running: p3 make test." in response.reply


def test_new_at_the_very_beginning_changes_nothing() -> None:
    response = response_to("/new", IDLE)

    assert response.cut is None
    assert "new conversation" in response.reply


@pytest.mark.parametrize(
    "state,sentence",
    [
        (TurnState.QUEUED, "In the queue: «build the house», begun 2 min ago."),
        (
            TurnState.RUNNING,
            "Being worked on: «build the house», begun 2 min ago, 7 steps so far, "
            "the last change 5 s ago.",
        ),
        (
            TurnState.WAITING,
            "Waiting for an answer: «build the house», asked 5 s ago, 7 steps so far.",
        ),
        (TurnState.SUSPENDED, "Set aside 5 s ago: «build the house» (its channel is gone)."),
    ],
)
def test_status_says_where_the_open_turn_stands(state: TurnState, sentence: str) -> None:
    reason = "its channel is gone" if state is TurnState.SUSPENDED else None
    facts = replace(IDLE, open_turn=replace(TURN, state=state, reason=reason), last_turn=DONE)

    assert response_to("/status", facts) == Response(reply=sentence)


def test_status_counts_what_waits_and_what_is_on_its_way() -> None:
    facts = replace(BUSY, waiting=2, owed=1, running_processes=("p3 make test",))

    assert response_to("/status", facts).reply.splitlines()[1:] == [
        "Waiting behind it: 2 messages.",
        "On the way to you: 1 message.",
        "Running in the background: p3 make test.",
    ]


def test_status_of_an_idle_session_names_the_last_turn() -> None:
    assert response_to("/status", replace(IDLE, last_turn=DONE)) == Response(
        reply="I am idle.\nLast: Done 5 s ago: «build the house»."
    )


def test_status_of_a_session_without_a_turn() -> None:
    assert response_to("/status", IDLE) == Response(
        reply="I am idle: nothing has been asked here yet."
    )


@pytest.mark.parametrize("state", sorted(TurnState))
def test_status_and_why_have_words_for_every_state_and_never_cut(state: TurnState) -> None:
    turn = replace(TURN, state=state, reason="empty-reply")
    facts = replace(IDLE, last_turn=turn, open_turn=turn if state in OPEN else None)

    for text in ("/status", "/why"):
        response = response_to(text, facts)
        assert response.cut is None
        assert "«build the house»" in response.reply


@pytest.mark.parametrize("state", sorted(CLOSED - {TurnState.DONE}))
def test_a_reason_is_told_in_words(state: TurnState) -> None:
    facts = replace(IDLE, last_turn=replace(TURN, state=state, reason="empty-reply"))

    assert "the model sent an empty answer twice" in response_to("/status", facts).reply


def test_a_turn_opened_by_a_report_has_no_request_to_quote() -> None:
    facts = replace(BUSY, open_turn=replace(TURN, request=""))

    assert response_to("/stop", facts).reply == "Stopped: what a background process reported."


def test_why_tells_the_story_of_the_open_turn_first() -> None:
    story = ("you wrote at 12:00", "the gateway died", "it went on from its last step")
    facts = replace(IDLE, open_turn=replace(TURN, story=story), last_turn=replace(DONE, turn_id=11))

    lines = response_to("/why", facts).reply.splitlines()

    assert lines[0].startswith("Being worked on: «build the house»")
    assert lines[0].endswith("(t12)")
    assert lines[1:] == [f"• {line}" for line in story]


def test_why_of_an_idle_session_is_about_the_last_turn() -> None:
    facts = replace(IDLE, last_turn=replace(DONE, story=("answered",)))

    assert response_to("/why", facts).reply.splitlines()[1:] == ["• answered"]


def test_why_without_any_turn() -> None:
    assert "nothing to explain" in response_to("/why", IDLE).reply


def test_a_long_story_keeps_its_newest_lines() -> None:
    story = tuple(f"line {number} " + "long " * 100 for number in range(1_000))
    facts = replace(IDLE, last_turn=replace(DONE, story=story))

    reply = response_to("/why", facts).reply

    assert len(reply) <= REPLY_CHARS_MAX
    assert "• line 999 " in reply
    assert "• line 0 " not in reply
    assert "earlier lines left out" in reply


@pytest.mark.parametrize(
    "text", ["/help", "/new", "/stop all", "/status", "/why", "/" + "x" * 9_000]
)
def test_replies_are_bounded(text: str) -> None:
    turn = replace(
        TURN, request="word " * 10_000, reason="why " * 10_000, story=("tale " * 10_000,) * 50
    )
    names = ("process " * 1_000,) * 50
    facts = replace(IDLE, open_turn=turn, last_turn=turn, waiting=9, running_processes=names)

    for state in OPEN:
        shown = replace(facts, open_turn=replace(turn, state=state))
        assert len(response_to(text, shown).reply) <= REPLY_CHARS_MAX


@pytest.mark.parametrize(
    "span_ms,words",
    [
        (-5, "0 s"),
        (0, "0 s"),
        (999, "0 s"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (60_000, "1 min"),
        (125_000, "2 min 5 s"),
        (3_600_000, "1 h"),
        (3 * 3_600_000 + 4 * 60_000 + 5_000, "3 h 4 min"),
        (86_400_000 + 59_000, "1 d"),
        (400 * 86_400_000 + 2 * 3_600_000, "400 d 2 h"),
    ],
)
def test_a_span_is_told_in_its_two_largest_units(span_ms: int, words: str) -> None:
    assert duration(span_ms) == words


def test_a_clock_that_went_back_makes_it_just_now() -> None:
    assert ago(NOW_MS + 5_000, NOW_MS) == "just now"
    assert ago(NOW_MS - 90_000, NOW_MS) == "1 min 30 s ago"


# ── /approve and /deny ──────────────────────────────────────────────────────────────────────────


APPROVAL = QuestionGlance(kind=QuestionKind.APPROVAL, text="May I run `rm -rf build`?")


@pytest.mark.parametrize(
    "said, reply, ruling",
    [
        ("/approve", "Approved: «May I run `rm -rf build`?».", Ruling(is_yes=True)),
        ("/deny", "Denied: «May I run `rm -rf build`?».", Ruling(is_yes=False)),
        (
            "/deny only the logs",
            "Denied: «May I run `rm -rf build`?».",
            Ruling(is_yes=False, words="only the logs"),
        ),
    ],
)
def test_an_open_approval_is_ruled_on(said: str, reply: str, ruling: Ruling) -> None:
    response = response_to(said, replace(BUSY, question=APPROVAL))

    assert response == Response(reply=reply, ruling=ruling)


def test_a_yes_with_words_behind_it_approves_nothing() -> None:
    response = response_to("/approve but only the logs", replace(BUSY, question=APPROVAL))

    assert response.ruling is None
    assert "/approve alone" in response.reply


@pytest.mark.parametrize("said", ["/approve", "/deny", "/deny with words"])
@pytest.mark.parametrize(
    "question, words",
    [
        (None, "nothing to approve or deny"),
        (replace(APPROVAL, kind=QuestionKind.ANSWER), "Just write your answer"),
        (replace(APPROVAL, kind=QuestionKind.OFFER), "write yes or no"),
        (replace(APPROVAL, end=QuestionEnd.EXPIRED), "has expired"),
        (replace(APPROVAL, end=QuestionEnd.REPLACED), "That question is closed"),
    ],
)
def test_without_an_open_approval_nothing_is_ruled_on(
    said: str, question: QuestionGlance | None, words: str
) -> None:
    response = response_to(said, replace(BUSY, question=question))

    assert response.ruling is None
    assert words in response.reply


@pytest.mark.parametrize("name", sorted(set(CommandName) - {CommandName.APPROVE, CommandName.DENY}))
def test_no_other_command_rules_on_an_approval(name: CommandName) -> None:
    assert response_to(f"/{name}", replace(BUSY, question=APPROVAL)).ruling is None


# ── what a person decides and sets ──────────────────────────────────────────────────────────────

LEFT = replace(BUSY, open_turn=replace(TURN, state=TurnState.SUSPENDED))
FAILED = replace(
    IDLE,
    last_turn=replace(TURN, state=TurnState.FAILED),
    failed=Failed(turn_id=TurnId(12), words="build the house"),
)


@pytest.mark.parametrize(
    "typed, meant",
    [("/resum", "/resume"), ("/retri", "/retry"), ("/que", "/queue"), ("/whoamI?", None)],
)
def test_a_near_miss_of_a_new_command_is_answered_with_it(typed: str, meant: str | None) -> None:
    reply = response_to(typed, IDLE).reply
    assert (f"Did you mean {meant}?" in reply) == (meant is not None)


def test_a_name_may_be_written_with_an_underscore() -> None:
    """Where a platform lets no hyphen stand in a command."""
    command = parse_command("/resume_policy ask")
    assert command is not None
    assert (command.name, command.argument) == (CommandName.RESUME_POLICY, "ask")


@pytest.mark.parametrize(
    "said, will", [("/resume", OperatorAction.RESUME), ("/drop", OperatorAction.DROP)]
)
@pytest.mark.parametrize("state", sorted(OPEN))
def test_a_will_concerns_exactly_what_no_worker_holds(
    said: str, will: OperatorAction, state: TurnState
) -> None:
    """S79: and nothing that the person's answer would continue."""
    for is_worked_on in (False, True):
        for is_claimed_before in (False, True):
            for kind in (None, *QuestionKind):
                turn = replace(
                    TURN,
                    state=state,
                    is_worked_on=is_worked_on,
                    is_claimed_before=is_claimed_before,
                )
                question = None if kind is None else QuestionGlance(kind=kind, text="well?")
                response = response_to(said, replace(IDLE, open_turn=turn, question=question))
                concerned = {
                    TurnState.QUEUED: is_claimed_before,
                    TurnState.RUNNING: not is_worked_on,
                    TurnState.WAITING: kind is QuestionKind.OFFER,
                    TurnState.SUSPENDED: True,
                }[state]
                assert (response.will is will) == concerned
                assert ("There is nothing to" in response.reply) != concerned


@pytest.mark.parametrize("said", ["/resume", "/drop", "/retry"])
def test_with_nothing_to_decide_it_says_so(said: str) -> None:
    response = response_to(said, IDLE)
    assert "nothing to" in response.reply
    assert (response.will, response.retry) == (None, None)


def test_what_failed_is_asked_again_and_nothing_else_happens() -> None:
    response = response_to("/retry", FAILED)
    assert response.retry == Retry(turn_id=TurnId(12))
    assert (response.cut, response.will) == (None, None)
    assert "/retry asks" in response_to("/resume", FAILED).reply
    assert "nothing of it is left" in response_to("/drop", FAILED).reply
    assert response_to("/retry", LEFT).retry is None


def test_what_a_process_began_has_no_words_to_ask_again() -> None:
    facts = replace(FAILED, failed=Failed(turn_id=TurnId(12), words=""))
    assert response_to("/retry", facts).retry is None


@pytest.mark.parametrize("mode", Busy)
def test_every_mode_can_be_set_and_is_said(mode: Busy) -> None:
    response = response_to(f"/busy {mode}", IDLE)
    assert response.settings == Settings(busy=mode)
    assert f"({mode})" in response.reply
    told = response_to("/busy", replace(IDLE, busy=mode))
    assert told.settings is None
    assert f"({mode})" in told.reply
    assert "configuration" in told.reply


@pytest.mark.parametrize("policy", RecoveryPolicy)
def test_every_policy_can_be_set_and_is_said(policy: RecoveryPolicy) -> None:
    own = replace(IDLE, session=replace(IDLE.session, settings=Settings(busy=Busy.STEER)))
    response = response_to(f"/resume-policy {policy}", own)
    assert response.settings == Settings(busy=Busy.STEER, policy=policy)
    told = response_to("/resume-policy", replace(IDLE, policy=policy))
    assert told.settings is None
    assert f"({policy})" in told.reply


@pytest.mark.parametrize("said", ["/busy maybe", "/resume-policy never"])
def test_a_word_that_is_no_mode_sets_nothing(said: str) -> None:
    response = response_to(said, IDLE)
    assert response.settings is None
    assert "I do not know" in response.reply


def test_in_private_there_is_nothing_to_listen_to() -> None:
    """Issue 13, B14."""
    response = response_to("/listen all", replace(IDLE, role=Role.OWNER))

    assert response.settings is None
    assert "no group" in response.reply


@pytest.mark.parametrize("word", ["all", "mention", "default"])
def test_only_an_owner_sets_what_is_heard_in_a_group(word: str) -> None:
    """Issue 13, B14."""
    room = replace(IDLE, is_group=True)

    assert response_to(f"/listen {word}", room).settings is None
    set_to = response_to(f"/listen {word}", replace(room, role=Role.OWNER)).settings
    assert set_to is not None
    assert set_to.listen == (None if word == "default" else word)


@pytest.mark.parametrize(
    "said, asked",
    [
        ("/cron add send me the news each morning", "send me the news each morning"),
        ("/cron add fresh every morning the news", "fresh every morning the news"),
        ("/cron add every weekday at 7:00 the news", None),
        ("/cron add every weekday the news", None),
        ("/cron add tomorrow 25:00 the news", None),
        ("/cron add in 2 hours tea", None),
        ("/cron add command ls", None),
        ("/cron add", None),
        ("/cron", None),
        ("/remind the tea", None),
    ],
)
def test_a_schedule_in_words_of_ones_own_is_a_message_to_the_model(
    said: str, asked: str | None
) -> None:
    """Issue 18: `/cron add` in plain words by the model, or exact."""
    command = parse_command(said)
    assert command is not None
    expected = None if asked is None else (f"Make a schedule: {asked}", None)
    assert message_in(command) == expected
