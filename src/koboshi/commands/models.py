"""`/model`, `/usage` and `/budget`. Pure."""

from dataclasses import replace

from koboshi.domain.budget import (
    BudgetLimits,
    BudgetScope,
    Purse,
    amount_words,
    step_of,
    used_words,
)
from koboshi.domain.chain import bench_words
from koboshi.domain.command import Command, Response, SessionFacts
from koboshi.domain.phrases import excerpt
from koboshi.domain.transcript import Choice
from koboshi.domain.usage import usage_words

DEFAULT = "default"
BUTTON_BYTES_MAX = 48
"""Platforms bound what a button carries."""
BUTTONS_MAX = 8
BUDGET_LINES_MAX = 30


def model(command: Command, facts: SessionFacts) -> Response:
    """What `/model` does. Only owners choose."""
    word, own = command.argument.strip(" .,;!?“”\"'`"), facts.session.settings.model
    if len(facts.chain.models) < 2:
        only = facts.chain.models[0] if facts.chain.models else "the configured one"
        return Response(reply=f"There is one model here: {only}. docs/models.md tells of more.")
    if not word:
        return Response(reply=_listed(facts), choices=_buttons(facts))
    chosen = None if word.casefold() == DEFAULT else _named(word, facts.chain.models)
    if chosen is None and word.casefold() != DEFAULT:
        known = ", ".join(facts.chain.models)
        return Response(reply=f"I do not know “{excerpt(word, 60)}”. There are: {known}.")
    if not facts.role.is_owner:
        return Response(reply="Only owners choose the model of a chat.")
    if chosen == own:
        return Response(reply=_standing(facts, own))
    settings = replace(facts.session.settings, model=chosen)
    reply = f"{_standing(facts, chosen)} It counts from the next message on."
    return Response(reply=reply, settings=settings)


def usage(_command: Command, facts: SessionFacts) -> Response:
    """What `/usage` does."""
    lines = usage_words(
        facts.chain.usage, facts.chain.prices, person=facts.sender, sees_all=facts.role.is_owner
    )
    return Response(reply="\n".join(lines))


def budget(command: Command, facts: SessionFacts) -> Response:
    """What `/budget` does. Only owners allow more."""
    limits, purses = facts.chain.budget, facts.chain.purses
    if not limits.is_set:
        return Response(reply="There is no budget. docs/models.md tells how to set one.")
    if not facts.role.is_owner:
        return Response(reply="Only owners see and change the budget. /usage tells what you used.")
    verb, _, rest = command.argument.strip().casefold().partition(" ")
    if verb == "tomorrow":
        return Response(reply="Nothing more today. What waits goes on tomorrow.")
    if verb == "more":
        return _more(rest.strip(), limits, purses)
    lines = [f"{used_words(purse)} ({purse.subject or 'all'})." for purse in purses]
    return Response(reply="\n".join(lines[:BUDGET_LINES_MAX]) or "Nothing was used today.")


def _more(name: str, limits: BudgetLimits, purses: tuple[Purse, ...]) -> Response:
    wanted = [each for each in purses if name == str(each.purse_id)]
    if not name:
        wanted = [each for each in purses if each.scope is BudgetScope.ALL]
    if not wanted:
        return Response(reply="That was another day's budget, or none. /budget tells today's.")
    (purse,) = wanted
    amount = step_of(purse, limits)
    limit = amount_words(purse.unit, purse.limit + amount)
    reply = f"Today's limit is {limit} now. What waited goes on."
    return Response(reply=reply, allows=(purse.purse_id, amount))


def _named(word: str, models: tuple[str, ...]) -> str | None:
    """The model of that name, or of that place in the list."""
    if word.isdecimal() and 0 < int(word[:4]) <= len(models):
        return models[int(word[:4]) - 1]
    return next((name for name in models if name.casefold() == word.casefold()), None)


def _standing(facts: SessionFacts, own: str | None) -> str:
    if own is None or own not in facts.chain.models:
        return f"{facts.chain.models[0]} answers here first, as the configuration says."
    return f"{own} answers here first. That is set for this chat."


def _listed(facts: SessionFacts) -> str:
    lines = [_standing(facts, facts.session.settings.model)]
    for place, name in enumerate(facts.chain.models, 1):
        benches = [each for each in facts.chain.benches if each.model == name]
        told = "; ".join(bench_words(each, facts.now_ms) for each in benches)
        lines.append(f"{place}. {name}" + (f" ({told})" if told else ""))
    lines.append(f"If it fails, the others follow. /model NAME chooses, /model {DEFAULT} ends it.")
    return "\n".join(lines)


def _buttons(facts: SessionFacts) -> tuple[Choice, ...]:
    if not facts.role.is_owner:
        return ()
    return tuple(
        Choice(choice_id=_pressed(name, place), label=excerpt(name, 60))
        for place, name in enumerate(facts.chain.models[:BUTTONS_MAX], 1)
    )


def _pressed(name: str, place: int) -> str:
    """The words that a press stands for: the name, where it fits."""
    words = f"/model {name}"
    return words if len(words.encode()) <= BUTTON_BYTES_MAX else f"/model {place}"
