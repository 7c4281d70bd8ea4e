"""What a person sets for their chat, and who they are. Pure."""

from dataclasses import replace

from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.phrases import excerpt
from koboshi.domain.recovery import RecoveryPolicy
from koboshi.domain.role import Role
from koboshi.domain.session import Busy, Listen

_BUSY = {
    Busy.QUEUE: "they wait, and each gets its own turn",
    Busy.STEER: "they join what I am doing at its next step",
    Busy.INTERRUPT: "they end what I am doing, and I turn to them",
}
_POLICY = {
    RecoveryPolicy.AUTO: "I go on by myself",
    RecoveryPolicy.ASK: "I ask before I go on",
    RecoveryPolicy.OFF: "I set it aside until you say /resume",
}
_LISTEN = {
    Listen.MENTION: "what names me or answers me, and commands",
    Listen.ALL: "every message of people who may use me. On Telegram that needs privacy mode off "
    "(/setprivacy at BotFather), or me as an administrator",
}
_NOT_OWNER = (
    "Only owners can change what I hear in a group: people whose id is in `allow` of the "
    "configuration, or who were made an owner with `koboshi people role`."
)
_ROLES = {
    Role.OWNER: "an owner: you answer my questions about what I may do",
    Role.MEMBER: "a member: you talk to me, and owners answer what I may do",
}
DEFAULT = "default"
BUILT_IN = "koboshi"
"""The name of the built-in agent."""


def busy(command: Command, facts: SessionFacts) -> Response:
    """What `/busy` does."""
    word, own = _word(command), facts.session.settings.busy
    if not word:
        now = own or facts.busy
        return Response(reply=f"{_busy_words(now)} {_origin(own)}\n{_usage('busy', Busy)}")
    if word == DEFAULT:
        settings = replace(facts.session.settings, busy=None)
        return Response(reply=f"{_busy_words(facts.busy)} {_origin(None)}", settings=settings)
    if word not in list(Busy):
        return Response(reply=f"I do not know “{excerpt(word, 40)}”. {_usage('busy', Busy)}")
    mode = Busy(word)
    settings = replace(facts.session.settings, busy=mode)
    return Response(reply=f"{_busy_words(mode)} {_origin(mode)}", settings=settings)


def resume_policy(command: Command, facts: SessionFacts) -> Response:
    """What `/resume-policy` does."""
    word, own = _word(command), facts.session.settings.policy
    usage = _usage("resume-policy", RecoveryPolicy)
    if not word:
        return Response(reply=f"{_policy_words(own or facts.policy)} {_origin(own)}\n{usage}")
    if word == DEFAULT:
        settings = replace(facts.session.settings, policy=None)
        return Response(reply=f"{_policy_words(facts.policy)} {_origin(None)}", settings=settings)
    if word not in list(RecoveryPolicy):
        return Response(reply=f"I do not know “{excerpt(word, 40)}”. {usage}")
    policy = RecoveryPolicy(word)
    settings = replace(facts.session.settings, policy=policy)
    return Response(reply=f"{_policy_words(policy)} {_origin(policy)}", settings=settings)


def listen(command: Command, facts: SessionFacts) -> Response:
    """What `/listen` does. Only owners may change it."""
    word, own = _word(command), facts.session.settings.listen
    usage = _usage("listen", Listen)
    if not facts.is_group:
        return Response(reply="This is no group: everything here is said to me.")
    if not word:
        return Response(reply=f"{_listen_words(own or facts.listen)} {_origin(own)}\n{usage}")
    if word != DEFAULT and word not in list(Listen):
        return Response(reply=f"I do not know “{excerpt(word, 40)}”. {usage}")
    if not facts.role.is_owner:
        return Response(reply=_NOT_OWNER)
    mode = None if word == DEFAULT else Listen(word)
    settings = replace(facts.session.settings, listen=mode)
    words = f"{_listen_words(mode or facts.listen)} {_origin(mode)}"
    return Response(reply=words, settings=settings)


def agent(command: Command, facts: SessionFacts) -> Response:
    """What `/agent` does. In a group, only owners choose."""
    word, own = _word(command), facts.session.settings.agent
    known = (BUILT_IN, *facts.agents)
    usage = f"To change it: /agent NAME, one of {', '.join(known)}; /agent {DEFAULT} goes back."
    if not facts.agents:
        return Response(
            reply="There is only the built-in agent here. docs/agents.md tells of more."
        )
    if not word:
        now = facts.agent if own is None else own
        return Response(reply=f"{_agent_words(now)} {_origin(own)}\n{usage}")
    if word != DEFAULT and word not in known:
        return Response(reply=f"I do not know “{excerpt(word, 40)}”. {usage}")
    if facts.is_group and not facts.role.is_owner:
        return Response(reply="Only owners choose the agent of a group.")
    chosen = None if word == DEFAULT else "" if word == BUILT_IN else word
    settings = replace(facts.session.settings, agent=chosen)
    words = _agent_words(facts.agent if chosen is None else chosen)
    return Response(reply=f"{words} It counts from your next message on.", settings=settings)


def whoami(_command: Command, facts: SessionFacts) -> Response:
    """What `/whoami` does. A person who is not allowed gets no answer to any command."""
    route = facts.session.route
    thread = f", thread {route.thread}" if route.thread else ""
    return Response(
        reply=f"You are {facts.sender} on {route.channel}, and you are allowed to use me. "
        f"You are {_ROLES[facts.role]}. This is chat {route.chat}{thread}."
    )


def forget(command: Command, _facts: SessionFacts) -> Response:
    """What `/forget` does: it asks first, and a second message confirms."""
    words = _word(command)
    if words == "me yes":
        return Response(
            reply="Erased: what you said to me in every chat here, what I answered, and the files "
            "you sent. Backups of my database that were made before still hold it until their "
            "owner removes them; ask them. You can go on writing to me.",
            erases=True,
        )
    if words == "me":
        return Response(
            reply="This erases everything you said to me here, in this and every other chat of "
            "this channel, with my answers and your files. What runs for you stops. It cannot be "
            "undone. Write /forget me yes to do it."
        )
    return Response(reply="Write /forget me: I erase what you said, after asking once more.")


def _word(command: Command) -> str:
    return command.argument.casefold().strip(" .,;:!?“”\"'`")


def _busy_words(mode: Busy) -> str:
    return f"Messages that come while I work ({mode}): {_BUSY[mode]}."


def _policy_words(policy: RecoveryPolicy) -> str:
    return f"When I was interrupted ({policy}): {_POLICY[policy]}."


def _agent_words(name: str) -> str:
    return f"The agent that answers here: {name or 'the built-in one (koboshi)'}."


def _listen_words(mode: Listen) -> str:
    return f"What I hear in this group ({mode}): {_LISTEN[mode]}."


def _origin(own: str | None) -> str:
    """Where the current value comes from."""
    return "So says the configuration." if own is None else "That is set for this chat."


def _usage(name: str, modes: type[Busy] | type[Listen] | type[RecoveryPolicy]) -> str:
    words = ", ".join(f"/{name} {mode}" for mode in modes)
    return f"To change it: {words}; /{name} {DEFAULT} goes back to the configuration."
