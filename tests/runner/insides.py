"""The boundaries that a runner's tests run inside of."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from koboshi.boundary.enclosure import Enclosure, Exceptions, confine, make_folders
from koboshi.boundary.probe import probe
from koboshi.domain.sandbox import Boundary, Sandbox
from koboshi.ports.runners import UNCONFINED, Confinement

CONFINED = (Boundary.BUBBLEWRAP, Boundary.LANDLOCK)
everywhere = pytest.mark.parametrize("yard", [Boundary.NONE, *CONFINED], indirect=True)
inside = pytest.mark.parametrize("yard", CONFINED, indirect=True)


def confining(
    boundary: Boundary, workdir: Path, kept: Path, sandbox: Sandbox = Sandbox.WORKSPACE
) -> Callable[[str], Confinement]:
    """What confines a command that begins in a folder of `workdir`; the test is skipped where the
    machine cannot."""
    if boundary is Boundary.NONE:
        return lambda _: UNCONFINED
    if reason := getattr(probe(), boundary):
        pytest.skip(f"{boundary}: {reason}")
    enclosure = Enclosure(
        sandbox=sandbox,
        boundary=boundary,
        workdirs=(str(workdir),),
        kept=str(kept),
        exceptions=Exceptions(readable=(sys.prefix, sys.base_prefix)),
    )
    view = enclosure.view_of("s1")
    assert view is not None
    make_folders(view)
    return partial(confine, view)
