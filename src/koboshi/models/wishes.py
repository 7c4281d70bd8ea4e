"""What a person wants of the scripted model, read from their words. Pure."""

import re
from dataclasses import dataclass
from typing import TypeAlias

COUNT_MAX = 150
CHOICES_MAX = 10
CHOICE_CHARS_MAX = 60
OPTIONS_CHARS_MAX = CHOICES_MAX * (CHOICE_CHARS_MAX + 10)

SCRIPT_MARK = "script:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SayWords:
    """Answer with these words."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Count to `last`, one number in each step, with a pause after each."""

    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskThem:
    """Ask the person, then say what they said."""

    question: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    """Run a command, then show what came of it."""

    command: str
    is_background: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TellStory:
    """Answer at length, word by word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SayNothing:
    """Send an empty reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refuse:
    """Do not answer at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowScript:
    """Reply as the JSON text says, item by item."""

    script: str


Wish: TypeAlias = (
    SayWords | Count | AskThem | RunCommand | TellStory | SayNothing | Refuse | FollowScript
)


def wish_in(text: str) -> Wish | None:
    """What the words ask for; None if they are nothing that the scripted model knows."""
    words = text.strip()
    if words[: len(SCRIPT_MARK)].casefold() == SCRIPT_MARK:
        return FollowScript(script=words[len(SCRIPT_MARK) :].strip())
    words = _PLEASE.sub("", words.lstrip(_MARKS))
    plain = words.rstrip(_MARKS).casefold()
    if plain == "fail":
        return Refuse()
    if " ".join(plain.split()) == "say nothing":
        return SayNothing()
    if _STORY.fullmatch(plain):
        return TellStory()
    if echo := _ECHO.match(words):
        return SayWords(text=words[echo.end() :].strip() or "There is nothing to echo.")
    if count := _COUNT.fullmatch(plain):
        return _count(count["last"], is_slow=bool(count["before"] or count["behind"]))
    if run := _RUN.match(words):
        command = words[run.end() :].strip()
        if not command:
            return SayWords(text="What shall I run? For example: run date")
        return RunCommand(command=command, is_background=bool(run["background"]))
    if ask := _ASK.match(words):
        return _ask(words[ask.end() :].strip())
    return None


def counted(last: int) -> str:
    """The numbers up to `last` as they are read out when the count is done."""
    shown = [str(number) for number in range(1, last + 1)]
    if last > 10:
        shown = [*shown[:3], f"… {last}"]
    return f"{', '.join(shown)}: done."


_MARKS = " \t\r\n.,;:!?¡¿\"'`*_()[]«»“”…"
_PLEASE = re.compile(r"please[\s,:]+", re.IGNORECASE)
_STORY = re.compile(r"tell\s+(?:me\s+)?a(?:\s+long)?\s+story")
_ECHO = re.compile(r"echo(?![\w'’-])[:,]?", re.IGNORECASE)
_COUNT = re.compile(
    r"count(?P<before>\s+slowly)?\s+(?:up\s+)?to\s+(?P<last>[0-9]+)(?P<behind>[\s,]+slowly)?"
)
_RUN = re.compile(r"(?:run(?=\s|$)|(?P<background>in background(?=\s|$)))[:,]?", re.IGNORECASE)
_ASK = re.compile(r"ask\s+me(?![\w'’-])[:,]?", re.IGNORECASE)
_CHOOSE = re.compile(
    r"to (?:choose|pick|select)(?: one)? (?:between|from|among|of)\s*:?", re.IGNORECASE
)
_QUESTION_ENDS = re.compile(r".*\?(?=\s)", re.DOTALL)
_COLON = re.compile(r":(?=\s)")
_COMMA_OR_WORD = re.compile(r"\s*,\s*(?:or\s+|and\s+)?|\s+or\s+|\s+and\s+", re.IGNORECASE)


def _count(digits: str, *, is_slow: bool) -> Wish:
    # The length is looked at first: Python refuses to read numbers of many thousand digits.
    if len(digits) > 9 or not 1 <= int(digits) <= COUNT_MAX:
        return SayWords(text=f"I can count to any number from 1 to {COUNT_MAX}.")
    return Count(last=int(digits)) if is_slow else SayWords(text=counted(int(digits)))


def _ask(wanted: str) -> Wish:
    if not wanted.strip(_MARKS):
        return SayWords(text="What shall I ask you? For example: ask me which drink: tea or coffee")
    choose = _CHOOSE.match(wanted)
    if choose:
        choices = _options(wanted[choose.end() :])
        if choices:
            return AskThem(question="What do you choose?", choices=choices)
    for ends in (_QUESTION_ENDS.match(wanted), _COLON.search(wanted)):
        choices = _options(wanted[ends.end() :]) if ends else ()
        if ends and choices:
            return AskThem(question=_as_question(wanted[: ends.end()]), choices=choices)
    return AskThem(question=_as_question(wanted))


def _options(text: str) -> tuple[str, ...]:
    """What there is to choose from; nothing if the text is no list of short, different things."""
    if len(text) > OPTIONS_CHARS_MAX:
        return ()
    parts = text.split("/") if "/" in text else _COMMA_OR_WORD.split(text)
    options = tuple(part.strip(_MARKS) for part in parts)
    is_list = 2 <= len(options) <= CHOICES_MAX
    are_short = all(0 < len(option) <= CHOICE_CHARS_MAX for option in options)
    are_different = len({option.casefold() for option in options}) == len(options)
    return options if is_list and are_short and are_different else ()


def _as_question(text: str) -> str:
    words = text.strip()
    ended = words if words.endswith(("?", "!", ".", "…")) else f"{words.rstrip(':,; ')}?"
    return ended[:1].upper() + ended[1:]
