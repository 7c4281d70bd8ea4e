"""A model of another distribution (entry point `koboshi.models`), loaded when it is first asked."""

from typing import Protocol, cast

import anyio
import msgspec
import structlog
from anyio import move_on_after, to_thread

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.phrases import excerpt
from koboshi.domain.trouble import ModelTrouble
from koboshi.models.limits import ModelLimits
from koboshi.ports.model import CallRequest, Model, ModelReply, OnText, Request
from koboshi.ports.plugin import ModelSetting, Plugin

CALLS_MAX = 128
"""Of one reply."""

log = structlog.get_logger()


class _Closes(Protocol):
    async def aclose(self) -> None: ...


class PluginModel:
    """A `ports.model.Model` around one that may be broken. Many turns may ask it at once."""

    def __init__(self, plugin: Plugin, setting: ModelSetting, limits: ModelLimits) -> None:
        self._plugin = plugin
        self._setting = setting
        self._limits = limits
        self._opening = anyio.Lock()
        self._model: Model | None = None

    @property
    def name(self) -> str:
        return f"{self._plugin.name}:{self._setting.model}"

    async def respond(self, request: Request, on_text: OnText | None = None) -> ModelReply:
        """The reply of the plug-in's model, if it is one. Raises ModelBusy or ModelRefused."""
        model = await self._loaded()
        seconds = self._limits.total_s
        try:
            with move_on_after(seconds):
                reply = self._checked(await model.respond(request))
                if on_text is not None:
                    on_text(reply.text)
                return reply
        except (ModelBusy, ModelRefused):
            raise
        except (Exception, SystemExit) as error:
            raise self._broke("it broke while it was asked", error) from error
        raise ModelBusy(
            f"the model {self.name} did not finish its reply within {seconds:g} seconds"
        )

    async def aclose(self) -> None:
        """Close the model, if that is something it can do."""
        model, self._model = self._model, None
        if not callable(getattr(model, "aclose", None)):
            return
        try:
            await cast(_Closes, model).aclose()
        except (Exception, SystemExit):
            log.warning("model_not_closed", model=self.name, exc_info=True)

    async def _loaded(self) -> Model:
        async with self._opening:
            if self._model is None:
                self._model = await self._load()
            return self._model

    async def _load(self) -> Model:
        seconds = self._limits.load_s
        try:
            with move_on_after(seconds):
                # In a thread, so that messages are accepted meanwhile.
                return await to_thread.run_sync(self._open, abandon_on_cancel=True)
        except (Exception, SystemExit) as error:
            raise self._broke("it could not be loaded", error) from error
        raise ModelBusy(f"the model {self.name} was not loaded within {seconds:g} seconds")

    def _open(self) -> Model:
        make = self._plugin.load()
        if not callable(make):
            raise TypeError("the entry point is not something that makes a model")
        model = make(self._setting)
        if not callable(getattr(model, "respond", None)):
            raise TypeError(f"it made a {type(model).__name__}, not a model")
        log.info("model_loaded", model=self.name, distribution=self._plugin.distribution)
        return cast(Model, model)

    def _broke(self, what: str, error: BaseException) -> ModelRefused:
        who = f"the plug-in {self._plugin.name} ({self._plugin.distribution})"
        log.error("model_plugin_broke", model=self.name, reason=what, exc_info=True)
        words = excerpt(f"{type(error).__name__}: {error}", 200)
        told = f"{who} of the model does not work: {what} ({words})"
        return ModelRefused(told, trouble=ModelTrouble.FAILED)

    def _checked(self, reply: object) -> ModelReply:
        """The reply, if it keeps the contract: what is stored must be right."""
        if not isinstance(reply, ModelReply) or not isinstance(reply.text, str):
            raise TypeError(f"the reply is a {type(reply).__name__}, not a ModelReply")
        calls = tuple(reply.calls)
        if len(calls) > CALLS_MAX:
            raise ValueError(f"the reply has {len(calls)} calls; at most {CALLS_MAX} are taken")
        size = len(reply.text) + len(reply.raw) + sum(len(call.arguments) for call in calls)
        if size > self._limits.reply_chars_max:
            raise ValueError("the reply is too long to be kept")
        if not all(0 <= count <= 2**53 for count in (reply.tokens_in, reply.tokens_out)):
            raise ValueError("the reply says that it took a number of tokens that cannot be")
        for call in calls:
            if not isinstance(call, CallRequest):
                raise TypeError(f"a call is a {type(call).__name__}, not a CallRequest")
            msgspec.json.decode(call.arguments, type=dict[str, object])
        return ModelReply(
            text=reply.text,
            calls=calls,
            model=reply.model or self.name,
            tokens_in=int(reply.tokens_in),
            tokens_out=int(reply.tokens_out),
            raw=reply.raw,
            is_cut=bool(reply.is_cut) and not calls,
        )
