"""attrs: classes that are made of their fields."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from ..calls import reduced_value

_counter = itertools.count()


class _Nothing:
    def __bool__(self) -> bool:
        return False


NOTHING: Any = _Nothing()


class Factory:
    """A default that is made for each object."""

    def __init__(self, factory: Callable[..., Any], takes_self: bool = False) -> None:
        self.factory, self.takes_self = factory, takes_self


class Attribute:
    """A field."""

    def __init__(
        self,
        default: Any = NOTHING,
        factory: Any = None,
        converter: Any = None,
        convert: Any = None,
        init: bool = True,
        kw_only: bool = False,
        metadata: Any = None,
        alias: Any = None,
        **kwargs: Any,
    ) -> None:
        self._default = Factory(factory) if factory is not None else default
        self.converter = converter or convert
        self.init, self.kw_only, self.metadata = init, kw_only, metadata or {}
        self.name, self.alias, self.number = "", alias, next(_counter)

    def default(self, method: Any) -> Any:
        """A method that gives the default."""
        self._default = Factory(method, takes_self=True)
        return method

    def validator(self, method: Any) -> Any:
        """What a user gives is not checked."""
        return method

    def value(self, owner: Any, given: Any) -> Any:
        """What an object gets for it."""
        value = given
        if given is NOTHING:
            value = self._default
            if isinstance(value, Factory):
                value = value.factory(*([owner] if value.takes_self else []))
            else:
                value = reduced_value("field " + self.name, self.name, value)
        return value if self.converter is None else self.converter(value)


def attrib(*args: Any, **kwargs: Any) -> Any:
    """A field."""
    return Attribute(*args, **kwargs)


ib = attr = field = attrib


def attrs(maybe_cls: Any = None, auto_attribs: Any = False, kw_only: bool = False, **kwargs: Any) -> Any:
    """Make a class of its fields: those that are given as such, or have an annotation."""
    return _made(maybe_cls, auto_attribs) if maybe_cls is not None else lambda cls: _made(cls, auto_attribs)


def define(maybe_cls: Any = None, auto_attribs: Any = None, **kwargs: Any) -> Any:
    """The same; fields need no more than an annotation."""

    def make(cls: Any) -> Any:
        given = [name for name, one in vars(cls).items() if isinstance(one, Attribute)]
        annotated = vars(cls).get("__annotations__", {})
        return _made(cls, auto_attribs is not False and all(name in annotated for name in given))

    return make(maybe_cls) if maybe_cls is not None else make


def dataclass(maybe_cls: Any = None, **kwargs: Any) -> Any:
    """The same; fields have annotations."""
    return attrs(maybe_cls, **{**kwargs, "auto_attribs": True})


s, mutable, frozen = attrs, define, define


def _made(cls: Any, auto_attribs: Any) -> Any:
    own: dict[str, Attribute] = {}
    if auto_attribs:
        for name, kind in vars(cls).get("__annotations__", {}).items():
            if "ClassVar" not in str(kind):
                value = vars(cls).get(name, NOTHING)
                own[name] = value if isinstance(value, Attribute) else Attribute(value)
    else:
        found = [(one.number, name, one) for name, one in vars(cls).items() if isinstance(one, Attribute)]
        own = {name: one for _, name, one in sorted(found, key=lambda one: one[0])}
    for name, one in own.items():
        one.name = name
        if name in vars(cls):
            delattr(cls, name)
    inherited = {
        one.name: one for base in reversed(cls.__mro__[1:]) for one in vars(base).get("__attrs_attrs__", ())
    }
    fields = tuple({**{k: v for k, v in inherited.items() if k not in own}, **own}.values())

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if hasattr(self, "__attrs_pre_init__"):
            self.__attrs_pre_init__()
        positional = iter(args)
        for one in fields:
            name = one.alias or one.name.lstrip("_")
            given = NOTHING
            if one.init:
                given = kwargs.pop(name) if name in kwargs else next(positional, NOTHING)
                if given is NOTHING and one._default is NOTHING:
                    raise TypeError(f"__init__() missing a required argument: {name!r}")
            if one.init or one._default is not NOTHING:
                object.__setattr__(self, one.name, one.value(self, given))
        if kwargs:
            raise TypeError(f"__init__() got an unexpected keyword argument {next(iter(kwargs))!r}")
        if hasattr(self, "__attrs_post_init__"):
            self.__attrs_post_init__()

    def shown(self: Any) -> str:
        return str(cls.__name__) + "(" + ", ".join(f"{k}={v!r}" for k, v in asdict(self, False).items()) + ")"

    def equal(self: Any, other: Any) -> Any:
        return asdict(self, False) == asdict(other, False) if type(other) is type(self) else NotImplemented

    for name, method in (("__init__", init), ("__repr__", shown), ("__eq__", equal)):
        if name not in vars(cls):
            setattr(cls, name, method)
    cls.__attrs_attrs__ = fields
    return cls


def fields(cls: Any) -> Any:
    """The fields of a class."""
    return cls.__attrs_attrs__


def fields_dict(cls: Any) -> dict[str, Any]:
    """The fields of a class, by name."""
    return {one.name: one for one in cls.__attrs_attrs__}


def has(cls: Any) -> bool:
    """Whether a class is made of its fields."""
    return hasattr(cls, "__attrs_attrs__")


def asdict(inst: Any, recurse: bool = True, **kwargs: Any) -> dict[str, Any]:
    """The values of an object."""
    values = {one.name: getattr(inst, one.name, None) for one in inst.__attrs_attrs__}
    return {k: asdict(v) if recurse and has(type(v)) else v for k, v in values.items()}


def astuple(inst: Any, **kwargs: Any) -> tuple[Any, ...]:
    """The values of an object, in order."""
    return tuple(asdict(inst).values())


def evolve(inst: Any, **changes: Any) -> Any:
    """Another object with some other values."""
    kept = {
        one.alias or one.name.lstrip("_"): getattr(inst, one.name) for one in inst.__attrs_attrs__ if one.init
    }
    return type(inst)(**{**kept, **changes})


assoc = evolve


class _Checks:
    """``attr.validators`` and the like: nothing is checked."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


validators = _Checks()


class _Converters:
    """``attr.converters``."""

    @staticmethod
    def optional(converter: Any) -> Any:
        """Of what is there."""
        return lambda value: None if value is None else converter(value)

    @staticmethod
    def default_if_none(default: Any = None, factory: Any = None) -> Any:
        """Something for nothing."""
        return lambda value: (factory() if factory else default) if value is None else value


converters = _Converters()
