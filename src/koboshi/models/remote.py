"""A model at a provider, whose library is loaded when the first request needs it."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import anyio
import structlog
from anyio import move_on_after, to_thread

from koboshi.domain.errors import CodeChanged, ModelBusy, ModelRefused
from koboshi.domain.trouble import ModelTrouble
from koboshi.models.endpoint import Endpoint
from koboshi.models.limits import ModelLimits
from koboshi.ports.model import ModelReply, Request

if TYPE_CHECKING:
    import httpx2

log = structlog.get_logger()


class _Engine(Protocol):
    """Whatever asks the provider."""

    async def respond(
        self, request: Request, on_text: Callable[[str], None] | None
    ) -> ModelReply: ...

    async def aclose(self) -> None: ...


class RemoteModel:
    """A `ports.model.Model`. Many turns may ask it at the same time."""

    def __init__(
        self,
        endpoint: Endpoint,
        limits: ModelLimits,
        transport: "httpx2.AsyncBaseTransport | None" = None,
    ) -> None:
        self._endpoint = endpoint
        self._limits = limits
        self._transport = transport
        self._opening = anyio.Lock()
        self._engine: _Engine | None = None
        self._is_closed = False

    @property
    def name(self) -> str:
        return self._endpoint.name

    async def respond(
        self, request: Request, on_text: Callable[[str], None] | None = None
    ) -> ModelReply:
        """The model's next reply, whole.

        `on_text` is told each piece of the text as it comes, for display: nothing counts before the
        reply is returned, and a request that is repeated begins anew. Raises ModelBusy or
        ModelRefused; their words hold no secret.
        """
        engine = await self._loaded()
        return await engine.respond(request, on_text)

    async def aclose(self) -> None:
        """Close the connections. Requests that come later are refused as busy."""
        self._is_closed = True
        engine, self._engine = self._engine, None
        if engine is not None:
            await engine.aclose()

    async def _loaded(self) -> _Engine:
        async with self._opening:
            if self._is_closed:
                raise ModelBusy("the gateway is stopping", trouble=ModelTrouble.OURS)
            if self._engine is None:
                self._engine = await self._load()
            return self._engine

    async def _load(self) -> _Engine:
        try:
            with move_on_after(self._limits.load_s):
                # In a thread, so that messages are accepted meanwhile; a turn that is stopped does
                # not wait for it.
                engine = await to_thread.run_sync(self._open, abandon_on_cancel=True)
                log.info("model_loaded", model=self.name)
                return engine
        except CodeChanged as error:
            words = f"{error}; it goes on after a restart of the gateway"
            raise ModelBusy(words, trouble=ModelTrouble.OURS) from error
        except ImportError as error:
            log.error("model_not_loaded", model=self.name, error=str(error))
            words = f"the library for {self.name} cannot be loaded: {error}"
            raise ModelRefused(words, trouble=ModelTrouble.KEY) from error
        words = f"the library for {self.name} took too long to load"
        raise ModelBusy(words, trouble=ModelTrouble.OURS)

    def _open(self) -> _Engine:
        # Not at the top: these imports are what takes the time and most of the memory.
        if self._endpoint.needs_library:
            from koboshi.models.engine import Engine

            return Engine(self._endpoint, self._limits, self._transport)
        from koboshi.models.opening import stream_engine

        return stream_engine(self._endpoint, self._limits, self._transport)
