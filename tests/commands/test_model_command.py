"""`/model` and `/usage`: a list to press, and what was used."""

from dataclasses import replace

import pytest

from koboshi.commands.parse import parse_command
from koboshi.commands.run import respond
from koboshi.domain.chain import Bench
from koboshi.domain.command import ChainGlance, Response, SessionFacts
from koboshi.domain.price import Price
from koboshi.domain.role import Role
from koboshi.domain.session import Settings
from koboshi.domain.trouble import ModelTrouble
from koboshi.domain.usage import Usage, UsageLine, begin_of_day, money
from tests.harness.session_facts import IDLE

MODELS = ("openai:gpt-5", "local", f"openai:{'x' * 80}")


def the_facts(role: Role = Role.OWNER, own: str | None = None) -> SessionFacts:
    made = IDLE
    session = replace(made.session, settings=Settings(model=own))
    return replace(made, session=session, chain=ChainGlance(models=MODELS), role=role, sender="ann")


def said(text: str, known: SessionFacts) -> Response:
    command = parse_command(text)
    assert command is not None
    return respond(command, known)


def test_the_models_are_listed_with_their_benches_and_can_be_pressed() -> None:
    known = the_facts()
    bench = Bench(
        model="local",
        node="",
        trouble=ModelTrouble.BUSY,
        reason="too much",
        tries=1,
        since_ms=known.now_ms,
        until_ms=known.now_ms + 15_000,
    )
    response = said("/model", replace(known, chain=replace(known.chain, benches=(bench,))))
    assert "openai:gpt-5 answers here first, as the configuration says." in response.reply
    assert "2. local (busy, asked again in 15 s: too much)" in response.reply
    assert [each.choice_id for each in response.choices] == [
        "/model openai:gpt-5",
        "/model local",
        "/model 3",
    ]
    assert response.settings is None


@pytest.mark.parametrize("word", ["local", "LOCAL", "2", "“local”"])
def test_an_owner_chooses_by_name_or_number(word: str) -> None:
    response = said(f"/model {word}", the_facts())
    assert response.settings == Settings(model="local")
    assert "local answers here first" in response.reply


def test_a_choice_is_taken_back() -> None:
    response = said("/model default", the_facts(own="local"))
    assert response.settings == Settings()


@pytest.mark.parametrize("word", ["0", "4", "99999999", "other", "²"])
def test_what_is_not_in_the_chain_is_not_chosen(word: str) -> None:
    response = said(f"/model {word}", the_facts())
    assert response.settings is None
    assert "There are: openai:gpt-5" in response.reply


def test_a_member_sees_the_list_and_changes_nothing() -> None:
    known = the_facts(Role.MEMBER)
    assert said("/model", known).choices == ()
    assert said("/model local", known) == Response(reply="Only owners choose the model of a chat.")


def test_without_a_chain_there_is_nothing_to_choose() -> None:
    response = said("/model", replace(the_facts(), chain=ChainGlance(models=("scripted",))))
    assert response.reply.startswith("There is one model here: scripted.")


def a_line(person: str, model: str = "openai:gpt-5", tokens: int = 1_000) -> UsageLine:
    return UsageLine(person=person, model=model, calls=1, tokens_in=tokens, tokens_out=tokens)


def test_usage_tells_the_cost_of_what_has_a_price_and_the_tokens_of_the_rest() -> None:
    """Issue 21: an unknown price is never 0."""
    used = Usage(today=(a_line("ann"),), month=(a_line("ann"), a_line("bob", "local")))
    prices = {"openai:gpt-5": Price(input=1.0, output=9.0)}
    known = replace(the_facts(), chain=ChainGlance(usage=used, prices=prices))
    reply = said("/usage", known).reply
    assert "Today in this chat: 1 reply, 2,000 tokens, about 0.01." in reply
    assert "2 replies, 4,000 tokens, about 0.01 and 2,000 tokens without a price" in reply
    assert "bob: 1 reply, 2,000 tokens." in reply
    assert "bob" not in said("/usage", replace(known, role=Role.MEMBER)).reply
    assert said("/usage", the_facts()).reply.startswith("Today in this chat: nothing.")


def test_usage_tells_recordings_by_their_length_and_their_price() -> None:
    voice = UsageLine(person="ann", model="voice:w", calls=2, tokens_in=0, tokens_out=0, seconds=90)
    used = Usage(today=(a_line("ann"), voice), month=(voice,))
    prices = {"openai:gpt-5": Price(input=1.0, output=9.0), "voice:w": Price(minute=0.02)}
    known = replace(the_facts(), chain=ChainGlance(usage=used, prices=prices))
    assert said("/usage", known).reply.splitlines() == [
        "Today in this chat: 1 reply, 2,000 tokens, 2 recordings of 1 min 30 s, about 0.04.",
        "In 30 days: 2 recordings of 1 min 30 s, about 0.03.",
    ]
    del prices["voice:w"]
    unpriced = replace(known, chain=ChainGlance(usage=used, prices=prices))
    assert said("/usage", unpriced).reply.splitlines() == [
        "Today in this chat: 1 reply, 2,000 tokens, 2 recordings of 1 min 30 s, "
        "about 0.01 and 1 min 30 s of recordings without a price.",
        "In 30 days: 2 recordings of 1 min 30 s.",
    ]


def test_money_is_never_shown_as_less_than_it_is() -> None:
    assert [money(micros) for micros in (0, 1, 10_000, 10_001, 5_000_000)] == [
        "0.00",
        "0.01",
        "0.01",
        "0.02",
        "5.00",
    ]


def test_a_day_begins_where_the_gateway_is() -> None:
    from zoneinfo import ZoneInfo

    zone, noon_ms = ZoneInfo("Asia/Tokyo"), 1_763_434_800_000
    assert noon_ms - begin_of_day(noon_ms, zone) == 12 * 3_600_000
    assert begin_of_day(noon_ms, zone) - begin_of_day(noon_ms, zone, days_before=2) == 172_800_000
