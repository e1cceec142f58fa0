"""Small training scripts whose world is a game of pygame's, or a picture in a file."""

from __future__ import annotations

from tests.standins.libraries import LOOP
from tests.standins.programs import program

PNG = """
    import struct, zlib
    import numpy as np
    def guessed(rows, kind):
        # What is left of each byte after those on its left and above it have been taken away.
        last = np.pad(rows, ((1, 0), (1, 0), (0, 0))).astype(int)
        left, above, corner = last[1:, :-1], last[:-1, 1:], last[:-1, :-1]
        far = [abs(above - corner), abs(left - corner), abs(left + above - 2 * corner)]
        near = np.where((far[0] <= far[1]) & (far[0] <= far[2]), left,
                        np.where(far[1] <= far[2], above, corner))
        return (rows.astype(int) - [0, left, above, (left + above) // 2, near][kind]) % 256
    def png(name, rows, colours, depth=8, palette=b"", clear=b""):
        kinds = np.arange(len(rows)) % 5 if depth == 8 else np.zeros(len(rows), int)
        parts = [guessed(rows, kind)[at] for at, kind in enumerate(kinds)]
        data = b"".join(bytes([kind]) + part.astype(np.uint8).tobytes() for kind, part in zip(kinds, parts))
        across = rows.shape[1] if depth == 8 else rows.shape[1] * 8 // depth
        head = struct.pack(">IIBBBBB", across, len(rows), depth, colours, 0, 0, 0)
        chunks = [(b"IHDR", head), (b"PLTE", palette), (b"tRNS", clear), (b"IDAT", zlib.compress(data))]
        with open(name, "wb") as file:
            file.write(b"\\x89PNG\\r\\n\\x1a\\n")
            for kind, held in [*((kind, held) for kind, held in chunks if held), (b"IEND", b"")]:
                file.write(struct.pack(">I", len(held)) + kind + held)
                file.write(struct.pack(">I", zlib.crc32(kind + held)))
    shown = np.random.RandomState(0).randint(0, 256, (24, 34, 4)).astype(np.uint8)
    shown[..., 3] = np.where(np.arange(34) < 17, 255, 0)
    png("bird.png", shown, 6)
"""
"""A picture in a file, each row of which is written in another way."""

GAMES: dict[str, tuple[str, tuple[str, ...]]] = {
    "pictures in files": (
        program(
            PNG
            + """
    from PIL import Image
    png("grey.png", shown[..., :2], 4)
    png("parts.png", np.uint8([[[0x1B]], [[0xE4]]]), 3, 2, bytes(range(9)) + bytes([9, 9, 9]), b"\\xff\\x07")
    picture = Image.open("bird.png")
    assert picture.size == (34, 24) and picture.mode == "RGBA" and (np.array(picture) == shown).all()
    assert (np.array(picture.convert("RGB")) == shown[..., :3]).all()
    grey = Image.open("grey.png")
    assert grey.mode == "LA" and (np.array(grey) == shown[..., :2]).all()
    assert (np.array(grey.convert("RGB")) == shown[..., :1]).all() and grey.convert("RGB").mode == "RGB"
    parts = Image.open("parts.png")
    assert parts.mode == "P" and np.array(parts).tolist() == [[0, 1, 2, 3], [3, 2, 1, 0]]
    assert np.array(parts.convert("RGB"))[0].tolist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 9, 9]]
    def batch():
        return torch.from_numpy(np.array(picture)).float()[None] / 255
            """
        ),
        ("PIL",),
    ),
    "a game that is seen": (
        program(
            PNG
            + """
    import os
    os.environ["SDL_VIDEODRIVER"] = "dummy"
    from pygame import Rect, init, time, display, SRCALPHA, Surface, QUIT, K_UP
    from pygame.event import get
    from pygame.image import load
    from pygame.surfarray import array3d, pixels_alpha
    from pygame.transform import rotate, flip, scale
    import pygame
    init()
    clock = time.Clock()
    screen = display.set_mode((64, 48))
    bird = load("bird.png").convert_alpha()
    assert bird.get_size() == (34, 24) and bird.get_rect(center=(20, 20)).topleft == (3, 8)
    assert (array3d(bird).transpose(1, 0, 2) == shown[..., :3]).all()
    mask = pixels_alpha(bird).astype(bool)
    assert mask.shape == (34, 24) and mask[:17].all() and not mask[17:].any()
    assert tuple(rotate(bird, 90).get_at((0, 0))) == tuple(bird.get_at((33, 0)))
    assert tuple(flip(bird, True, False).get_at((0, 3))) == tuple(bird.get_at((33, 3)))
    assert scale(bird, (17, 6)).get_size() == (17, 6)
    half = pygame.transform.smoothscale(bird, (17, 12))
    assert half.get_size() == (17, 12) and abs(half.get_at((3, 3))[0] - shown[6:8, 6:8, 0].mean()) < 40
    one = Rect(3, 4, 10, 6)
    assert one.clip((8, 0, 9, 6)) == Rect(8, 4, 5, 2) and one.clip((20, 20, 3, 3)) == (3, 4, 0, 0)
    assert one.collidelist([Rect(13, 4, 2, 2), Rect(12, 9, 2, 2)]) == 1 and not one.colliderect((3, 4, 0, 5))
    assert Rect(5, 5, -2, 3).clip((0, 0, 9, 9)) == (5, 5, -2, 3)
    assert one.union((0, 0, 1, 1)) == (0, 0, 13, 10) and one.inflate(-3, 3) == (4, 3, 7, 9)
    assert one.collidepoint(3, 4) and not one.collidepoint(13, 4) and one.contains((4, 5, 9, 5))
    one.center = 30, 20.9
    assert one.topleft == (25, 18) and one.bottomright == (35, 24) and one.move(1.9, -1.9)[:2] == [26, 17]
    at = [20.7]
    def frame():
        for event in get():
            assert event.type != QUIT
        assert not pygame.key.get_pressed()[K_UP]
        screen.fill((0, 0, 0))
        back = screen.blit(bird, (at[0], -4))
        pygame.draw.rect(screen, "red", Rect(60, 40, 10, 10))
        assert back == Rect(at[0], 0, 34, 20)
        at[0] += clock.tick(40) / 25
        display.update()
        return array3d(display.get_surface())
    first = frame()
    assert first.shape == (64, 48, 3) and (first[20:37, :20].transpose(1, 0, 2) == shown[4:, :17, :3]).all()
    assert not first[37:54, :20].any() and (first[60:, 40:] == (255, 0, 0)).all()
    assert frame().shape == first.shape and at[0] > 21
    glass = Surface((4, 4), SRCALPHA)
    glass.fill((200, 100, 50, 128))
    screen.fill((0, 0, 0))
    screen.blit(glass, (0, 0))
    assert abs(np.array(screen.get_at((1, 1))[:3]) - [100, 50, 25]).max() <= 1
    sea = Surface((4, 4))
    sea.fill((0, 0, 9))
    sea.set_colorkey((0, 0, 9))
    screen.blit(sea, (0, 0))
    assert screen.get_at((1, 1))[0] > 90
    screen.subsurface((2, 2, 5, 5)).fill((1, 2, 3))
    assert tuple(screen.get_at((6, 6))) == (1, 2, 3, 255) and screen.map_rgb((1, 2, 3)) & 0xFFFFFF == 0x10203
    try:
        load("README")
    except (pygame.error, FileNotFoundError):
        pass
    def batch():
        return torch.from_numpy(frame().astype(np.float32))[None] / 255
            """
        ),
        ("pygame",),
    ),
    "things of a game": (
        program(
            """
            import os
            os.environ["SDL_VIDEODRIVER"] = "dummy"
            os.environ["SDL_AUDIODRIVER"] = "dummy"
            import pygame
            from pygame.locals import *
            from pygame.math import Vector2
            pygame.init()
            screen = pygame.display.set_mode((100, 80))
            font = pygame.font.SysFont("arial", 20)
            class Ball(pygame.sprite.Sprite):
                def __init__(self, at, *groups):
                    super().__init__(*groups)
                    self.image = pygame.Surface((9, 9), SRCALPHA)
                    pygame.draw.circle(self.image, (255, 255, 255), (4, 4), 4)
                    self.rect, self.way = self.image.get_rect(center=at), Vector2(3, 0).rotate(90)
                def update(self, by):
                    self.rect.move_ip(self.way * by)
            balls = pygame.sprite.Group()
            one, other = Ball((20, 20), balls), Ball((28, 28), balls)
            assert pygame.sprite.collide_rect(one, other) and not pygame.sprite.collide_mask(one, other)
            assert pygame.sprite.spritecollide(one, balls, False) == [one, other] and len(balls) == 2
            balls.update(2)
            assert one.rect.center == (20, 26) and balls.draw(screen) == []
            assert screen.get_at((20, 26))[:3] == screen.get_at((28, 34))[:3] == (255, 255, 255)
            other.kill()
            assert balls.sprites() == [one] and not other.alive() and one in balls
            pygame.event.clear()
            pygame.event.post(pygame.event.Event(KEYDOWN, key=K_SPACE))
            assert [(one.type, one.key) for one in pygame.event.get()] == [(KEYDOWN, K_SPACE)]
            assert pygame.event.get() == [] and (K_a, K_UP, QUIT) == (97, 1073741906, 256)
            text = font.render("12", True, pygame.Color("white"))
            screen.blit(text, text.get_rect(midtop=(50, 0)))
            begun = pygame.time.get_ticks()
            pygame.time.wait(20)
            assert pygame.time.get_ticks() - begun >= 20
            assert (Vector2(3, 4).length(), Vector2(1, 2) * 2) == (5, (2, 4))
            models = [torch.nn.Linear(2, 2)]
            def loss():
                return models[0](torch.tensor([[float(one.rect.x), float(one.rect.y)]])).mean()
            """,
            LOOP,
        ),
        ("pygame",),
    ),
    "a game that is told of": (
        program(
            """
            import numpy as np
            from ple import PLE
            from ple.games.flappybird import FlappyBird
            from ple.games.snake import Snake
            import ple.games.catcher
            def row(told):
                return np.array(list(told.values()), dtype=np.float32)
            world = PLE(FlappyBird(), fps=30, display_screen=False, state_preprocessor=row)
            world.init()
            assert world.getActionSet() == [119, 1073741930] and world.getGameStateDims() == (8,)
            assert world.getScreenRGB().shape == (288, 512, 3)
            assert world.getScreenGrayscale().shape == (288, 512)
            snake = PLE(Snake(width=32, height=32), reward_values={"tick": 2.0})
            assert len(snake.getActionSet()) == 5 and snake.getScreenDims() == (32, 32)
            assert np.array(snake.getGameState()["snake_body_pos"]).shape[1] == 2
            fallen = PLE(ple.games.catcher.Catcher(), add_noop_action=False)
            rewards = 0.0
            while not fallen.game_over():
                rewards += fallen.act(fallen.getActionSet()[0])
            assert rewards == fallen.score() and list(fallen.getGameState()) == [
                "player_x", "player_vel", "fruit_x", "fruit_y"]
            fallen.reset_game()
            assert not fallen.game_over()
            models = [torch.nn.Linear(8, 2)]
            def loss():
                chosen = models[0](torch.from_numpy(world.getGameState())[None] / 512)
                return chosen.max() * (1 + world.act(world.getActionSet()[int(chosen.argmax())]))
            """,
            LOOP,
        ),
        ("ple", "game FlappyBird"),
    ),
    "how bright a game is": (
        program(
            """
            import numpy as np
            import skimage as skimage
            from skimage import transform, color, exposure
            seen = np.arange(12.0).reshape(3, 4)
            wide = skimage.exposure.rescale_intensity(seen, out_range=(0, 255))
            assert wide.min() == 0 and wide.max() == 255 and abs(wide[0, 1] - 255 / 11) < 1e-9
            dark = exposure.rescale_intensity(np.uint8([[50, 100]]), in_range=(50, 150))
            assert dark.dtype == np.uint8 and dark.tolist() == [[0, 127]]
            assert abs(exposure.adjust_gamma(np.array([0.5]), 2)[0] - 0.25) < 1e-9
            def batch():
                return torch.from_numpy(wide / 255).float()[None]
            """
        ),
        ("skimage",),
    ),
}
