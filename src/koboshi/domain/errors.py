"""Errors that say what the caller must do."""

from koboshi.domain.trouble import ModelTrouble, trouble_of_status


class KoboshiError(Exception):
    """The root of all errors raised by this package on purpose."""


class RoleLost(Exception):
    """A turn has less of a role than what it was about to do needs."""


class Fenced(KoboshiError):
    """The claim is no longer ours: drop what you hold, write nothing more about this turn."""


class IllegalTransition(KoboshiError):
    """A bug: an event was applied to a state that has no such way out."""


class ContradictoryFacts(KoboshiError):
    """A bug in the store: durable facts about one turn exclude each other."""


class BackgroundFull(KoboshiError):
    """As many commands of the session run in the background as may: nothing was stored, so start
    nothing."""


class StoreFailed(KoboshiError):
    """The outcome of a commit is unknown: end this process, the next one reads what is there."""


class Buried(StoreFailed):
    """Another node has ended this worker: what it held may be in other hands by now."""


class HomeCopied(Buried):
    """A gateway on a copy of this home has ended this worker: both would end each other for ever,
    so a person decides."""


class StoreRefused(KoboshiError):
    """The home or its database is not usable as it is; nothing was changed, a person decides."""


class HomeHeld(StoreRefused):
    """Another gateway owns the home."""


class NodeTaken(StoreRefused):
    """Another gateway on the database has the name of this node."""

    def __init__(self, node: str) -> None:
        super().__init__(
            f'another gateway of this database is called "{node}"; give this one a name of its '
            "own: gateway.node"
        )
        self.node = node


class Unusable(KoboshiError):
    """Something cannot work as it is configured; a person has to change it."""


class ChannelUnusable(Unusable):
    """A channel cannot work as it is configured."""


class ModelUnusable(Unusable):
    """The model cannot be used as it is configured."""


class KeyMissing(ModelUnusable):
    """The model is known, and the key for it is not here."""


class ToolUnusable(Unusable):
    """A tool cannot be used as it is configured."""


class FileNotHad(KoboshiError):
    """A file that came with a message can never be had; the words say why."""


class CodeChanged(KoboshiError, ImportError):
    """The module on the disk is of another version than what runs: do without, until a restart."""


class ModelBusy(KoboshiError):
    """The model did not answer this time: ask again after `retry_after_ms`."""

    def __init__(
        self,
        reason: str,
        retry_after_ms: int | None = None,
        *,
        status: int | None = None,
        trouble: ModelTrouble | None = None,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_ms = retry_after_ms
        self.status = status
        """The status that the provider answered with; None if it did not."""
        self._trouble = trouble

    @property
    def trouble(self) -> ModelTrouble:
        """What kind of trouble it is; as the status says, if nothing else does."""
        return self._trouble or trouble_of_status(self.status, is_refusal=False)


class ModelCut(ModelBusy):
    """The reply reached its longest in the middle of a call: with the same bound, asking again does
    not help."""


class ModelRefused(KoboshiError):
    """The model will not answer this request, however often it is asked."""

    def __init__(
        self, reason: str, *, status: int | None = None, trouble: ModelTrouble | None = None
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.status = status
        """The status that the provider answered with; None if it did not."""
        self._trouble = trouble

    @property
    def trouble(self) -> ModelTrouble:
        """What kind of trouble it is; as the status says, if nothing else does."""
        return self._trouble or trouble_of_status(self.status, is_refusal=True)


class ModelOverfull(ModelRefused):
    """The request is longer than the model can take: ask again with a shorter one."""

    @property
    def trouble(self) -> ModelTrouble:
        return ModelTrouble.SIZE


def is_or_holds(error: Exception, kind: type[Exception]) -> bool:
    """Whether an error is of a kind, or a group in which one is: tasks side by side fail in one."""
    if isinstance(error, ExceptionGroup):
        return error.subgroup(kind) is not None
    return isinstance(error, kind)
