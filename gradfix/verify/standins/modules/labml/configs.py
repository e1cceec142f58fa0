"""labml's settings: each has a value, or ways to compute one, and is computed when it is asked for.

https://docs.labml.ai/api/configs.html says what they mean.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterable
from typing import Any

from ...inert import others


class _Item:
    """A setting of a class, which is what the class's attribute gives."""

    def __init__(self, owner: type[BaseConfigs], key: str, kind: Any, value: tuple[Any, ...]) -> None:
        self.configs_class, self.key, self.annotation, self.default = owner, key, kind, value


class _Way:
    """A way to compute one setting, or several at once."""

    def __init__(self, function: Callable[..., Any], items: list[_Item], params: list[_Item] | None) -> None:
        self.function, self.keys = function, [one.key for one in items]
        self.params = None if params is None else [one.key for one in params]

    def __call__(self, owner: BaseConfigs) -> Any:
        if self.params is not None:
            return self.function(*(getattr(owner, key) for key in self.params))
        wanted = inspect.signature(self.function).parameters.values()
        if any(one.kind is one.KEYWORD_ONLY for one in wanted):
            return self.function(**{one.name: getattr(owner, one.name) for one in wanted})
        return self.function(owner) if len(wanted) == 1 else self.function()


_PLAIN = (int, str, bool, float, dict, list)


def _annotations(kind: type) -> dict[str, Any]:
    return dict(getattr(kind, "__annotations__", {}))


def _is_method(value: Any) -> bool:
    if not isinstance(value, types.FunctionType):
        return False
    return next(iter(inspect.signature(value).parameters), "") == "self"


class BaseConfigs:
    """Settings with annotations, which :func:`option` and :func:`calculate` say how to compute."""

    _items: dict[str, _Item]
    _ways: dict[str, dict[str, _Way]]
    _together: dict[str, dict[str, dict[str, Any]]]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        kinds = {key: kind for key, kind in _annotations(cls).items() if key[0] != "_"}
        values = {key: value for key, value in vars(cls).items() if key[0] != "_" and not _is_method(value)}
        cls._items, cls._ways, cls._together = {}, {}, {}
        for key in [*kinds, *(key for key in values if key not in kinds)]:
            default = (values[key],) if key in values else ()
            cls._items[key] = _Item(cls, key, kinds.get(key, type(values.get(key))), default)
            setattr(cls, key, cls._items[key])

    def __init__(self, *, _primary: str | None = None) -> None:
        self._primary = _primary
        self._types: dict[str, Any] = {}
        self._defaults: dict[str, Any] = {}
        self._options: dict[str, dict[str, _Way]] = {}
        self._groups: dict[str, dict[str, dict[str, Any]]] = {}
        for cls in reversed(type(self).__mro__):
            if not issubclass(cls, BaseConfigs) or cls is BaseConfigs:
                continue
            for key, item in cls._items.items():
                self._types.setdefault(key, item.annotation)
                if item.default:
                    (self._defaults[key],) = item.default
            for key, ways in cls._ways.items():
                self._options.setdefault(key, {}).update(ways)
            for key, group in cls._together.items():
                self._groups.setdefault(key, {}).update(group)
        self._set: dict[str, Any] = {}
        self._said: dict[str, Any] = {}
        self._found: dict[str, Any] = {}
        self._inner: dict[str, BaseConfigs] = {}
        self._inner_said: dict[str, dict[str, Any]] = {}
        self._other_defaults: dict[str, tuple[Any, Callable[[], Any] | None]] = {}

    def __dir__(self) -> Iterable[str]:
        return list(self._types)

    def __setattr__(self, key: str, value: Any) -> None:
        if key.startswith("_"):
            object.__setattr__(self, key, value)
        elif key not in self._types:
            raise AttributeError(f"{type(self).__name__} has no annotation for attribute '{key}'")
        elif key in self._found:
            raise ValueError(f"Cannot set {type(self).__name__}:{key} after it was accessed")
        else:
            self._set[key] = value

    def __getattribute__(self, key: str) -> Any:
        if key.startswith("_") or key not in self._types:
            return object.__getattribute__(self, key)
        if key not in self._found:
            self._compute(key)
        return self._found[key]

    def _said_of(self, key: str) -> tuple[Any, ...]:
        """The value of a setting, or the name of the way to compute it, if there is one."""
        for held in (self._found, self._said, self._set):
            if key in held and not (held is not self._found and held[key] == "__aggregate__"):
                return (held[key],)
        if key in self._other_defaults:
            value, made = self._other_defaults[key]
            return (value if made is None else made(),)
        for whole, group in self._groups.items():
            if any(key in parts for parts in group.values()):
                chosen = self._said_of(whole)
                if chosen and key in group.get(chosen[0], {}):
                    return (group[chosen[0]][key],)
        if key in self._defaults:
            return (self._defaults[key],)
        return tuple(self._options.get(key, ()))[:1]

    def _compute(self, key: str) -> None:
        said, kind = self._said_of(key), self._types[key]
        if not said and isinstance(kind, type) and kind not in _PLAIN:
            self._keep(key, _Way(kind, [], None)(self))
            return
        if not said:
            raise AttributeError(f"{type(self).__name__} cannot calculate config `{key}`")
        way = self._options.get(key, {}).get(said[0]) if isinstance(said[0], str) else None
        value = said[0] if way is None else way(self)
        if way is not None and len(way.keys) > 1:
            for one, part in zip(way.keys, value):
                self._keep(one, part)
        else:
            self._keep(key, value)

    def _keep(self, key: str, value: Any) -> None:
        if isinstance(value, BaseConfigs):
            self._inner[key] = value
            value._set_values(self._inner_said.pop(key, {}))
            if value._primary is not None:
                value = getattr(value, value._primary)
        self._found[key] = value

    def _set_values(self, values: dict[str, Any]) -> None:
        """Say the values of settings, also of those within one (``optimizer.learning_rate``)."""
        for key, value in values.items():
            outer, _, inner = key.partition(".")
            if outer not in self._types:
                raise KeyError(f"Invalid attribute name '{outer}'")
            if not inner and key in self._found:
                raise ValueError(f"Cannot set {type(self).__name__}:{key} after it was accessed")
            if not inner:
                self._said[key] = value
            elif outer in self._inner:
                self._inner[outer]._set_values({inner: value})
            else:
                self._inner_said.setdefault(outer, {})[inner] = value

    def _get_type(self, key: str) -> Any:
        return self._types[key]

    def set_default(self, item: Any, value: Any = None, func: Callable[[], Any] | None = None) -> None:
        """Give a setting another value by default."""
        self._other_defaults[getattr(item, "key", item)] = value, func

    @classmethod
    def calc(cls, name: Any, option_name: str | None = None, pass_params: Any = None) -> Callable[[Any], Any]:
        """Say that the function below computes a setting of this class, which may be inherited."""
        return lambda function: cls.calc_wrap(function, name, option_name, pass_params)

    @classmethod
    def calc_wrap(cls, func: Any, name: Any, option_name: str | None = None, pass_params: Any = None) -> Any:
        """Say by which function a setting of this class is computed."""
        items = list(name) if isinstance(name, (list, tuple)) else [name]
        for item in items:
            named = func.__name__ if option_name is None else option_name
            cls._ways.setdefault(item.key, {})[named] = _Way(func, items, pass_params)
        return func

    @classmethod
    def set_hyperparams(cls, *args: Any, **kwargs: Any) -> None:
        """Nothing: what is shown of a run."""

    set_meta = set_hyperparams

    @classmethod
    def aggregate(cls, name: Any, option: str, *args: tuple[Any, Any]) -> None:
        """Say which values other settings have where one has this one."""
        cls._together.setdefault(name.key, {})[option] = {item.key: value for item, value in args}


def calculate(name: Any, *args: Any) -> Any:
    """Say by which function a setting is computed, or several."""
    owner = (name[0] if isinstance(name, (list, tuple)) else name).configs_class
    named = next((one for one in args if isinstance(one, str)), None)
    params = next((one for one in args if isinstance(one, list)), None)
    function = next(one for one in reversed(args) if not isinstance(one, (str, list)))
    return owner.calc_wrap(function, name, named, params)


def option(name: Any, *args: Any) -> Callable[[Any], Any]:
    """Say that the function below computes a setting, or several."""
    return lambda function: calculate(name, *args, function)


def aggregate(name: Any, option_name: str, *args: tuple[Any, Any]) -> None:
    """Say which values other settings have where one has this one."""
    name.configs_class.aggregate(name, option_name, *args)


def hyperparams(*args: Any, **kwargs: Any) -> None:
    """Nothing: what is shown of a run."""


meta_config = hyperparams


class DynamicHyperParam:
    """A number that somebody may change while a run lasts, and nobody does."""

    def __init__(self, default: Any, range_: tuple[Any, Any] = (0, 1)) -> None:
        self._value = default

    def __call__(self) -> Any:
        return self._value

    def set_value(self, value: Any) -> None:
        """Change it."""
        self._value = value


class FloatDynamicHyperParam(DynamicHyperParam):
    """One of any size."""


class IntDynamicHyperParam(DynamicHyperParam):
    """A whole one."""

    def set_value(self, value: Any) -> None:
        """Change it."""
        self._value = int(value)


__getattr__ = others(__name__)
