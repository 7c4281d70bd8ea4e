"""Every line that an agent writes, killed before and after it is stored: by the death of the
gateway and by the agent's own.

No prompt reaches one process twice, every repeat names its rule, and each answer comes once."""

from dataclasses import dataclass, replace

import pytest

from tests.agents.agency import Agency
from tests.agents.checks import check, portion
from tests.harness.polling import until
from tests.harness.process import KILLED

SCRIPT = ("say a ", "call c1 work", "run echo ran >> ran", "end c1 done", "permit x", "say b")
LINES = 10
"""How many the agent writes for that: two answers, a list of commands, the script, the stop."""
FEW = (6, 10)
"""Those of `make test`: a call begins, and the stop reason."""


@pytest.mark.parametrize("line", portion(FEW, range(1, LINES + 1)))
async def test_an_agent_that_dies_at_any_line_answers_once(agency: Agency, line: int) -> None:
    agency.options = (f"--die={line}",)
    agency.start()

    await agency.say(*SCRIPT)
    (answer,) = await agency.until_answered()

    said = [answer, *(str(body) for (body,) in agency.rows("SELECT body FROM steps"))]
    assert any("[allow_once-id]b" in each for each in said) or answer.endswith("b")
    check(agency, 1)


@pytest.mark.parametrize("line", portion((5,), range(1, LINES + 1)))
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_gateway_that_dies_at_the_store_of_any_line_answers_once(
    agency: Agency, line: int, when: str
) -> None:
    """The agent writes a line when the one before is stored, so each has a commit of its own. It is
    never started again, nor prompted again: it is read from where it was."""
    agency.options = ("--by-line",)
    agency.start(crash_at=f"agents.take:{when}:{line}")
    await agency.say(*SCRIPT)
    read = 0
    for number in range(1, LINES + 1):
        (agency.workdir / ".acp").mkdir(exist_ok=True)
        (agency.workdir / ".acp" / f"line-{number}").touch()
        if number == line:
            await until(lambda: not agency.gateway.is_running, "it dies", otherwise=agency.told)
            assert agency.gateway.exit_code == KILLED
            agency.start()
        read = await until_read(agency, read)

    (answer,) = await agency.until_answered()

    assert answer == "[allow_once-id]b"
    assert (agency.workdir / "ran").read_text() == "ran\n"
    assert len([each for each in agency.log if each.startswith("prompt")]) == 1
    check(agency, 1)


async def until_read(agency: Agency, before: int) -> int:
    """Wait until more than that of the spool is stored. Returns how much."""

    def look() -> int | None:
        found = agency.rows("SELECT read_offset FROM agent_processes")
        return next(
            (place for (place,) in found if isinstance(place, int) and place > before), None
        )

    return await until(look, "a line is stored", otherwise=agency.told)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A turn that comes by a verb, and what becomes of it."""

    script: tuple[str, ...] = SCRIPT
    answer: str = "[allow_once-id]b"
    more: str = ""
    option: str = ""
    is_asked: bool = False
    is_stopped: bool = False
    start_seconds: float = 120.0
    told: str = ""
    """What the person hears instead of an answer."""


ASKS = '\n[tools.terminal]\napproval = "always"\n'
DIES = Scene(script=("say a ", "call c1 work", "die one", "say b"), answer="went on from 2. b")
VERBS = {
    "agents.begin": Scene(),
    "agents.say": Scene(),
    "agents.reply": Scene(),
    "agents.drained": DIES,
    "agents.ask": replace(DIES, more='\n[recovery]\npolicy = "ask"\n', is_asked=True),
    "agents.propose": Scene(more=ASKS, is_asked=True),
    "agents.cancel": Scene(script=("say a", "wait go"), is_stopped=True),
    "agents.give_up": Scene(
        option="--silent=session/new", start_seconds=1, told="does not answer session/new"
    ),
    "agents.end": Scene(script=("say a", "wait go"), is_stopped=True, option="--deaf"),
}


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("verb", portion(("agents.begin",), tuple(VERBS)))
async def test_a_gateway_that_dies_at_a_verb_of_agents_answers_once(
    agency: Agency, verb: str, when: str
) -> None:
    """After `agents.begin` there is a process without a runner: it is ended, and another begun."""
    scene = VERBS[verb]
    agency.more, agency.options = scene.more, (scene.option,)
    agency.start_seconds = scene.start_seconds
    agency.start(crash_at=f"{verb}:{when}")
    await agency.say(*scene.script)
    if scene.is_stopped:
        await agency.until_done("wait go")
        await agency.person().say("/stop", "stop")
    await until(lambda: not agency.gateway.is_running, "it dies there", otherwise=agency.told)
    assert agency.gateway.exit_code == KILLED
    agency.start()

    if scene.is_stopped:
        await agency.say("say next", key="k2")
        assert await agency.until_answered() == ["next"]
        assert agency.rows("SELECT state FROM turns ORDER BY turn_id") == [("stopped",), ("done",)]
        assert agency.is_right()
        return
    if scene.told:

        def told() -> list[str]:
            return [each for each in agency.delivered() if scene.told in each]

        await until(told, "it is told", otherwise=agency.told)
        assert len(told()) == 1
        assert agency.rows("SELECT count(*) FROM agent_processes") == [(1,)]
        return
    assert await answered_with_yes(agency) == ([scene.answer], scene.is_asked)
    check(agency, 1)


async def answered_with_yes(agency: Agency) -> tuple[list[str], bool]:
    """The answers, and whether a person was asked: about the gateway's death and the agent's, where
    both ask."""
    waits = "SELECT question_seq FROM turns WHERE state = 'waiting'"
    said: set[object] = set()

    def look() -> bool:
        return bool(agency.answers()) or any(each not in said for (each,) in agency.rows(waits))

    while True:
        await until(look, "an answer or a question", otherwise=agency.told)
        if agency.answers():
            return agency.answers(), bool(said)
        for (question,) in agency.rows(waits):
            said.add(question)
            await agency.person().say("yes", f"yes-{question}")
