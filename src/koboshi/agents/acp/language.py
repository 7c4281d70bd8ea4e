"""What we say to agents, and what we understand of them. Loaded when the first agent is needed."""

import json
from collections.abc import Mapping, Sequence

from acp import PROTOCOL_VERSION, schema
from pydantic import BaseModel, ValidationError

from koboshi import __version__
from koboshi.agents.acp.hearing import hear
from koboshi.domain.agent import METHODS, AgentRequest, MessageKind
from koboshi.domain.agent_talk import Heard
from koboshi.domain.text import plain
from koboshi.ports.agents import PassedServer, PermissionAsked

NO_METHOD, REFUSED = -32601, -32000


class AcpLanguage:
    def line(self, number: int, kind: MessageKind, body: str) -> bytes:
        has_id = kind not in (MessageKind.CANCEL, MessageKind.REPLY)
        head = f'{{"jsonrpc":"2.0","id":{number},' if has_id else '{"jsonrpc":"2.0",'
        return f"{head}{body[1:]}\n".encode()

    def greeting(self) -> str:
        can = schema.ClientCapabilities(
            fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True),
            terminal=True,
        )
        return _request(
            MessageKind.INITIALIZE,
            schema.InitializeRequest(
                protocol_version=PROTOCOL_VERSION,
                client_capabilities=can,
                client_info=schema.Implementation(name="koboshi", version=__version__),
            ),
        )

    def opening(
        self, kind: MessageKind, external_id: str, workdir: str, servers: Sequence[PassedServer]
    ) -> str:
        passed = [_server(each) for each in servers]
        if kind is MessageKind.LOAD:
            load = schema.LoadSessionRequest(
                cwd=workdir, session_id=external_id, mcp_servers=passed
            )
            return _request(kind, load)
        return _request(kind, schema.NewSessionRequest(cwd=workdir, mcp_servers=passed))

    def prompt(self, external_id: str, text: str) -> str:
        block = schema.TextContentBlock(type="text", text=text)
        prompt = schema.PromptRequest(session_id=external_id, prompt=[block])
        return _request(MessageKind.PROMPT, prompt)

    def cancel(self, external_id: str) -> str:
        cancel = schema.CancelNotification(session_id=external_id)
        return _request(MessageKind.CANCEL, cancel)

    def hear(self, offset: int, content: bytes) -> list[Heard]:
        return hear(offset, content)

    def permission(self, request: AgentRequest) -> PermissionAsked | None:
        try:
            asked = schema.RequestPermissionRequest.model_validate_json(request.params)
        except ValidationError:
            return None
        call = asked.tool_call
        words = [plain(call.title or call.tool_call_id)]
        if call.raw_input is not None:
            words.append(json.dumps(call.raw_input, ensure_ascii=False, default=str))
        by_kind = {option.kind: option.option_id for option in reversed(asked.options)}
        return PermissionAsked(
            words="\n".join(words),
            allow_once=by_kind.get("allow_once"),
            reject_once=by_kind.get("reject_once"),
        )

    def permitted(self, request: AgentRequest, option: str | None) -> str:
        outcome: dict[str, object] = {"outcome": "cancelled"}
        if option is not None:
            outcome = {"outcome": "selected", "optionId": option}
        return self.answer(request, {"outcome": outcome})

    def answer(self, request: AgentRequest, result: Mapping[str, object]) -> str:
        return json.dumps({"id": json.loads(request.external_id), "result": dict(result)})

    def refusal(self, request: AgentRequest, why: str, *, is_unknown: bool = False) -> str:
        error = {"code": NO_METHOD if is_unknown else REFUSED, "message": why}
        return json.dumps({"id": json.loads(request.external_id), "error": error})


def _request(kind: MessageKind, params: BaseModel) -> str:
    said = params.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=False)
    return json.dumps({"method": METHODS[kind], "params": said})


def _server(
    passed: PassedServer,
) -> schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio:
    if passed.url:
        headers = [
            schema.HttpHeader(name=name, value=said) for name, said in passed.headers.items()
        ]
        return schema.HttpMcpServer(type="http", name=passed.name, url=passed.url, headers=headers)
    variables = [
        schema.EnvVariable(name=name, value=said) for name, said in passed.environment.items()
    ]
    return schema.McpServerStdio(
        name=passed.name, command=passed.command, args=list(passed.args), env=variables
    )
