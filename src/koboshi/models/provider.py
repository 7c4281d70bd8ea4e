"""Opening a model of a provider, by its name in the configuration.

Nothing here loads a provider's library: that takes a second, and the gateway has to accept messages
before it. Only what can be known without it is checked.
"""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

from koboshi.domain.errors import KeyMissing, ModelUnusable
from koboshi.domain.providers import KEY_VARIABLES
from koboshi.models.endpoint import Endpoint, Provider
from koboshi.models.limits import ModelLimits
from koboshi.models.remote import RemoteModel

if TYPE_CHECKING:
    import httpx2

OLLAMA_URL = "http://127.0.0.1:11434/v1"

_LIBRARIES = {
    Provider.ANTHROPIC: "anthropic",
    Provider.GOOGLE: "google.genai",
}
"""What the extras bring; the others are spoken to without a library."""


def open_model(
    name: str,
    *,
    base_url: str = "",
    api_key: str | None = None,
    key_variable: str = "",
    limits: ModelLimits = ModelLimits(),  # noqa: B008  (frozen)
    transport: "httpx2.AsyncBaseTransport | None" = None,
) -> RemoteModel:
    """The model that is called `<provider>:<model>`; close it when it is no longer needed.

    An own `base_url` speaks the language of the provider that `name` begins with, and may need no
    key. `key_variable` is where the person was told to put the key; `transport` replaces the
    network. Nothing is sent and no library is loaded before the first request.

    Raises ModelUnusable, with the remedy, if the provider is unknown, its library is not installed
    or its key is missing.
    """
    prefix, model = read_name(name)
    if not is_ours(prefix):
        raise unknown_provider(name, ())
    provider = Provider(prefix)
    _require_library(name, provider)
    if not api_key and _needs_key(provider, base_url):
        raise KeyMissing(f'model "{name}" needs a key: {_where_to_put_it(provider, key_variable)}')
    endpoint = Endpoint(
        provider=provider,
        model=model,
        base_url=_address(provider, base_url),
        api_key=api_key or "",
    )
    return RemoteModel(endpoint, limits, transport)


def read_name(name: str) -> tuple[str, str]:
    """Whose model it is, and which. Raises ModelUnusable if the name does not say both."""
    prefix, colon, model = name.partition(":")
    if not colon:
        raise ModelUnusable(
            f'model "{name}" does not say whose it is: write "openai:{name}", for example; '
            f"known providers: {', '.join(Provider)}"
        )
    if not model.strip():
        raise ModelUnusable(f'model "{name}" lacks its name behind the colon')
    return prefix, model.strip()


def is_ours(prefix: str) -> bool:
    """Whether the gateway itself can reach the models of that provider."""
    return prefix in frozenset(Provider)


def unknown_provider(name: str, plugins: Sequence[str]) -> ModelUnusable:
    """The error for a model whose prefix is neither ours nor that of a plug-in."""
    prefix = name.partition(":")[0]
    known = ", ".join(sorted({*Provider, *plugins}))
    return ModelUnusable(
        f'the provider "{prefix}" of model "{name}" is unknown; known providers: {known}; any '
        "OpenAI-compatible server works as openai:<model> with its address as base_url; a plug-in "
        f"can add others, by an entry point koboshi.models with the name {prefix}"
    )


def _require_library(name: str, provider: Provider) -> None:
    needed = [_LIBRARIES[provider], "pydantic_ai"] if provider in _LIBRARIES else []
    if all(_is_installed(module) for module in needed):
        return
    raise ModelUnusable(
        f'model "{name}" needs a library that is not installed: '
        f'run `pip install "koboshi[{provider}]"`'
    )


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def _needs_key(provider: Provider, base_url: str) -> bool:
    return provider is not Provider.OLLAMA and not base_url


def _where_to_put_it(provider: Provider, variable: str) -> str:
    usual = KEY_VARIABLES[provider]
    if not variable:
        return f'set api_key_env = "{usual}" under [model], and the key in that variable'
    other = "" if variable == usual else f", or set api_key_env to another variable ({usual}?)"
    return f"put it into the environment variable {variable}{other}"


def _address(provider: Provider, base_url: str) -> str:
    match provider:
        case Provider.OLLAMA:
            return base_url or OLLAMA_URL
        case Provider.ANTHROPIC:
            # The library adds the version itself.
            return base_url.removesuffix("/").removesuffix("/v1")
        case _:
            return base_url
