"""Which tools the model is told of, by what the channel can do."""

from pathlib import Path

import pytest

from koboshi.ports.channel import Abilities
from koboshi.tools.ask import ASK
from koboshi.tools.files.tools import file_tools
from koboshi.tools.registry import Toolbox
from tests.harness.toolbox import World
from tests.runtime.gateway import Setting, living
from tests.runtime.models import WatchedModel
from tests.runtime.scripts import calls, says, script


class Files(World):
    """A world with the file tools of the product."""

    folder: Path
    takes_files: bool

    def tools(self) -> Toolbox:
        made = file_tools(
            workdir=self.folder, home=self.folder / "home", takes_files=lambda _: self.takes_files
        )
        return Toolbox([*made, ASK])


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    world = Files()
    world.folder = tmp_path
    (tmp_path / "report.txt").write_text("figures")
    (tmp_path / "home").mkdir()
    return Setting(home=tmp_path / "home", world=world, model=WatchedModel())


@pytest.mark.parametrize("takes_files", [True, False])
async def test_sending_files_is_offered_only_where_a_person_can_get_them(
    setting: Setting, takes_files: bool
) -> None:
    """Issue 13, B15: a tool that cannot work is not in the list, and fails where it is called all
    the same."""
    setting.platform.abilities = Abilities(threads=True, takes_files=takes_files)
    assert isinstance(setting.world, Files)
    setting.world.takes_files = takes_files
    async with living(setting) as life:
        await life.says("room", script(calls("send_file", path="report.txt"), says("done")))
        await life.rests()

    assert isinstance(setting.model, WatchedModel)
    offered = {tool.name for request in setting.model.requests for tool in request.tools}
    assert ("send_file" in offered) is takes_files
    assert "read_file" in offered
    assert any(each.file is not None for each in setting.platform.tried) is takes_files
    if not takes_files:
        results = [str(row["body"]) for row in setting.rows().of("steps")]
        assert any("files cannot be sent in this conversation" in each for each in results)
