"""Trying a model before any caller depends on it: one tiny request, and plain words if it fails."""

from pathlib import Path

import pytest

from koboshi.app.platforms.platform import ProbeFailed
from koboshi.app.probe import try_model
from koboshi.config import Config, ModelConfig, Secret
from tests.models.asking import KEY
from tests.models.conftest import Place


def config_of(place: Place, base_url: str = "") -> Config:
    address = base_url or f"{place.server.url}{place.form.path}"
    name = f"{place.form.name}:m1"
    model = ModelConfig(name=name, base_url=address, api_key=Secret(KEY))
    return Config(home=Path("nowhere"), model=model)


async def test_a_model_that_answers_is_quoted(place: Place) -> None:
    place.server.answers.append(place.form.text("ok"))

    assert await try_model(config_of(place)) == "ok"


async def test_a_key_that_is_refused_is_told(place: Place) -> None:
    place.server.answers.append(place.form.error(401, "no such key"))

    with pytest.raises(ProbeFailed) as told:
        await try_model(config_of(place))
    assert str(told.value)
    assert KEY not in str(told.value)


async def test_a_server_that_is_not_there_is_told(place: Place) -> None:
    with pytest.raises(ProbeFailed, match="could not be reached"):
        await try_model(config_of(place, "http://127.0.0.1:9"))
