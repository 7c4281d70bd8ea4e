"""The keys of models: the one that answers, those behind it, and what writes down speech."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from koboshi.config import rules
from koboshi.config.secret import Secret
from koboshi.config.section import Seconds, Section, Url, VariableName
from koboshi.domain.providers import KEY_VARIABLES

_Name: TypeAlias = Annotated[str, Meta(max_length=256)]
_Tokens: TypeAlias = Annotated[int, Meta(ge=0, le=100_000_000)]
_Price: TypeAlias = Annotated[float, Meta(ge=0, le=1_000_000)]


# One key is one statement, and its words are most of it.
# fmt: off
class ModelConfig(Section, frozen=True, kw_only=True):
    """Which model answers, and how to reach it."""

    name: Annotated[str, Meta(max_length=256,
        description="`scripted`, `openai:<model>`, `openai-responses:<model>`, "
        "`anthropic:<model>`, `google:<model>`, `ollama:<model>`, or the prefix of a "
        "[plug-in](writing-a-model.md)"), rules.one_line] = "scripted"
    base_url: Annotated[Url, Meta(description="a compatible endpoint of your own"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    api_key_env: Annotated[VariableName, Meta(
        description="the variable that holds the key; for other providers their own: "
        "`ANTHROPIC_API_KEY`, `GOOGLE_API_KEY`, none for a plug-in")] = "OPENAI_API_KEY"
    system_prompt: Annotated[str, Meta(max_length=64_000,
        description="added to the built-in one")] = ""
    chain: Annotated[tuple[_Name, ...], Meta(max_length=16,
        description="the models in the order in which they are asked: names as in `name`, or those "
        "of `[models.<name>]` sections; `name`, if it is set, is the first. "
        "[More](models.md)"), rules.names_or_none] = ()
    patience_seconds: Annotated[Seconds, Meta(
        description="how long a request is tried again while the provider does not answer; 0 = "
        "give up at once")] = 600
    pictures: Annotated[Literal["auto", "yes", "no"], Meta(
        description="whether the model is shown pictures that people send: `auto` is yes for "
        "`openai`, `openai-responses`, `anthropic` and `google` without a `base_url`. Needs the "
        "extra `koboshi[media]`")] = "auto"
    input_price: Annotated[float, Meta(ge=0, le=1_000_000,
        description="dollars for a million tokens that the model reads, for the estimated cost "
        "under Health; 0 = not known, and nothing is estimated")] = 0
    output_price: Annotated[float, Meta(ge=0, le=1_000_000,
        description="likewise, for the tokens that it writes")] = 0
    tools: Annotated[bool, Meta(
        description="whether the model can use tools; one that cannot is asked for summaries and "
        "verdicts alone")] = True
    context_tokens: Annotated[int, Meta(ge=0, le=100_000_000,
        description="how long a request to this model of a chain may be; 0 = as "
        "`limits.context_tokens_max` says")] = 0
    api_key: Secret | None = None  # never asked for by the scripted model
    section: str = ""  # its name in `[models]`, if it has one

    @property
    def called(self) -> str:
        """By what people and rows know it."""
        return self.section or self.name

    @property
    def sees_pictures(self) -> bool:
        """Whether the model is shown pictures."""
        if self.pictures != "auto":
            return self.pictures == "yes"
        return not self.base_url and self.name.partition(":")[0] in KEY_VARIABLES

    @property
    def is_scripted(self) -> bool:
        return self.name.partition(":")[0] == "scripted"


class VoiceConfig(Section, frozen=True, kw_only=True):
    """Which service writes down what people say in voice messages."""

    url: Annotated[Url, Meta(
        description="a service with OpenAI's form, up to `/v1`, as in `https://api.openai.com/v1`; "
        "empty: voice messages are not written down. [More](media.md)"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    model: Annotated[str, Meta(max_length=256,
        description="the name of its model"), rules.one_line] = "whisper-1"
    key_env: Annotated[VariableName, Meta(
        description="the variable that holds its key; empty: none is sent")] = ""
    minute_price: Annotated[Annotated[float, Meta(ge=0, le=1_000_000)] | None, Meta(
        description="what it takes for a minute, in dollars, for the budget; 0 = nothing, as for "
        "one of your own. Without it a minute is counted as 1,000 tokens of a model whose price "
        "is not known")] = None
    folder: Annotated[Path | None, Meta(
        description="instead of a service: a folder with a model of faster-whisper, used on this "
        "machine. Needs the extra `koboshi[whisper]`")] = None
    language: Annotated[str, Meta(max_length=8,
        description="the language that is spoken, as in `de`, for the model of the folder; empty: "
        "it finds out"), rules.one_line] = ""
    memory_mb: Annotated[int, Meta(ge=256, le=1_000_000,
        description="how much memory the model of the folder may take")] = 4_096


class BudgetConfig(Section, frozen=True, kw_only=True):
    """What may be spent in a day. 0 is no limit."""

    day: Annotated[float, Meta(ge=0, le=1_000_000_000,
        description="the limit of a day, for all together, in the unit; 0 = none. "
        "[More](models.md#a-budget)")] = 0
    person: Annotated[float, Meta(ge=0, le=1_000_000_000,
        description="the same for each person")] = 0
    chat: Annotated[float, Meta(ge=0, le=1_000_000_000,
        description="the same for each chat")] = 0
    schedule: Annotated[float, Meta(ge=0, le=1_000_000_000,
        description="the same for each schedule")] = 0
    unit: Annotated[Literal["money", "tokens"], Meta(
        description="what the limits are in: `money` (dollars) or `tokens`")] = "money"
    unpriced: Annotated[float, Meta(gt=0, le=1_000_000,
        description="dollars for a million tokens of a model whose price is not known")] = 10
    reply_tokens: Annotated[int, Meta(ge=1, le=1_000_000,
        description="how long a reply may be where a limit counts it: so much is reserved for it, "
        "and the provider is told")] = 4_000


class LinkConfig(Section, frozen=True, kw_only=True):
    """One more model, for `model.chain`."""

    name: str  # "local"
    model: Annotated[str, Meta(max_length=256,
        description="the model, as in `model.name`")] = ""
    base_url: Annotated[Url, Meta(description="a compatible endpoint of your own"),
        rules.web_address_or_none, rules.no_slash_at_end] = ""
    api_key_env: Annotated[VariableName, Meta(
        description="the variable that holds the key; empty = the provider's own, and none with a "
        "`base_url`")] = ""
    pictures: Annotated[Literal["auto", "yes", "no"], Meta(
        description="as `model.pictures`")] = "auto"
    tools: Annotated[bool, Meta(description="as `model.tools`")] = True
    context_tokens: Annotated[_Tokens, Meta(description="as `model.context_tokens`")] = 0
    input_price: Annotated[_Price, Meta(description="as `model.input_price`")] = 0
    output_price: Annotated[_Price, Meta(description="as `model.output_price`")] = 0
# fmt: on
