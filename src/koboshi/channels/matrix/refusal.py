"""Encrypted rooms, which we cannot read: people are told so in the room, once.

That it was said is kept by the homeserver, as data of our account in the room. The words have a
fixed key, so a crash between the two does not say them twice.
"""

import hashlib
from urllib.parse import quote

from koboshi.channels.matrix.client import CLIENT, MatrixApi, MatrixRefused, room_path

TOLD = "app.koboshi.told"
WORDS = (
    "I cannot read this room: it is encrypted, and I have no keys. Please make a room without "
    "encryption and invite me there. Encryption cannot be switched off in a room."
)


async def tell_of_encryption(api: MatrixApi, me: str, room: str) -> None:
    """Say it, unless it was said before. Raises what a call raises."""
    place = f"{CLIENT}/user/{quote(me, safe='')}/rooms/{quote(room, safe='')}/account_data/{TOLD}"
    try:
        await api.call("GET", place)
    except MatrixRefused as refused:
        if refused.status != 404:
            raise
    else:
        return
    key = f"encrypted-{hashlib.sha256(room.encode()).hexdigest()[:12]}"
    content = {"msgtype": "m.notice", "body": WORDS}
    await api.call("PUT", room_path(room, "send", "m.room.message", key), content)
    await api.call("PUT", place, {"encrypted": True})
