"""Things in a game, in groups."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from . import mask as masks


class Sprite:
    """Something with a picture and a place."""

    image: Any = None
    rect: Any = None

    def __init__(self, *groups: Any) -> None:
        self._groups: list[Any] = []
        self.add(*groups)

    def add(self, *groups: Any) -> None:
        """Put it into groups."""
        for group in groups:
            group.add(self)

    def remove(self, *groups: Any) -> None:
        """Take it out of groups."""
        for group in groups:
            group.remove(self)

    def kill(self) -> None:
        """Take it out of all groups."""
        self.remove(*self._groups[:])

    def alive(self) -> bool:
        """Whether it is in any group."""
        return bool(self._groups)

    def groups(self) -> list[Any]:
        """Those that it is in."""
        return self._groups[:]

    def update(self, *args: Any, **kwargs: Any) -> None:
        """For those who derive from it."""


class Group:
    """Things that are drawn and moved together."""

    def __init__(self, *sprites: Any) -> None:
        self._held: list[Any] = []
        self.add(*sprites)

    def add(self, *sprites: Any) -> None:
        """Put things into it, also those of lists and other groups."""
        for one in sprites:
            if isinstance(one, Sprite):
                if one not in self._held:
                    self._held.append(one)
                    one._groups.append(self)
            else:
                self.add(*one)

    def remove(self, *sprites: Any) -> None:
        """Take things out of it."""
        for one in sprites:
            if not isinstance(one, Sprite):
                self.remove(*one)
            elif one in self._held:
                self._held.remove(one)
                one._groups.remove(self)

    def has(self, *sprites: Any) -> bool:
        """Whether all are in it."""
        return all(one in self._held for one in sprites)

    def sprites(self) -> list[Any]:
        """All that are in it."""
        return self._held[:]

    def empty(self) -> None:
        """Take all out of it."""
        self.remove(*self._held[:])

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Update all."""
        for one in self.sprites():
            one.update(*args, **kwargs)

    def draw(self, surface: Any, *args: Any) -> list[Any]:
        """Draw all."""
        return [surface.blit(one.image, one.rect) for one in self.sprites()]

    def clear(self, surface: Any, background: Any) -> None:
        """Draw what was behind them."""
        for one in self.sprites():
            if not callable(background):
                surface.blit(background, one.rect, one.rect)

    def copy(self) -> Group:
        """Another one with the same things."""
        return type(self)(*self._held)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sprites())

    def __contains__(self, sprite: Any) -> bool:
        return sprite in self._held

    def __len__(self) -> int:
        return len(self._held)

    def __bool__(self) -> bool:
        return bool(self._held)


AbstractGroup = RenderPlain = RenderClear = RenderUpdates = OrderedUpdates = LayeredUpdates = LayeredDirty = (
    Group
)
DirtySprite = Sprite


class GroupSingle(Group):
    """At most one thing."""

    def add(self, *sprites: Any) -> None:
        """Put a thing in the place of the one before."""
        if sprites:
            self.empty()
            super().add(*sprites)

    @property
    def sprite(self) -> Any:
        """The thing, if there is one."""
        return self._held[0] if self._held else None


def collide_rect(left: Any, right: Any) -> bool:
    """Whether their places share anything."""
    return bool(left.rect.colliderect(right.rect))


def collide_circle(left: Any, right: Any) -> bool:
    """Whether circles around their places share anything."""

    def radius(one: Any) -> float:
        found = getattr(one, "radius", None)
        return math.hypot(one.rect.w, one.rect.h) / 2 if found is None else float(found)

    return math.dist(left.rect.center, right.rect.center) <= radius(left) + radius(right)


def collide_mask(left: Any, right: Any) -> Any:
    """A pixel that is there in both."""
    one, other = (getattr(it, "mask", None) or masks.from_surface(it.image) for it in (left, right))
    return one.overlap(other, (right.rect.x - left.rect.x, right.rect.y - left.rect.y))


def collide_rect_ratio(ratio: float) -> Any:
    """As above, of places that are some times as large."""
    return lambda left, right: bool(left.rect.scale_by(ratio).colliderect(right.rect.scale_by(ratio)))


def spritecollide(sprite: Any, group: Any, dokill: Any, collided: Any = None) -> list[Any]:
    """Those of a group that something collides with."""
    found = [one for one in group.sprites() if (collided or collide_rect)(sprite, one)]
    for one in found if dokill else ():
        one.kill()
    return found


def spritecollideany(sprite: Any, group: Any, collided: Any = None) -> Any:
    """The first of a group that something collides with."""
    return next(iter(spritecollide(sprite, group, False, collided)), None)


def groupcollide(
    groupa: Any, groupb: Any, dokilla: Any, dokillb: Any, collided: Any = None
) -> dict[Any, Any]:
    """For each of a group those of another one that it collides with."""
    found = {}
    for one in groupa.sprites():
        hit = spritecollide(one, groupb, dokillb, collided)
        if hit:
            found[one] = hit
            if dokilla:
                one.kill()
    return found
