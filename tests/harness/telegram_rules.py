"""What the Bot API demands of a text and its entities, and texts to try it with."""

import re

from hypothesis import strategies as st

from koboshi.channels.telegram.render import Entity, Rendered, units

STYLES = {"bold", "italic", "strikethrough"}
CODES = {"code", "pre"}
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
KINDS = STYLES | CODES | {"text_link", "blockquote"}


def shown(rendered: Rendered) -> list[tuple[str, str]]:
    """Kind and text of each entity; fails for one that begins or ends in a surrogate pair."""
    raw = rendered.text.encode("utf-16-le")
    return [
        (each.type, raw[each.offset * 2 : _end(each) * 2].decode("utf-16-le"))
        for each in rendered.entities
    ]


def squeezed(text: str) -> str:
    return "".join(text.split())


def check(rendered: Rendered) -> None:
    """Fail if the Bot API would refuse or change this."""
    assert rendered.text == rendered.text.strip()
    assert not CONTROLS.search(rendered.text)
    length = units(rendered.text)
    around: list[Entity] = []
    for entity, (_, words) in zip(rendered.entities, shown(rendered), strict=True):
        assert entity.type in KINDS
        assert entity.offset >= 0
        assert entity.length > 0
        assert _end(entity) <= length
        assert words == words.strip()
        assert (entity.type == "text_link") == bool(entity.url)
        assert not entity.language or entity.type == "pre"
        while around and _end(around[-1]) <= entity.offset:
            around.pop()
        for outer in around:
            check_nested(outer, entity)
        around.append(entity)


def check_nested(outer: Entity, inner: Entity) -> None:
    assert outer.offset <= inner.offset
    assert _end(inner) <= _end(outer), "entities overlap"
    assert outer.type != inner.type
    assert outer.type not in CODES, "code holds nothing"
    assert inner.type not in CODES or outer.type == "blockquote", "only a quote holds code"
    assert inner.type != "blockquote" or outer.type in STYLES


def _end(entity: Entity) -> int:
    return entity.offset + entity.length


HOSTILE = [
    *("[", "*", ">", "`", "_", "~", "|", "<", "&", "\\", "!", "#", "\n", "\t", "- ", "1. "),
    *(
        "![",
        "[a](",
        "[a]",
        "](",
        "[[a](http://b.c)",
        '[a](b "',
        "[a](<b",
        "[a](((",
        "<a ",
        "<http://",
    ),
    *(
        "*a ",
        "**a",
        "*_",
        "*a_b**",
        "a**b c* ",
        "~~a",
        "`a",
        "``a`",
        "\\[",
        "&amp;",
        "&#1",
        "<!-- ",
    ),
    *("a\n", "> a\n", "- a\n", "1. a\n", "# a\n", "---\n", "```\n", "    a\n", "|1|2|\n", "|a"),
    *("[a]: b\n", "[a]: http://b.c\n", '[a]: http://b.c "', "> - > - a\n", ">" * 20 + "a\n"),
    *("😀", "👨‍👩‍👧‍👦", "🇩🇪", "é", "\u200b", "שלום ", "\ud800", "\x00"),
]

_WORDS = st.text(
    st.sampled_from(
        "abcXYZ 0129.,:;!?()'\"/-+=#_~*`[]<>&|\\\täß日本語。שלוםمرحبا😀👍🏽\u0301\u200d"
    ),
    max_size=12,
)
_WORD = st.sampled_from(
    [
        "word",
        "snake_case",
        "日本語",
        "مرحبا",
        "😀",
        "👨‍👩‍👧‍👦",
        "1.",
        "2*3*4",
        "a * b",
        "C#",
        "e.g. so.",
        "<b>",
        "x < y",
    ]
)


def _inline() -> st.SearchStrategy[str]:
    def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        joined = st.lists(inner, min_size=1, max_size=4).map(" ".join)
        forms = st.sampled_from(
            (
                *("**{}**", "*{}*", "_{}_", "~~{}~~", "***{}***", "{}\n{}", "{}  \n{}", "{}{}"),
                *("[{}](https://e.org/a_(b)?c=1&d)", "[{}](rel.md)", "![{}](http://x.y/z.png)"),
                "[{}][r]",
            )
        )
        return st.tuples(forms, joined).map(lambda made: made[0].replace("{}", made[1]))

    code = _WORDS.map(lambda text: f"`` {text} ``")
    return st.recursive(_WORD | _WORDS | code, wider, max_leaves=8)


def _indented(text: str, first: str, others: str) -> str:
    return "\n".join((others if at else first) + line for at, line in enumerate(text.split("\n")))


def _blocks() -> st.SearchStrategy[str]:
    def wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        several = st.lists(inner, min_size=1, max_size=4)
        return st.one_of(
            several.map("\n\n".join),
            several.map("\n".join),
            several.map(lambda items: "\n".join(_indented(item, "- ", "  ") for item in items)),
            several.map(lambda items: "\n\n".join(_indented(item, "1. ", "   ") for item in items)),
            inner.map(lambda text: _indented(text, "- [x] ", "  ")),
            inner.map(lambda text: _indented(text, "> ", "> ")),
        )

    line = _inline()
    fences = st.tuples(st.sampled_from(["", "python", "c++ x"]), st.lists(_WORDS, max_size=9)).map(
        lambda made: "~~~~" + made[0] + "\n" + "\n".join(made[1]) + "\n~~~~"
    )
    tables = st.lists(st.tuples(_WORDS, _WORDS), min_size=1, max_size=5).map(
        lambda rows: "| a | b |\n|:-:|--:|\n" + "\n".join(f"| {a} | {b} |" for a, b in rows)
    )
    leaves = st.one_of(
        line,
        line.map(lambda text: "## " + text),
        fences,
        tables,
        st.sampled_from(
            ["---", "    code\n      more", "[r]: http://e.org", "<div>\nhtml\n</div>"]
        ),
    )
    return st.recursive(leaves, wider, max_leaves=12)


MARKDOWN = _blocks()
ANY_TEXT = st.text(st.characters(), max_size=300) | st.text(
    st.sampled_from("ab \n\t*_~`[]()<>&#!\\|-+=:.1😀\u0301é\u200d"), max_size=200
)
