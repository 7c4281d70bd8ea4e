"""Everything that a plug-in is made with. The gateway itself does not import this."""

from koboshi.channels.common.optional import OptionalParts
from koboshi.domain.errors import ChannelUnusable, FileNotHad, ModelBusy, ModelCut, ModelRefused
from koboshi.domain.files import Attachment
from koboshi.domain.ids import ChannelName, TurnId
from koboshi.domain.inbox import Words
from koboshi.domain.outbox import Delivery, Later, Moved, Near, Refused, SendOutcome, Sent, Unsure
from koboshi.domain.route import Route
from koboshi.domain.splitting import split_text
from koboshi.domain.transcript import Choice, Effect, Need
from koboshi.ports.channel import Abilities, Accept, Channel, Inbound, Receipt
from koboshi.ports.model import CallRequest, Model, ModelReply, Request, ToolSpec
from koboshi.ports.plugin import ChannelSetting, ModelSetting, ToolSetting
from koboshi.ports.tool import Tool, ToolAnswer, ToolContext, ToolFailed
from koboshi.tools.declared import DeclaredTool, result_text

__all__ = [
    "Abilities",
    "Accept",
    "Attachment",
    "CallRequest",
    "Channel",
    "ChannelName",
    "ChannelSetting",
    "ChannelUnusable",
    "Choice",
    "DeclaredTool",
    "Delivery",
    "Effect",
    "FileNotHad",
    "Inbound",
    "Later",
    "Model",
    "ModelBusy",
    "ModelCut",
    "ModelRefused",
    "ModelReply",
    "ModelSetting",
    "Moved",
    "Near",
    "Need",
    "OptionalParts",
    "Receipt",
    "Refused",
    "Request",
    "Route",
    "SendOutcome",
    "Sent",
    "Tool",
    "ToolAnswer",
    "ToolContext",
    "ToolFailed",
    "ToolSetting",
    "ToolSpec",
    "TurnId",
    "Unsure",
    "Words",
    "result_text",
    "split_text",
]
