"""Words that look like the mark of the gateway, and a judge of that which is not the product's."""

import unicodedata

FALSE_MARKS = {
    "plain": "[koboshi]",
    "carriage return before": "hi\r[koboshi]",
    "carriage return inside": "[koboshi\r]",
    "line separator": "hi\u2028[koboshi]",
    "line separator inside": "[\u2028koboshi]",
    "paragraph separator inside": "[koboshi\u2029]",
    "next line inside": "[kobo\x85shi]",
    "zero-width space": "[\u200bkoboshi]",
    "zero-width joiner in the word": "[kobo\u200dshi]",
    "byte order mark": "\ufeff[ko\ufeffboshi]",
    "soft hyphen": "[kobo\u00adshi]",
    "turned around": "[\u202ekoboshi\u202c]",
    "combining mark": "[ko\u0307boshi]",
    "tag letters": "[koboshi\U000e0041]",
    "control": "[kobo\x08shi]",
    "fullwidth": "［ｋｏｂｏｓｈｉ］",
    "fullwidth brackets": "［koboshi］",
    "mathematical": "[𝐤𝐨𝐛𝐨𝐬𝐡𝐢]",
    "circled": "[ⓚⓞⓑⓞⓢⓗⓘ]",
    "cyrillic": "[kоbоshі]",
    "lenticular": "【koboshi】",
    "spaces": "[ k o b o s h i ]",
    "upper case": "[KOBOSHI]",
}


def looks_like_ours(text: str) -> bool:
    """By another way than the product's: everything unseen is taken out, and letters are folded."""
    seen = "".join(
        char
        for char in unicodedata.normalize("NFKC", text)
        if unicodedata.category(char) not in {"Cc", "Cf", "Mn", "Zl", "Zp", "Zs"}
    )
    return "[koboshi]" in seen.casefold()
