"""What one gateway leaves for the others: files in pieces, codes that are good once, accounts."""

from koboshi.domain.ids import ChannelName, WorkerId
from tests.harness.homes import Home

BOT = ChannelName("bot:main")


async def test_a_file_is_kept_whole_or_not_at_all(home: Home) -> None:
    files = home.store.files
    for content in (b"", b"\0\xff", bytes(range(256)) * 3_000):
        path = f"files/{len(content)}"
        assert await files.get(path) is None
        await files.put(path, content)
        assert await files.get(path) == content

    home.sql("DELETE FROM kept_files WHERE part = -1")
    assert await files.get("files/2") is None, "the row that makes it whole is missing"
    await files.put("files/2", b"\0\xff")
    assert await files.get("files/2") == b"\0\xff", "it is finished by repeating"


async def test_old_files_go_unless_they_are_still_owed(home: Home) -> None:
    for path in ("files/a", "files/b"):
        await home.store.files.put(path, b"x")
    home.clock.move(1_000)

    assert await home.store.files.sweep(home.clock.now_ms(), frozenset({"files/a"})) == 1
    assert await home.store.files.get("files/a") == b"x"
    assert await home.store.files.get("files/b") is None


async def test_a_login_code_is_good_once_for_a_while_and_only_the_newest_are(home: Home) -> None:
    browsers = home.store.browsers
    for code in ("one", "two", "three"):
        await browsers.offer(code, life_ms=1_000, kept=2)
        home.clock.move(1)

    assert not await browsers.redeem("one"), "two newer ones are kept"
    assert await browsers.redeem("two")
    assert not await browsers.redeem("two")
    home.clock.move(2_000)
    assert not await browsers.redeem("three")


async def test_an_account_has_one_owner_until_that_one_ends_or_gives_it_back(home: Home) -> None:
    accounts, worker_id = home.store.accounts, home.worker.worker_id
    await home.store.inbox.bind({BOT: "4711"})
    home.sql(
        "INSERT INTO workers (worker_id, host, pid, birth, version, started_ms, heartbeat_ms, "
        "node, home) VALUES (77, 'other', 1, 'b/1', '0', 1, 1, 'other', 'elsewhere')"
    )
    other = WorkerId(77)

    first = await accounts.take(BOT, worker_id)
    assert first is not None
    assert await accounts.take(BOT, other) is None
    assert await accounts.owners() == {BOT: worker_id}
    await accounts.give_back(BOT, other, first)
    assert await accounts.owners() == {BOT: worker_id}, "it is not another's to give back"
    await accounts.give_back(BOT, worker_id, first)
    second = await accounts.take(BOT, other)
    assert second is not None
    assert second > first
    home.sql("UPDATE workers SET ended_ms = 2, ended_how = 'killed' WHERE worker_id = 77")
    assert await accounts.take(BOT, worker_id) is not None
