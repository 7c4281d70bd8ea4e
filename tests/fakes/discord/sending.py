"""A message of the bot: what is refused, and what is the same message again."""

import itertools

from tests.fakes.discord import errors
from tests.fakes.discord.errors import invalid
from tests.fakes.discord.state import JSON, SEND, ChannelType, DiscordChannel, DiscordMessage
from tests.fakes.discord.world import DiscordWorld
from tests.fakes.telegram.params import Upload

TEXT_MAX = 2_000
NONCE_MAX = 25
NONCE_S = 180.0
"""A nonce is known for "the past few minutes"."""
ROWS_MAX, BUTTONS_MAX, LABEL_MAX, CUSTOM_MAX = 5, 5, 80, 100
FILES_MAX, FILE_BYTES_MAX = 10, 10 * 1024 * 1024


def create(
    world: DiscordWorld, place: DiscordChannel, asked: JSON, uploads: dict[str, Upload]
) -> DiscordMessage:
    """The message, which may be one that was there before. Raises ApiRefusal."""
    _check_place(place)
    text = str(asked.get("content") or "").strip()
    check_text(text)
    components = tuple(asked.get("components") or ())
    _check_components(components)
    files = _files(asked, uploads)
    if not text and not components and not files:
        raise errors.EMPTY
    nonce = _nonce(asked)
    answered = _answered(place, asked.get("message_reference"))
    if nonce is not None and asked.get("enforce_nonce"):
        before = _with_nonce(world, nonce)
        if before is not None:
            return before
    made = DiscordMessage(
        world.next_id(), place, world.bot, text, nonce, 19 if answered else 0, at=world.clock()
    )
    made.answers, made.components = answered, _numbered(components)
    made.attachments = tuple(world.keep(each.name, each.kind, each.content) for each in files)
    parsed = (asked.get("allowed_mentions") or {"parse": ["users"]}).get("parse", [])
    made.mentions = world.mentioned(text) if "users" in parsed else ()
    world.add_message(made)
    return made


def check_text(text: object) -> None:
    if not isinstance(text, str) or len(text) > TEXT_MAX:
        invalid("content: Must be 2000 or fewer in length.")


def _check_place(place: DiscordChannel) -> None:
    if place.kind is ChannelType.FORUM:
        raise errors.NOT_TEXT
    if not place.may(SEND):
        raise errors.NO_PERMISSION
    if place.is_locked:
        raise errors.THREAD_LOCKED
    if place.recipient is not None and not place.recipient.takes_dms:
        raise errors.NO_DMS


def _nonce(asked: JSON) -> str | None:
    nonce = asked.get("nonce")
    if nonce is None:
        return None
    if not isinstance(nonce, str | int) or len(str(nonce)) > NONCE_MAX:
        invalid("nonce: Must be 25 or fewer in length.")
    return str(nonce)


def _with_nonce(world: DiscordWorld, nonce: str) -> DiscordMessage | None:
    since = world.clock() - NONCE_S
    said = (each for place in world.channels.values() for each in place.messages.values())
    return next(
        (
            each
            for each in said
            if each.author is world.bot and each.nonce == nonce and each.at > since
        ),
        None,
    )


def _answered(place: DiscordChannel, reference: JSON | None) -> DiscordMessage | None:
    if reference is None:
        return None
    number = str(reference.get("message_id", ""))
    found = place.messages.get(int(number)) if number.isdecimal() else None
    if found is None and reference.get("fail_if_not_exists", True):
        invalid("message_reference: Unknown message")
    return found


def _check_components(rows: tuple[JSON, ...]) -> None:
    if len(rows) > ROWS_MAX:
        invalid("components: Must be 5 or fewer in length.")
    seen: set[str] = set()
    for row in rows:
        buttons = row.get("components")
        if row.get("type") != 1 or not isinstance(buttons, list):
            invalid("components: only rows of buttons are known here")
        if not 1 <= len(buttons) <= BUTTONS_MAX:
            invalid("components: Must be between 1 and 5 in length.")
        for button in buttons:
            label, custom = button.get("label", ""), button.get("custom_id", "")
            if button.get("type") != 2 or button.get("style") not in (1, 2, 3, 4):
                invalid("components: a button has a type and a style")
            if not 1 <= len(label) <= LABEL_MAX or not 1 <= len(custom) <= CUSTOM_MAX:
                invalid("components: label or custom_id has a wrong length")
            if custom in seen:
                invalid("components: Component custom id cannot be duplicated")
            seen.add(custom)


def _numbered(rows: tuple[JSON, ...]) -> tuple[JSON, ...]:
    """Each component gets a number within its message."""
    numbers = itertools.count(1)
    return tuple(
        row
        | {"id": next(numbers)}
        | {"components": [{"id": next(numbers), **each} for each in row["components"]]}
        for row in rows
    )


def _files(asked: JSON, uploads: dict[str, Upload]) -> list[Upload]:
    if len(uploads) > FILES_MAX:
        invalid("files: at most 10")
    if sum(len(each.content) for each in uploads.values()) > FILE_BYTES_MAX:
        raise errors.TOO_LARGE
    for described in asked.get("attachments") or []:
        if f"files[{described.get('id')}]" not in uploads:
            invalid("attachments: no such file was uploaded")
    return list(uploads.values())
