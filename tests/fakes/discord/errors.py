"""How the API refuses: an HTTP status, and a code of its own (opcodes-and-status-codes.mdx)."""

from typing import NoReturn


class ApiRefusal(Exception):
    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


UNAUTHORIZED = ApiRefusal(401, 0, "401: Unauthorized")
NOT_FOUND = ApiRefusal(404, 0, "404: Not Found")
NO_AGENT = ApiRefusal(403, 40333, "internal network error")
"""What a request without a proper User-Agent gets."""
UNKNOWN_CHANNEL = ApiRefusal(404, 10003, "Unknown Channel")
UNKNOWN_GUILD = ApiRefusal(404, 10004, "Unknown Guild")
UNKNOWN_MESSAGE = ApiRefusal(404, 10008, "Unknown Message")
UNKNOWN_USER = ApiRefusal(404, 10013, "Unknown User")
UNKNOWN_INTERACTION = ApiRefusal(404, 10062, "Unknown interaction")
TOO_LARGE = ApiRefusal(413, 40005, "Request entity too large")
ACKNOWLEDGED = ApiRefusal(400, 40060, "Interaction has already been acknowledged.")
MISSING_ACCESS = ApiRefusal(403, 50001, "Missing Access")
NOT_OURS = ApiRefusal(403, 50005, "Cannot edit a message authored by another user")
EMPTY = ApiRefusal(400, 50006, "Cannot send an empty message")
NO_DMS = ApiRefusal(403, 50007, "Cannot send messages to this user")
NOT_TEXT = ApiRefusal(400, 50008, "Cannot send messages in a non-text channel")
NO_PERMISSION = ApiRefusal(403, 50013, "Missing Permissions")
NOT_OF_THIS_KIND = ApiRefusal(400, 50024, "Cannot execute action on this channel type")
THREAD_LOCKED = ApiRefusal(400, 160005, "Thread is locked")


def invalid(what: str) -> NoReturn:
    raise ApiRefusal(400, 50035, f"Invalid Form Body: {what}")
