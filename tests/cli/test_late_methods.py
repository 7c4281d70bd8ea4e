"""A dataclass whose methods are made late is one of the standard library in all but its start."""

import copy
import dataclasses
import inspect
import json
import pickle
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, replace
from types import ModuleType
from typing import Any, ClassVar

import pytest

from koboshi.cli.late_methods import late_dataclass
from tests.cli.process import ended

STANDARD = dataclasses.dataclass
OURS = "koboshi.somewhere"


def frozen(dataclass: Callable[..., Any]) -> Any:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Thing:
        __module__ = OURS
        kind: ClassVar[str] = "thing"
        name: str
        size: int = 3
        parts: list[str] = field(default_factory=list, hash=False)
        note: str = field(default="", repr=False, compare=False)
        found: int = field(default=7, init=False)

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("too small")

    return Thing


def open_to_change(dataclass: Callable[..., Any]) -> Any:
    @dataclass(slots=True)
    class Box:
        __module__ = OURS
        width: int
        height: int = 2
        label: str = field(default="", kw_only=True)
        seen: list[int] = field(default_factory=list, init=False)

    return Box


@pytest.fixture(params=[STANDARD, late_dataclass], ids=["standard", "late"])
def dataclass(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_what_a_frozen_one_does(dataclass: Any) -> None:
    thing = frozen(dataclass)
    one = thing(name="a", parts=["x"])

    assert repr(one).endswith("Thing(name='a', size=3, parts=['x'], found=7)")
    assert one == thing(name="a", parts=["x"], note="other")
    assert one != thing(name="b", parts=["x"])
    assert one != "a"
    assert hash(one) == hash(thing(name="a"))
    assert thing(name="a").parts is not thing(name="a").parts
    assert replace(one, size=4).size == 4
    assert copy.deepcopy(one) == one == copy.copy(one)
    with pytest.raises(ValueError, match="too small"):
        thing(name="a", size=-1)
    with pytest.raises(TypeError, match=r"Thing.__init__\(\) missing 1 required .* 'name'"):
        thing()
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'size'"):
        one.size = 4
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'size'"):
        del one.size


def test_what_one_that_changes_does(dataclass: Any) -> None:
    box = open_to_change(dataclass)
    one = box(1, label="x")
    one.width = 5
    one.seen.append(1)

    assert one == one
    assert one != box(5, label="x")
    assert box.__match_args__ == ("width", "height")
    assert not hasattr(one, "__dict__")
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


def test_a_subclass_has_its_own_attributes_and_signature() -> None:
    """With the standard library of Python 3.11 it cannot have attributes."""

    class Wider(frozen(late_dataclass)):  # type: ignore[misc]
        def __init__(self, size: int) -> None:
            super().__init__(name="w", size=size)
            self.more = size

    assert Wider(4).more == 4
    assert str(inspect.signature(Wider)) == "(size: int) -> None"
    assert hash(Wider(4)) == hash(Wider(4))
    with pytest.raises(FrozenInstanceError):
        Wider(4).name = "x"


def test_what_a_class_is_called_with_is_known_before_its_first_call(dataclass: Any) -> None:
    told = str(inspect.signature(frozen(dataclass)))

    assert told == (
        "(*, name: str, size: int = 3, parts: list[str] = <factory>, note: str = '') -> None"
    )


def test_it_can_be_pickled(monkeypatch: pytest.MonkeyPatch, dataclass: Any) -> None:
    module = ModuleType(OURS)
    module.Thing = frozen(dataclass)  # type: ignore[attr-defined]
    module.Thing.__qualname__ = "Thing"
    monkeypatch.setitem(sys.modules, OURS, module)
    one = module.Thing(name="a")

    assert pickle.loads(pickle.dumps(one)) == one


def test_classes_of_others_and_special_ones_are_left_to_the_standard_library() -> None:
    @late_dataclass(frozen=True, slots=True)
    class Foreign:
        a: int

    @late_dataclass(frozen=True, slots=True)
    class Own:
        __module__ = OURS
        a: int

        def __repr__(self) -> str:
            return "own"

    @late_dataclass(frozen=True, slots=True)
    class Derived(frozen(late_dataclass)):  # type: ignore[misc]
        __module__ = OURS
        b: int = 0

    for each in (Foreign, Own, Derived):
        assert each.__init__.__code__.co_filename == "<string>", "it was compiled with the class"
    made: Any = Own
    assert repr(made(1)) == "own"
    assert Derived(name="a") == Derived(name="a", b=0)


TELLING = """
import sys, json, inspect, dataclasses, re
if sys.argv[1] == "late":
    import koboshi.cli.main
import koboshi.app.serve

def told(cls):
    shown = cls.__dataclass_params__
    return [
        str(inspect.signature(cls)),
        [f"{each.name} {each.type} {each.kw_only}" for each in dataclasses.fields(cls)],
        list(cls.__match_args__),
        [shown.init, shown.repr, shown.eq, shown.frozen],
        cls.__hash__ is None,
        sorted(name for name in vars(cls) if name not in ("__signature__", "__doc__")),
    ]

classes = {
    f"{cls.__module__}.{cls.__qualname__}": told(cls)
    for name, module in sorted(sys.modules.items()) if name.startswith("koboshi.")
    for cls in vars(module).values()
    if dataclasses.is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == name
}
print(re.sub(" at 0x[0-9a-f]+", "", json.dumps(classes)))
"""


def test_every_class_of_a_gateway_is_the_same_as_without() -> None:
    late, standard = (_told(how) for how in ("late", "standard"))

    assert len(standard) > 400, "few were looked at"
    differing = {name for name in standard if late[name] != standard[name]}
    assert {name: (late[name], standard[name]) for name in differing} == {}


def _told(how: str) -> dict[str, object]:
    process = ended([sys.executable, "-c", TELLING, how], {})
    assert process.code == 0, process.err
    found: dict[str, object] = json.loads(process.out)
    return {name: told for name, told in found.items() if not name.startswith("koboshi.cli.")}
