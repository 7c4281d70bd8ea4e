"""The chain of models, from the keys that name them."""

from collections.abc import Sequence

from msgspec.structs import replace

from koboshi.config.models import LinkConfig, ModelConfig
from koboshi.config.problems import Problems
from koboshi.config.values import quoted
from koboshi.domain.providers import KEY_VARIABLES

SCRIPTED = "scripted"


def own_variable(model: str) -> str:
    """The variable that holds the key of a model's provider; empty if it has none."""
    return KEY_VARIABLES.get(model.partition(":")[0], "")


def chain_of(
    first: ModelConfig, names: Sequence[str], links: Sequence[LinkConfig], problems: Problems
) -> tuple[ModelConfig, ...]:
    """The named models; at least one. A name without a model is noted as a problem."""
    sections = {link.name: link for link in links}
    found = list[ModelConfig]()
    for name in names:
        if name == first.name:
            found.append(first)
        elif name in sections:
            found.append(_of_section(first, sections[name], problems))
        elif ":" in name or name == SCRIPTED:
            found.append(_alone(first, name, api_key_env=own_variable(name)))
        else:
            known = ", ".join(sections) or "none"
            message = f"model.chain: there is no section [models.{quoted(name)}]; known: {known}"
            problems.add("model.chain", message, hint='or write "provider:model"')
    return tuple(found) or (first,)


def _of_section(first: ModelConfig, link: LinkConfig, problems: Problems) -> ModelConfig:
    section = f"models.{link.name}"
    if not link.model.strip():
        problems.add(section, f'{section} needs a model, such as model = "openai:gpt-5"')
    variable = link.api_key_env
    if not variable and not link.base_url:
        variable = own_variable(link.model)
    model = _alone(first, link.model, api_key_env=variable)
    return replace(
        model,
        section=link.name,
        base_url=link.base_url,
        pictures=link.pictures,
        tools=link.tools,
        context_tokens=link.context_tokens,
        input_price=link.input_price,
        output_price=link.output_price,
    )


def _alone(first: ModelConfig, name: str, *, api_key_env: str) -> ModelConfig:
    """A model of which only its name is known; what belongs to all is that of the first."""
    return ModelConfig(
        name=name,
        api_key_env=api_key_env,
        chain=first.chain,
        system_prompt=first.system_prompt,
        patience_seconds=first.patience_seconds,
    )
