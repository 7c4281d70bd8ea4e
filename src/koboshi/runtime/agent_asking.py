"""What an agent asks of us: permissions, files and terminals. Each request is a row, answered once.

Inside the boundary a permission is given for this one time, and that is recorded. Where every
command is asked about, or nothing stands around the agent, the owners decide, as about a command of
our own. What an agent offers for good is never chosen.
"""

import json
from dataclasses import dataclass
from enum import StrEnum

import structlog

from koboshi.domain.agent import AgentRequest
from koboshi.domain.approval import Approval, Unaskable
from koboshi.domain.ids import CallId
from koboshi.domain.phrases import YES_NO
from koboshi.domain.transcript import (
    Call,
    CallRecord,
    Choice,
    Effect,
    Need,
    Result,
    ResultStatus,
)
from koboshi.domain.turn import Claim
from koboshi.ports.agents import AgentLanguage, AgentService, PermissionAsked
from koboshi.ports.model import ToolSpec
from koboshi.ports.store import Loaded, Store
from koboshi.ports.tool import ToolAnswer, ToolContext, ToolFailed
from koboshi.runtime.approval_cards import ApprovalCards

log = structlog.get_logger()

PERMISSION = "session/request_permission"
TOOL = "agent permission"
WORDS_CHARS_MAX = 20_000
"""Of what a person is asked. More is refused: no person says yes to what is not shown."""
TOO_LONG = "too long to be asked"


class Permits(StrEnum):
    """How permissions are decided."""

    ALLOW = "allow"  # inside the boundary
    ASK = "ask"
    REFUSE = "refuse"


class Served(StrEnum):
    DONE = "done"
    LATER = "later"  # it is asked again in a moment
    ASKED = "asked"  # a person is asked first, and the turn waits


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionTool:
    """A permission of an agent, in the form in which persons are asked."""

    agent: str

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=TOOL, description="What an agent wants to do.", parameters="{}")

    def effect_of(self, arguments: str) -> Effect:  # noqa: ARG002
        return Effect.NONE

    def need_of(self, arguments: str) -> Need:  # noqa: ARG002
        return Need.APPROVAL

    def complaint_about(self, arguments: str) -> str | None:  # noqa: ARG002
        return None

    def question_of(self, arguments: str) -> tuple[str, tuple[Choice, ...]]:
        return json.loads(arguments)["words"], YES_NO

    async def approval_of(self, arguments: str) -> Approval:
        return Approval(
            lead=f"The agent {self.agent} asks to do this. These are the agent's words:",
            literal=json.loads(arguments)["words"],
            notes=("What it does then is up to the agent; a yes counts once.",),
            binds=(self.agent,),
        )

    async def run(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise ToolFailed("a permission is not run")

    async def resume(self, arguments: str, context: ToolContext) -> ToolAnswer:  # noqa: ARG002
        raise ToolFailed("a permission is not run")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentAsking:
    store: Store
    cards: ApprovalCards
    permits: Permits
    service: AgentService

    async def serve(
        self, claim: Claim, loaded: Loaded, language: AgentLanguage, request: AgentRequest
    ) -> Served:
        """Answer one request."""
        if request.turn_id != claim.turn_id:
            body = language.refusal(request, "there is no turn that this belongs to")
            if request.method == PERMISSION:
                body = language.permitted(request, None)
            await self.store.agents.reply(request, body, "outside of a turn")
            return Served.DONE
        if request.method == PERMISSION:
            is_asked = await self._permit(claim, loaded, language, request)
            return Served.ASKED if is_asked else Served.DONE
        try:
            found = await self.service.serve(claim, loaded.standing, request)
        except LookupError:
            body = language.refusal(request, f"{request.method} is not known", is_unknown=True)
            await self.store.agents.reply(request, body, "not known")
            return Served.DONE
        if found is None:
            return Served.LATER
        if isinstance(found, str):
            await self.store.agents.reply(request, language.refusal(request, found), found[:500])
        else:
            await self.store.agents.reply(request, language.answer(request, found), "done")
        return Served.DONE

    async def _permit(
        self, claim: Claim, loaded: Loaded, language: AgentLanguage, request: AgentRequest
    ) -> bool:
        asked = language.permission(request)
        if asked is None:
            body = language.refusal(request, "the request makes no sense")
            await self.store.agents.reply(request, body, "not understood")
            return False
        if request.call_id is not None:
            return await self._settle(claim, loaded, language, request, asked, request.call_id)
        if self.permits is Permits.ASK and len(asked.words) > WORDS_CHARS_MAX:
            body = language.permitted(request, asked.reject_once)
            await self.store.agents.reply(request, body, TOO_LONG)
            return False
        if self.permits is Permits.ASK and asked.allow_once is not None:
            return await self._ask(claim, loaded, language, request, asked)
        is_allowed = self.permits is Permits.ALLOW and asked.allow_once is not None
        option = asked.allow_once if is_allowed else asked.reject_once
        note = "allowed once, inside the boundary" if is_allowed else "refused"
        await self.store.agents.reply(request, language.permitted(request, option), note)
        log.info("agent_permission", allowed=is_allowed)
        return False

    async def _ask(
        self,
        claim: Claim,
        loaded: Loaded,
        language: AgentLanguage,
        request: AgentRequest,
        asked: PermissionAsked,
    ) -> bool:
        arguments = json.dumps({"words": asked.words})
        call_id = await self.store.agents.propose(claim, request, TOOL, arguments)
        return await self._put(claim, loaded, language, request, asked, call_id, arguments)

    async def _put(
        self,
        claim: Claim,
        loaded: Loaded,
        language: AgentLanguage,
        request: AgentRequest,
        asked: PermissionAsked,
        call_id: CallId,
        arguments: str,
    ) -> bool:
        """Ask the person about a call that is stored."""
        call = Call(
            call_id=call_id,
            tool=TOOL,
            arguments=arguments,
            effect=Effect.NONE,
            need=Need.APPROVAL,
        )
        tool = PermissionTool(agent=await self._agent_of(claim))
        card = await self.cards.card(loaded.session.route.channel, tool, call, loaded.steps)
        if isinstance(card, Unaskable):
            result = Result(call_id=call_id, status=ResultStatus.ERROR, text=str(card))
            body = language.permitted(request, asked.reject_once)
            await self.store.agents.reply(request, body, TOO_LONG, result)
            return False
        return await self.store.turns.ask(
            claim,
            call_id,
            card.text,
            card.choices,
            self.cards.age_ms_max,
            sealed=card.sealed,
            chat_text=card.chat_text,
        )

    async def _agent_of(self, claim: Claim) -> str:
        return await self.store.agents.is_prompted(claim.turn_id) or "agent"

    async def _settle(
        self,
        claim: Claim,
        loaded: Loaded,
        language: AgentLanguage,
        request: AgentRequest,
        asked: PermissionAsked,
        call_id: CallId,
    ) -> bool:
        """Tell the agent what the person said. If a crash came before the question, ask now."""
        calls = (await self.store.turns.load(claim)).calls
        record = next((each for each in calls if each.call.call_id == call_id), None)
        if record is not None and record.is_unresolved and record.approved_ms is None:
            arguments = record.call.arguments
            return await self._put(claim, loaded, language, request, asked, call_id, arguments)
        is_yes = _is_yes(record)
        option = asked.allow_once if is_yes else asked.reject_once
        result = Result(call_id=call_id, status=ResultStatus.OK, text="allowed once")
        note = "allowed once by a person" if is_yes else "denied by a person"
        body = language.permitted(request, option)
        await self.store.agents.reply(request, body, note, result if is_yes else None)
        return False


def _is_yes(record: CallRecord | None) -> bool:
    return record is not None and record.approved_ms is not None
