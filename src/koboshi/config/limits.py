"""Every bound of the gateway, in one place. One with a description is a key of `koboshi.toml`.

Only `app` imports this: it passes the numbers on.
"""

from typing import Annotated

from msgspec import Meta, Struct

from koboshi.domain.worker import WAIT_MS_MAX

_DAY_MS = 24 * 60 * 60 * 1000


class Limits(Struct, frozen=True, kw_only=True):
    """The named limits, each with the value the gateway runs with."""

    # What comes in.
    message_chars_max: int = 64_000  # one message of a person
    route_chars_max: int = 256  # a chat or thread id
    inbox_waiting_max: int = (
        1_000  # waiting entries of one session; beyond it: refused with a notice
    )
    backlog_messages_max: int = 10  # of one person, from before the boot, that one turn answers
    backlog_chars_max: int = 16_000  # their text together
    request_bytes_max: int = 1_000_000  # the body of one HTTP request
    http_read_seconds: int = 10  # to receive that body
    file_bytes_max: int = 20_000_000  # a file of a person; bots cannot fetch larger ones
    file_seconds: int = 120  # to fetch one

    # People who are not allowed.
    pairing_code_seconds: int = 3_600  # a code, and until its person gets another
    pairing_codes_max: int = 5  # codes of one channel that are good; strangers beyond get none
    pairing_guesses_max: int = 10  # wrong codes, before those that are good become worthless
    pairing_silence_seconds: int = 86_400  # no code after a denial
    strangers_kept_max: int = 1_000  # their messages

    # One turn.
    steps_per_turn_max: int = 400  # steps before a turn is ended as endless
    step_bytes_max: int = 1_000_000  # one stored step
    empty_replies_max: int = 1  # empty replies of the model that are asked again
    calls_side_by_side_max: int = 16  # calls of one reply; the others follow in their order
    model_wait_ms_max: int = WAIT_MS_MAX  # a provider that asks for a longer wait is given up
    model_held_wait_ms_max: int = 5_000  # a turn that has to wait longer gives its claim back
    model_told_ms: int = 20_000  # the person is told when the model has failed for so long
    model_load_seconds: int = 60  # to load the library of a provider, once
    model_connect_seconds: int = 10
    model_first_seconds: int = 300  # until a reply begins: a local model may have to be loaded
    model_idle_seconds: int = 180  # between two pieces of a reply: some think in silence
    model_total_seconds: int = 1_800  # one reply
    reply_chars_max: int = 4_000_000  # text, thoughts and arguments of one reply
    question_age_ms: int = _DAY_MS  # a question without an answer expires

    # Schedules and goals.
    schedule_poll_seconds: float = 30.0  # between two looks at what is due, if no hint comes
    schedules_per_member_max: int = 20
    goal_steps_max: int = 20  # steps that a goal begins by itself
    goal_tokens_max: int = 2_000_000  # of its turns and of its judge together
    occasions_kept_days: int = 90  # what became of due times

    # Sub-agents.
    children_at_once_max: Annotated[int, Meta(ge=1, le=64,
        description="sub-agents of one conversation that work at the same time; others wait until "
        "one of them has ended")] = 4  # fmt: skip
    children_open_max: Annotated[int, Meta(ge=1, le=1_000,
        description="sub-agents of one conversation that work or wait; the agent is told when "
        "there are more")] = 16  # fmt: skip
    children_made_max: Annotated[int, Meta(ge=1, le=10_000,
        description="sub-agents that a conversation makes before a person, a schedule or a goal "
        "speaks again")] = 40  # fmt: skip
    children_depth_max: Annotated[int, Meta(ge=0, le=2,
        description="how deep sub-agents have sub-agents of their own; 0: there are no "
        "sub-agents")] = 2  # fmt: skip

    # Processes in the background.
    background_seconds_max: int = 7 * 86_400  # a command that was left running
    background_per_session_max: Annotated[int, Meta(ge=1, le=1_000,
        description="commands of one chat that may run in the background at once; the agent is "
        "told when there are more")] = 16  # fmt: skip
    watch_seconds: float = 0.5  # between two looks at output that a call waits for
    report_seconds: int = 15  # at most one report of a process about its output in this time,
    reports_per_session_max: int = 5  # so many of a session,
    reports_max: int = 40  # and so many of all
    process_keep_seconds: int = 7 * 86_400  # the log of a process, after its end
    processes_kept_max: int = 500  # so many of them
    inside_tmp_seconds: int = 10 * 86_400  # the `/tmp` of a chat that does not use it
    process_lost_seconds: int = 86_400  # its node is away for so long: it is lost
    process_sweep_seconds: int = 3_600  # between two looks for those that may go

    # What the model is shown. What is beyond it is summed up; tokens are estimated.
    context_tokens_max: Annotated[int, Meta(ge=1_000, le=100_000_000,
        description="how much of a conversation the model is shown at once, in (estimated) tokens; "
        "what is older is summed up. Set it below what your model takes, answer "
        "included")] = 120_000  # fmt: skip
    context_steps_max: int = 300
    summary_tokens_max: int = 3_000

    # MCP servers.
    mcp_connect_seconds: int = 60  # to the list of its tools: some are downloaded first
    mcp_reach_seconds: int = 30  # a call waits so long for its server
    mcp_settle_seconds: int = 10  # the first model call of a boot waits so long for all of them
    mcp_retry_seconds_max: int = 60  # between two attempts to connect
    mcp_message_bytes_max: int = 8_000_000  # one message; a longer one ends the connection

    # Foreign agents.
    agent_line_bytes_max: int = 8 << 20  # one message; an agent that writes a longer one is ended
    agent_unread_bytes_max: Annotated[int, Meta(ge=4 << 20, le=1 << 36,
        description="bytes that a foreign [agent](agents.md) may write while no gateway reads; "
        "then it waits. A line of it has half of that at most")] = 64 << 20  # fmt: skip

    # Plug-ins.
    plugin_load_seconds: int = 60  # to import one and to make its tools
    plugin_settle_seconds: int = 10  # the first model call of a boot waits so long for all of them
    plugin_reach_seconds: int = 30  # a call waits so long for all of them
    plugin_call_seconds: int = 1_800  # one call

    # What goes out.
    deliveries_in_flight_max: int = 32  # sends at once, of each channel
    sent_file_bytes_max: int = 50_000_000  # a file for a person; bots cannot send larger ones
    delivery_age_ms_max: int = _DAY_MS  # a text older than this is abandoned, and that is told

    # Staying alive.
    recoveries_at_once: int = 8  # unowned turns judged at the same time
    heartbeat_seconds: int = 5  # between two beats of the worker row
    rescue_seconds: int = 10  # between two looks for unowned turns
    poll_seconds: int = 5  # the longest wait for a hint that may have been lost
    lock_wait_seconds: int = 30  # for the gateway that still holds the home
    release_seconds: int = 2  # to give a claim back when a turn is cancelled
