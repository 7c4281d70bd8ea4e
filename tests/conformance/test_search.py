"""Finding what was said: indexed behind the commit, with what is not indexed yet."""

import pytest

from tests.harness.homes import WEB, Home


async def talk(home: Home, *said: str, chat: str = "ann") -> None:
    for words in said:
        await home.answer(await home.work_on(words, chat=chat), f"about {words}")
        await home.deliver(chat)


async def index_all(home: Home) -> None:
    """A store that several nodes write to notes first how far all steps are there."""
    for _ in range(3):
        await home.store.search.index(1_000)


async def found(home: Home, text: str, limit: int = 20) -> list[tuple[str, str]]:
    hits = await home.store.search.find(WEB, text, limit)
    return [(hit.chat, hit.excerpt.replace("\u0001", "[").replace("\u0002", "]")) for hit in hits]


@pytest.mark.parametrize("is_indexed", [False, True])
async def test_messages_and_answers_are_found_newest_first(home: Home, is_indexed: bool) -> None:
    await talk(home, "the Garden is green", "weather", "a garden in Kyōto")
    if is_indexed:
        await index_all(home)
        assert await home.store.search.index(1_000) == 0

    assert await found(home, "gard") == [
        ("ann", "about a [garden] in Kyōto"),
        ("ann", "a [garden] in Kyōto"),
        ("ann", "about the [Garden] is green"),
        ("ann", "the [Garden] is green"),
    ]
    assert len(await found(home, "garden green")) == 2
    assert await found(home, "gardener") == []
    assert await found(home, '" OR *:(') == []


async def test_what_is_indexed_and_what_is_not_are_found_together_once(home: Home) -> None:
    await talk(home, "first pear")
    await index_all(home)
    await talk(home, "second pear")

    assert [words for _, words in await found(home, "pear", 4)] == [
        "about second [pear]",
        "second [pear]",
        "about first [pear]",
        "first [pear]",
    ]


async def test_a_crash_between_two_batches_neither_skips_nor_doubles(home: Home) -> None:
    await talk(home, "one plum", "two plums")
    for _ in range(3):
        await home.store.search.index(1)
    await home.reopen(crash=True)
    for _ in range(40):
        await home.store.search.index(1)

    assert len(await found(home, "plum")) == 4


async def test_names_of_chats_are_found_and_other_channels_are_not(home: Home) -> None:
    await talk(home, "hello", chat="bob")
    await home.store.chats.name(WEB, "bob", "The orchard")

    assert await found(home, "orch") == [("bob", "The [orchard]")]
    assert await home.store.search.find(type(WEB)("hook:main"), "hello", 20) == ()


async def test_an_erasure_clears_the_index_and_the_rest_is_found_again(home: Home) -> None:
    await talk(home, "secret quince")
    await talk(home, "public quince", chat="bob")
    await index_all(home)
    await home.store.chats.delete(WEB, "ann", "operator")
    assert {chat for chat, _ in await found(home, "quince")} == {"bob"}

    await home.store.search.clear()

    assert {chat for chat, _ in await found(home, "quince")} == {"bob"}
    await index_all(home)
    assert {chat for chat, _ in await found(home, "quince")} == {"bob"}
