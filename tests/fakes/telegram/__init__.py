"""A Telegram of our own on the loopback: the Bot API as a bot meets it, and people who use it."""

from tests.fakes.telegram.faults import Act, Fault, Faults, Moment
from tests.fakes.telegram.history import History, Request
from tests.fakes.telegram.limits import Limits
from tests.fakes.telegram.server import TOKEN, FakeTelegram, serving, serving_in_thread
from tests.fakes.telegram.state import Chat, Message, Topic, User
from tests.fakes.telegram.world import World

__all__ = [
    "TOKEN",
    "Act",
    "Chat",
    "FakeTelegram",
    "Fault",
    "Faults",
    "History",
    "Limits",
    "Message",
    "Moment",
    "Request",
    "Topic",
    "User",
    "World",
    "serving",
    "serving_in_thread",
]
