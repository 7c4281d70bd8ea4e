"""Keyboards under messages."""

from typing import Any

from tests.fakes.telegram.errors import bad_request
from tests.fakes.telegram.params import Params

JSON = dict[str, Any]

CALLBACK_BYTES_MAX = 64
BUTTONS_MAX = 100
_OTHER_KEYBOARDS = ("keyboard", "remove_keyboard", "force_reply")
_DOES = (
    "url callback_data web_app login_url copy_text switch_inline_query callback_game pay".split()
)


def inline_keyboard(params: Params) -> JSON | None:
    """The keyboard that a message will keep; None if it keeps none. Raises Refusal."""
    markup = params.nested("reply_markup", "reply keyboard markup")
    if markup is None:
        return None
    if not isinstance(markup, dict):
        bad_request("object expected as reply markup")
    if any(name in markup for name in _OTHER_KEYBOARDS):
        return None
    rows = markup.get("inline_keyboard")
    if rows is None:
        return None
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        bad_request(
            'field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays'
        )
    kept = [[_button(button) for button in row] for row in rows if row]
    if sum(map(len, kept)) > BUTTONS_MAX:
        bad_request("reply markup is too long")
    return {"inline_keyboard": kept} if kept else None


def _button(button: JSON) -> JSON:
    if not isinstance(button, dict):
        bad_request("can't parse inline keyboard button: expected an Object")
    if not str(button.get("text", "")).strip():
        bad_request('can\'t parse inline keyboard button: Field "text" must be non-empty')
    if not any(name in button for name in _DOES):
        bad_request(
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
        )
    carried = button.get("callback_data")
    if carried is not None and not 1 <= len(str(carried).encode()) <= CALLBACK_BYTES_MAX:
        bad_request("BUTTON_DATA_INVALID")
    return button
