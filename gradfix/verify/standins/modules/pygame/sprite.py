"""Sprites: things of a game with a picture and a place, and groups of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import mask
from .rect import Rect


class Sprite:
    """A thing of a game."""

    def __init__(self, *groups: Any) -> None:
        self.__g: dict[Any, int] = {}
        if groups:
            self.add(*groups)

    def add(self, *groups: Any) -> None:
        """Put it into groups."""
        for group in groups:
            if isinstance(group, AbstractGroup):
                group.add(self)
            else:
                self.add(*group)

    def remove(self, *groups: Any) -> None:
        """Take it out of groups."""
        for group in groups:
            if isinstance(group, AbstractGroup):
                group.remove(self)
            else:
                self.remove(*group)

    def add_internal(self, group: Any) -> None:
        """Know a group that it is in."""
        self.__g[group] = 0

    def remove_internal(self, group: Any) -> None:
        """Forget a group that it was in."""
        self.__g.pop(group, None)

    def kill(self) -> None:
        """Take it out of all groups."""
        for group in list(self.__g):
            group.remove(self)

    def groups(self) -> list[Any]:
        """The groups that it is in."""
        return list(self.__g)

    def alive(self) -> bool:
        """Whether it is in any."""
        return bool(self.__g)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Nothing of its own."""


class DirtySprite(Sprite):
    """A sprite that says whether it has to be drawn again."""

    dirty, blendmode, source_rect, visible, _layer = 1, 0, None, 1, 0


class WeakSprite(Sprite):
    """A sprite."""


class AbstractGroup:
    """Sprites in the order in which they came."""

    def __init__(self, *sprites: Any, **kwargs: Any) -> None:
        self.spritedict: dict[Any, Any] = {}
        self.add(*sprites)

    def sprites(self) -> list[Any]:
        """The sprites."""
        return list(self.spritedict)

    def add(self, *sprites: Any, **kwargs: Any) -> None:
        """Take sprites, or those of lists and other groups."""
        for one in sprites:
            if isinstance(one, Sprite):
                if one not in self.spritedict:
                    self.add_internal(one)
                    one.add_internal(self)
            else:
                self.add(*one, **kwargs)

    def remove(self, *sprites: Any) -> None:
        """Leave out sprites, or those of lists and other groups."""
        for one in sprites:
            if isinstance(one, Sprite):
                if one in self.spritedict:
                    self.remove_internal(one)
                    one.remove_internal(self)
            else:
                self.remove(*one)

    def add_internal(self, sprite: Any, layer: Any = None) -> None:
        """Keep a sprite."""
        self.spritedict[sprite] = None

    def remove_internal(self, sprite: Any) -> None:
        """Keep a sprite no longer."""
        del self.spritedict[sprite]

    def has_internal(self, sprite: Any) -> bool:
        """Whether it has a sprite."""
        return sprite in self.spritedict

    def has(self, *sprites: Any) -> bool:
        """Whether it has all of these."""
        return bool(sprites) and all(
            one in self.spritedict if isinstance(one, Sprite) else self.has(*one) for one in sprites
        )

    def copy(self) -> Any:
        """A group of the same."""
        return type(self)(self.sprites())

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Let each sprite do what it does."""
        for one in self.sprites():
            one.update(*args, **kwargs)

    def draw(self, surface: Any, *args: Any, **kwargs: Any) -> list[Rect]:
        """Put each sprite on a surface; the rectangles of those that are gone."""
        self._drawn(surface)
        return []

    def _drawn(self, surface: Any) -> list[Rect]:
        return [surface.blit(one.image, one.rect) for one in self.sprites() if getattr(one, "visible", 1)]

    def clear(self, surface: Any, background: Any) -> None:
        """Put the background over each sprite."""
        if not callable(background):
            for one in self.sprites():
                surface.blit(background, one.rect, one.rect)

    def empty(self) -> None:
        """Leave out all."""
        self.remove(*self.sprites())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.sprites())

    def __contains__(self, sprite: Any) -> bool:
        return self.has(sprite)

    def __len__(self) -> int:
        return len(self.spritedict)

    def __bool__(self) -> bool:
        return bool(self.spritedict)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}({len(self)} sprites)>"


class Group(AbstractGroup):
    """Sprites."""


RenderPlain = RenderClear = Group


class RenderUpdates(Group):
    """Sprites, and where they change the screen."""

    def draw(self, surface: Any, *args: Any, **kwargs: Any) -> list[Rect]:
        """Put each sprite on a surface; their rectangles."""
        return self._drawn(surface)


OrderedUpdates = RenderUpdates


class GroupSingle(AbstractGroup):
    """The last sprite that came."""

    def __init__(self, sprite: Any = None) -> None:
        super().__init__(*([] if sprite is None else [sprite]))

    def add_internal(self, sprite: Any, layer: Any = None) -> None:
        """Keep a sprite, and no other."""
        self.empty()
        super().add_internal(sprite)

    @property
    def sprite(self) -> Any:
        """It."""
        return next(iter(self.spritedict), None)

    @sprite.setter
    def sprite(self, sprite: Any) -> None:
        self.add(sprite)


class LayeredUpdates(RenderUpdates):
    """Sprites in layers, the lowest first."""

    def __init__(self, *sprites: Any, **kwargs: Any) -> None:
        self.layer = kwargs.get("default_layer", 0)
        self.layered: dict[Any, int] = {}
        super().__init__()
        self.add(*sprites, **kwargs)

    def add(self, *sprites: Any, **kwargs: Any) -> None:
        """Take sprites into a layer."""
        for one in sprites:
            if isinstance(one, Sprite):
                layer = kwargs.get("layer")
                self.layered[one] = getattr(one, "_layer", self.layer) if layer is None else layer
        super().add(*sprites, **kwargs)

    def sprites(self) -> list[Any]:
        """The sprites, the lowest first."""
        return sorted(self.spritedict, key=lambda one: self.layered[one])

    def change_layer(self, sprite: Any, new_layer: int) -> None:
        """Move a sprite."""
        self.layered[sprite] = new_layer

    def get_layer_of_sprite(self, sprite: Any) -> int:
        """The layer of a sprite."""
        return self.layered[sprite]

    def layers(self) -> list[int]:
        """The layers that there are."""
        return sorted({self.layered[one] for one in self.spritedict})

    def get_sprites_from_layer(self, layer: int) -> list[Any]:
        """The sprites of a layer."""
        return [one for one in self.sprites() if self.layered[one] == layer]

    def get_sprites_at(self, pos: Any) -> list[Any]:
        """The sprites at a place."""
        return [one for one in self.sprites() if one.rect.collidepoint(pos)]


LayeredDirty = LayeredUpdates


def collide_rect(left: Any, right: Any) -> bool:
    """Whether the rectangles have something in common."""
    return bool(left.rect.colliderect(right.rect))


class collide_rect_ratio:
    """The same with multiples of their sides."""

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio

    def __call__(self, left: Any, right: Any) -> bool:
        a, b = (Rect(one.rect).scale_by(self.ratio) for one in (left, right))
        return a.colliderect(b)


class collide_circle_ratio:
    """Whether circles around them have, with multiples of their radius."""

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio

    def __call__(self, left: Any, right: Any) -> bool:
        def radius(one: Any) -> float:
            own = getattr(one, "radius", None)
            # Without a radius, the circle holds the rectangle.
            found = 0.5 * (one.rect.width**2 + one.rect.height**2) ** 0.5 if own is None else own
            return float(found) * self.ratio

        x, y = left.rect.centerx - right.rect.centerx, left.rect.centery - right.rect.centery
        return bool(x * x + y * y <= (radius(left) + radius(right)) ** 2)


def collide_circle(left: Any, right: Any) -> bool:
    """Whether circles around them have something in common."""
    return collide_circle_ratio(1.0)(left, right)


def collide_mask(left: Any, right: Any) -> tuple[int, int] | None:
    """A pixel that both cover."""
    a, b = (getattr(one, "mask", None) or mask.from_surface(one.image) for one in (left, right))
    return a.overlap(b, (right.rect[0] - left.rect[0], right.rect[1] - left.rect[1]))


def spritecollide(sprite: Any, group: Any, dokill: Any, collided: Callable[..., Any] | None = None) -> Any:
    """The sprites of a group that one has something in common with; they may be taken out of all groups."""
    found = [one for one in group if (collided or collide_rect)(sprite, one)]
    for one in found if dokill else ():
        one.kill()
    return found


def groupcollide(
    groupa: Any, groupb: Any, dokilla: Any, dokillb: Any, collided: Callable[..., Any] | None = None
) -> dict[Any, Any]:
    """The sprites of a group, with those of another one that they have something in common with."""
    found = {}
    for one in list(groupa):
        others = spritecollide(one, groupb, dokillb, collided)
        if others:
            found[one] = others
            if dokilla:
                one.kill()
    return found


def spritecollideany(sprite: Any, group: Any, collided: Callable[..., Any] | None = None) -> Any:
    """The first such sprite of a group."""
    return next((one for one in group if (collided or collide_rect)(sprite, one)), None)
