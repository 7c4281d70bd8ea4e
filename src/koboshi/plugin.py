"""Everything that a plug-in is made with. The gateway itself does not import this."""

from koboshi.domain.errors import ModelBusy, ModelRefused
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.model import CallRequest, Model, ModelReply, Request, ToolSpec
from koboshi.ports.plugin import ModelSetting, ToolSetting
from koboshi.ports.tool import Tool, ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import DeclaredTool, result_text

__all__ = [
    "CallRequest",
    "Choice",
    "DeclaredTool",
    "Effect",
    "Model",
    "ModelBusy",
    "ModelRefused",
    "ModelReply",
    "ModelSetting",
    "Need",
    "Request",
    "Tool",
    "ToolAnswer",
    "ToolContext",
    "ToolFailed",
    "ToolSetting",
    "ToolSpec",
    "result_text",
]
