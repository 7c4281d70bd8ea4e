"""Formatted text in a platform's own form, and parts that fit by its own measure."""

import pytest

from koboshi.channels.common.formatting.formatted import clean
from koboshi.channels.common.formatting.markdown import page_of
from koboshi.channels.common.formatting.markup import HTML, marked, parts_that_fit
from koboshi.channels.common.shown import shown_of
from koboshi.domain.ids import ChannelName
from koboshi.domain.phrases import DUPLICATE_LABEL
from koboshi.domain.route import Route
from tests.channels.telegram_rig import owed

HERE = Route(channel=ChannelName("test:main"), chat="1")


def html(markdown: str) -> str:
    return marked(page_of(clean(markdown)).shown, HTML)


@pytest.mark.parametrize(
    "markdown, shown",
    [
        ("plain <b> & words", "plain &lt;b&gt; &amp; words"),
        ("**bold *both* bold** end", "<strong>bold <em>both</em> bold</strong> end"),
        ("~~gone~~ `a<b`", "<del>gone</del> <code>a&lt;b</code>"),
        (
            "[here](https://example.org/?a=1&b=2)",
            '<a href="https://example.org/?a=1&amp;b=2">here</a>',
        ),
        ("```py\na = 1\nb = 2\n```", '<pre><code class="language-py">a = 1\nb = 2</code></pre>'),
        ("one\ntwo", "one<br>two"),
        ("> quoted", "<blockquote>quoted</blockquote>"),
        ("[x](javascript:alert)", "x (javascript:alert)"),
    ],
)
def test_markdown_becomes_the_html_of_chat_clients(markdown: str, shown: str) -> None:
    assert html(markdown) == shown


def test_a_part_that_is_longer_as_it_is_sent_than_it_looks_is_split_again() -> None:
    markdown = "<" * 900 + "\n\n" + "plain words " * 50

    parts = parts_that_fit(markdown, 1_000, lambda part: len(html(part)), 1_500)

    assert all(len(html(part)) <= 1_500 for part in parts)
    assert "".join("".join(parts).replace("\\", "").split()) == "".join(markdown.split())


def test_a_delivery_is_shown_with_its_label_and_its_literal() -> None:
    labelled = shown_of(owed(HERE, "**now**", may_be_duplicate=True), 4_000)
    assert marked(labelled, HTML).endswith("<br><strong>now</strong>")
    assert labelled.text == f"{DUPLICATE_LABEL}now"

    asked = shown_of(owed(HERE, "May I?\nrm *x*", literal=(7, 13)), 4_000)
    assert marked(asked, HTML) == "May I?<br><pre><code>rm *x*</code></pre>"
