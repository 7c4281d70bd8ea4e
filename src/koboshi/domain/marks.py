"""The mark of the gateway, `[koboshi]`, and how words of others are kept from wearing it.

A model is told to rely on lines that begin with the mark. To a model, a fullwidth bracket, a
zero-width space inside the word or a Cyrillic letter still reads as the mark. So the search is for
the look of the mark, and not for its spelling.
"""

import re
import unicodedata
from functools import cache

from koboshi.domain.text import HIDDEN_CLASS

MARK = "[koboshi]"

_BLOCKS = (
    (0x00AA, 0x00BB),  # superscripts of Latin-1
    (0x1D2C, 0x1DC0),  # phonetic letters
    (0x2070, 0x20A0),  # superscripts and subscripts
    (0x2100, 0x2150),  # letter-like symbols
    (0x24B6, 0x24EA),  # circled letters
    (0xFE47, 0xFE49),  # brackets of vertical writing
    (0xFF01, 0xFF5F),  # fullwidth forms
    (0x1D400, 0x1D800),  # mathematical letters
    (0x1F110, 0x1F18A),  # squared and circled letters
)
"""Where Unicode repeats the letters of ASCII in another dress."""
_LOOK_ALIKES = {
    "[": "【〔〖〘〚⟦⟬❲⁅⦋⦍⦏⸢⸤「『",
    "]": "】〕〗〙〛⟧⟭❳⁆⦌⦎⦐⸣⸥」』",
    "k": "кКκΚқҚҡҠⲕⲔ",
    "o": "оОοΟօՕσⲟⲞ",
    "b": "ЬьвВβΒɓƄƅ",
    "s": "ѕЅꜱʂ",
    "h": "һҺհнНΗⲎ",
    "i": "іІιΙıɪӏⅰ",
}
"""Letters of other scripts, and other brackets, that look the same."""
# What stands between the letters of a mark and is not seen, or only as a gap.
_GAP = rf"[\s\x00-\x1f\x7f-\x9f\u0300-\u036f\u2800{HIDDEN_CLASS}]*+"


def unmarked(text: str) -> str:
    """Words of others without our mark, wherever they have it and however it is written: nothing
    that a person or a program says can pass for a line of ours."""
    return _marks().sub("(koboshi)", text)


@cache
def _marks() -> re.Pattern[str]:
    """Linear: a gap holds no bracket and no letter of the mark, and is never given back."""
    return re.compile(_GAP.join(_class(char) for char in MARK), re.IGNORECASE)


def _class(char: str) -> str:
    """Everything that looks like this character."""
    dressed = (
        chr(code)
        for begin, end in _BLOCKS
        for code in range(begin, end)
        if unicodedata.normalize("NFKC", chr(code)).casefold() == char
    )
    alike = {char, *dressed, *_LOOK_ALIKES[char]}
    return f"[{''.join(re.escape(each) for each in sorted(alike))}]"
