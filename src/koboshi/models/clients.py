"""The provider's own library, set up to do one request at a time and nothing by itself.

Each library is imported where it is needed: they are extras.
"""

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from koboshi.domain.errors import ModelUnusable
from koboshi.models.endpoint import NO_KEY, Endpoint, Provider
from koboshi.models.limits import ModelLimits


def open_http(
    limits: ModelLimits, transport: httpx2.AsyncBaseTransport | None
) -> httpx2.AsyncClient:
    """The connections to a provider. The engine watches how long a reply takes; here is only what
    it cannot see."""
    patience = max(limits.first_s, limits.idle_s)
    timeout = httpx2.Timeout(patience, connect=limits.connect_s)
    return httpx2.AsyncClient(timeout=timeout, follow_redirects=True, transport=transport)


def open_client(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model:
    """The library's model for `endpoint`. It never retries: our retries are durable."""
    match endpoint.provider:
        case Provider.ANTHROPIC:
            return _anthropic(endpoint, http)
        case Provider.GOOGLE:
            return _google(endpoint, http)
        case _:
            raise ModelUnusable(f"no library is needed for {endpoint.name}")


def settings_for(endpoint: Endpoint) -> ModelSettings:
    """What is asked of every reply."""
    # Without marks the provider would read the whole conversation anew at each step. Servers that
    # only imitate it may not know them.
    is_original = endpoint.provider is Provider.ANTHROPIC and not endpoint.base_url
    return ModelSettings(cache=True) if is_original else ModelSettings()


def bounded(settings: ModelSettings, tokens_out_max: int | None) -> ModelSettings:
    """The same, for a reply that may be no longer than this."""
    if tokens_out_max is None:
        return settings
    return {**settings, "max_tokens": tokens_out_max}


def _anthropic(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    key = endpoint.api_key or NO_KEY
    client = AsyncAnthropic(
        api_key=key,
        base_url=endpoint.base_url or "https://api.anthropic.com",
        http_client=http,
        max_retries=0,
        open_telemetry=False,
        # Servers that imitate the interface look for the key where it used to be.
        default_headers={"X-Api-Key": key} if endpoint.base_url else None,
    )
    return AnthropicModel(endpoint.model, provider=AnthropicProvider(anthropic_client=client))


def _google(endpoint: Endpoint, http: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(
        api_key=endpoint.api_key or NO_KEY, base_url=endpoint.base_url or None, http_client=http
    )
    return GoogleModel(endpoint.model, provider=provider)
