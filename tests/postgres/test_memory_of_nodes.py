"""One memory on two nodes: both change it at once, and each has files of its own."""

from pathlib import Path

from anyio import create_task_group

from koboshi.domain.memory import AddMemory, MemoryView, Shelf, picture
from koboshi.domain.turn import Claim
from koboshi.runtime.memory_files import MemoryFiles
from tests.harness.homes import WEB, Home
from tests.harness.postgres_backend import Database, PostgresBackend

NOTES = 12


async def remember(node: Home, claim: Claim, name: str) -> None:
    for number in range(NOTES):
        wish = AddMemory(shelf=Shelf.MEMORY, text=f"{name} {number}")
        await node.store.memory.wish(claim, wish, f"call:{name}{number}")


async def seen_by(node: Home) -> MemoryView:
    (view,) = await node.store.memory.views(9)
    return view


async def test_both_change_it_at_once_and_an_edit_in_one_home_is_seen_in_the_other(
    database: Database, tmp_path: Path
) -> None:
    nodes = {
        name: Home(backend=PostgresBackend(tmp_path / name, database=database)) for name in "ab"
    }
    claims: dict[str, Claim] = {}
    for name, node in nodes.items():
        await node.boot()
        claims[name] = await node.work_on(chat=name, key=name)
    async with create_task_group() as tasks:
        for name, node in nodes.items():
            tasks.start_soon(remember, node, claims[name], name)
    here, there = nodes["a"], nodes["b"]
    wanted = sorted(f"{name} {number}" for name in nodes for number in range(NOTES))
    view = await seen_by(there)
    assert sorted(view.texts(Shelf.MEMORY)) == wanted
    assert view.revision == 2 * NOTES

    files = {
        name: MemoryFiles(
            memories=node.store.memory, folder=tmp_path / name / "memory", clock=node.clock
        )
        for name, node in nodes.items()
    }
    await files["a"].settle(await seen_by(here))
    assert len(await there.store.memory.behind(9)) == 1, "each home has files of its own"
    path = tmp_path / "a" / "memory" / view.folder / "MEMORY.md"
    path.write_text(picture([*view.texts(Shelf.MEMORY), "by hand"], view.revision))
    await files["a"].settle(await seen_by(here))
    view = await files["b"].settle(await seen_by(there))
    assert "by hand" in view.texts(Shelf.MEMORY)
    written = (tmp_path / "b" / "memory" / view.folder / "MEMORY.md").read_text()
    assert written == picture(view.texts(Shelf.MEMORY), view.revision)

    # What was erased at one node is not read back from the files of the other.
    for node, claim in ((here, claims["a"]), (there, claims["b"])):
        await node.answer(claim)
        await node.deliver("a" if node is here else "b")
    await here.store.erasures.erase(WEB, "ann", "operator")
    view = await files["b"].settle(await seen_by(there))
    assert view.texts(Shelf.MEMORY) == ["by hand"]
    for node in nodes.values():
        await node.store.close()
