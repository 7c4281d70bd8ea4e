"""Dataclasses whose methods are made when they are first called.

The standard library compiles up to six methods for each dataclass when its module is loaded. That
was half of the time of a start: there are more than five hundred of them, and most are not used
before the first message, or are never compared. After `make_methods_late()` the classes of this
package get stand-ins, which all of them share. The first call of one makes the method and puts it
into the class, which then is what the standard library would have made of it.

Fields, slots and `replace()` stay the standard library's own. It does the whole work for classes of
other packages, for those that inherit from a dataclass, and for those that write one of the methods
themselves.
"""

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field, FrozenInstanceError, fields
from reprlib import recursive_repr
from typing import Any, TypeAlias

Method: TypeAlias = Callable[..., Any]

PACKAGE = "koboshi."
_MADE = frozenset(
    "__init__ __repr__ __eq__ __hash__ __setattr__ __delattr__ __getstate__ __setstate__".split()
)
_PLAIN = frozenset({"frozen", "slots", "kw_only", "eq", "weakref_slot"})
_STANDARD = dataclasses.dataclass
_SET = object.__setattr__


def make_methods_late() -> None:
    """From now on `dataclasses.dataclass` makes the methods of our classes late."""
    dataclasses.dataclass = late_dataclass


def late_dataclass(cls: Any = None, /, **options: bool) -> Any:
    if cls is None:
        return lambda decorated: late_dataclass(decorated, **options)
    if not _is_plain(cls, options):
        return _STANDARD(cls, **options)
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # the standard library would spell out the signature
    without = {"init": False, "repr": False, "eq": False, "frozen": False}
    made = _STANDARD(cls, **{**options, **without})
    _add_methods(made, is_frozen=options.get("frozen", False), has_eq=options.get("eq", True))
    return made


def _is_plain(cls: Any, options: dict[str, bool]) -> bool:
    return (
        cls.__module__.startswith(PACKAGE)
        and options.get("slots", False)
        and _PLAIN.issuperset(options)
        and _MADE.isdisjoint(cls.__dict__)
        and not hasattr(cls, "__dataclass_fields__")
    )


def _add_methods(cls: Any, *, is_frozen: bool, has_eq: bool) -> None:
    told = cls.__dataclass_params__
    told.init, told.repr, told.eq, told.frozen = True, True, has_eq, is_frozen
    cls.__init__, cls.__repr__, cls.__signature__ = _first_init, _shown, _SIGNATURE
    if has_eq:
        cls.__eq__, cls.__hash__ = _first_eq, _first_hash if is_frozen else None
    if is_frozen:
        cls.__setattr__, cls.__delattr__ = _refuse_set, _refuse_delete
        cls.__getstate__, cls.__setstate__ = _state, _set_state


def _first_init(self: Any, /, *args: Any, **named: Any) -> None:
    """The first instance is filled field by field: of many classes there is one in a gateway, and
    compiling would take ten times as long."""
    cls = _late_class(self)
    values = None if args else _values_of(cls, named)
    if values is None:
        _second_init(self, *args, **named)
        return
    for name, value in values.items():
        _SET(self, name, value)
    if cls.__init__ is _first_init:
        cls.__init__ = _second_init
    if hasattr(cls, "__post_init__"):
        self.__post_init__()


def _values_of(cls: Any, named: dict[str, Any]) -> dict[str, Any] | None:
    """Every field that gets a value; None where `named` does not fit, which has to be said."""
    values, known = dict[str, Any](), 0
    for each in fields(cls):
        if each.init and each.name in named:
            values[each.name] = named[each.name]
            known += 1
        elif each.default is not MISSING:
            values[each.name] = each.default
        elif each.default_factory is not MISSING:
            values[each.name] = each.default_factory()
        elif each.init:
            return None
    return values if known == len(named) else None


def _second_init(self: Any, /, *args: Any, **named: Any) -> None:
    _put(self, "__init__", _make_init)(self, *args, **named)


def _first_eq(self: Any, other: object, /) -> Any:
    return _put(self, "__eq__", _make_eq)(self, other)


def _first_hash(self: Any, /) -> Any:
    return _put(self, "__hash__", _make_hash)(self)


def _put(instance: object, name: str, make: Callable[[Any], Method]) -> Method:
    """The method, which is now in the place of its stand-in. Two threads may do this at once: both
    make the same."""
    cls = _late_class(instance)
    made = make(cls)
    made.__qualname__ = f"{cls.__qualname__}.{name}"
    setattr(cls, name, made)
    return made


def _late_class(instance: object) -> Any:
    """The class of ours that the instance is of; its own may be a subclass."""
    of_ours = (each for each in type(instance).__mro__ if _is_late(each))
    return next(of_ours)


def _is_late(cls: type) -> bool:
    return cls.__dict__.get("__signature__") is _SIGNATURE


class _Signature:
    """What a class is called with, for those who inspect it before the first call."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if not _is_late(owner):
            raise AttributeError("a subclass has a signature of its own")
        from inspect import signature

        made = signature(_make_init(owner))
        return made.replace(parameters=list(made.parameters.values())[1:])


_SIGNATURE = _Signature()


def _make_init(cls: Any) -> Method:
    is_frozen = cls.__dataclass_params__.frozen
    names: dict[str, Any] = {"_late_set": _SET, "_late_unset": _UNSET}
    positional, named, body = ["self"], list[str](), list[str]()
    for each in fields(cls):
        value = each.name
        if each.default is not MISSING:
            names[f"_default_{value}"] = each.default
        elif each.default_factory is not MISSING:
            names[f"_make_{value}"] = each.default_factory
        if each.init:
            (named if each.kw_only else positional).append(_parameter(each))
        if (given := _given(each)) is None:
            continue
        body.append(
            f"_late_set(self, {value!r}, {given})" if is_frozen else f"self.{value} = {given}"
        )
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    head = ", ".join([*positional, "*", *named] if named else positional)
    made = _compiled("__init__", head, body or ["pass"], names, cls)
    typed = {each.name: each.type for each in fields(cls) if each.init}
    made.__annotations__ = {**typed, "return": None}
    return made


class _Unset:
    """What a field with a factory is called with where nothing is given."""

    def __repr__(self) -> str:
        return "<factory>"


_UNSET = _Unset()


def _parameter(each: Field[Any]) -> str:
    if each.default is not MISSING:
        return f"{each.name}=_default_{each.name}"
    return each.name if each.default_factory is MISSING else f"{each.name}=_late_unset"


def _given(each: Field[Any]) -> str | None:
    """The value of a field in `__init__`; None where it stays without one."""
    name = each.name
    if each.default_factory is not MISSING:
        made = f"_make_{name}()"
        return f"{made} if {name} is _late_unset else {name}" if each.init else made
    if each.init:
        return name
    return None if each.default is MISSING else f"_default_{name}"


def _make_eq(cls: Any) -> Method:
    compared = [each.name for each in fields(cls) if each.compare]
    body = [
        "if other.__class__ is self.__class__:",
        f"    return {_tuple_of('self', compared)} == {_tuple_of('other', compared)}",
        "return NotImplemented",
    ]
    return _compiled("__eq__", "self, other", body, {}, cls)


def _make_hash(cls: Any) -> Method:
    hashed = [each.name for each in fields(cls) if _is_hashed(each)]
    return _compiled("__hash__", "self", [f"return hash({_tuple_of('self', hashed)})"], {}, cls)


def _is_hashed(each: Field[Any]) -> bool:
    return each.compare if each.hash is None else each.hash


def _tuple_of(owner: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{owner}.{name}, ' for name in names)})"


def _compiled(
    name: str, parameters: str, body: Sequence[str], names: dict[str, Any], cls: Any
) -> Method:
    lines = "".join(f"    {line}\n" for line in body)
    exec(f"def {name}({parameters}):\n{lines}", names)
    made: Method = names.pop(name)
    made.__module__ = cls.__module__
    return made


@recursive_repr()
def _shown(self: Any) -> str:
    values = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _refuse_set(self: Any, name: str, value: Any) -> None:
    super(_refused(self, name, "assign to"), self).__setattr__(name, value)


def _refuse_delete(self: Any, name: str) -> None:
    super(_refused(self, name, "delete"), self).__delattr__(name)


def _refused(instance: object, name: str, verb: str) -> Any:
    """Raises FrozenInstanceError. Returns the frozen class where the attribute is a subclass's."""
    cls = _late_class(instance)
    if type(instance) is cls or name in cls.__dataclass_fields__:
        raise FrozenInstanceError(f"cannot {verb} field {name!r}")
    return cls


def _state(self: Any) -> list[Any]:
    return [getattr(self, each.name) for each in fields(self)]


def _set_state(self: Any, state: Sequence[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        _SET(self, each.name, value)
