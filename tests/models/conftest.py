"""A server of each form, and a model that talks to it."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest

from koboshi.models.limits import ModelLimits
from koboshi.models.provider import open_model
from koboshi.models.remote import RemoteModel
from tests.fakes.model_servers.server import Answer, ModelServer, serving
from tests.models.asking import KEY
from tests.models.forms import FORMS, Form


@dataclass
class Place:
    """A provider of one form, on the loopback."""

    form: Form
    server: ModelServer
    models: AsyncExitStack = field(default_factory=AsyncExitStack)

    def model(self, *answers: Answer, **limits: Any) -> RemoteModel:
        """A model there; its next requests get these answers."""
        self.server.answers.extend(answers)
        model = open_model(
            f"{self.form.name}:m1",
            base_url=f"{self.server.url}{self.form.path}",
            api_key=KEY,
            limits=ModelLimits(**limits),
        )
        self.models.push_async_callback(model.aclose)
        return model


@pytest.fixture(params=FORMS, ids=lambda form: form.name)
async def place(request: pytest.FixtureRequest) -> AsyncIterator[Place]:
    """Asserts in the end that the model kept to the contract of the interface."""
    form: Form = request.param
    async with serving(form.complain) as server:
        place = Place(form=form, server=server)
        yield place
        await place.models.aclose()
        assert not server.complaints, server.complaints


Opened = Callable[..., RemoteModel]


@pytest.fixture
async def opened() -> AsyncIterator[Opened]:
    """Opens models that are closed in the end."""
    async with AsyncExitStack() as models:

        def opened(name: str, **more: Any) -> RemoteModel:
            model = open_model(name, **more)
            models.push_async_callback(model.aclose)
            return model

        yield opened
