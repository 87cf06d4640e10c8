"""A run as a video, a configuration as an image.

    .mp4, .webm    ffmpeg, as the wheel `imageio-ffmpeg` brings it
    .gif, .webp    Pillow, played again and again
    .png, .jpg     one image: of the time `at`, or of the start

Videos show the states between samples along the manifold, `fps` frames per second of video, `speed` times as fast as
the run.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from polybody.errors import InputError, PolybodyError
from polybody.files import write_whole
from polybody.model.model import Model
from polybody.studio.record import Record
from polybody.studio.render.raster import THEMES, Raster
from polybody.studio.stage.stage import Stage
from polybody.studio.strokes import png_bytes

Array = np.ndarray
FILMS = (".mp4", ".webm", ".gif", ".webp")
PICTURES = (".png", ".jpg", ".jpeg")
FORMATS = FILMS + PICTURES
MOST_PICTURES = 36_000


def render(
    model: Model, path: str | os.PathLike[str], records: Sequence[Record] = (), *, q: Any = None,
    size: tuple[int, int] = (1280, 720),
    fps: float = 30.0, speed: float = 1.0, at: float | None = None, view: tuple[float, float] | None = None,
    theme: str = "light", trail: str | None = None, zoom: float = 1.0, colors: int | None = None,
    progress: Callable[[float], None] | None = None,
) -> Path:  # fmt: skip
    """Write an image or a video of a model, or of runs of it, the first in full and the others see-through beside it.

    `view` is (azimuth, elevation) in radians, `trail` a frame whose path is drawn, `colors` how many a .gif has.
    """
    path = Path(path)
    kind = path.suffix.lower()
    _check(path, kind, records, size, fps, speed, theme)
    shown = np.concatenate([record.q for record in records]) if records else np.atleast_2d(_configuration(model, q))
    stage = Stage(model, shown)
    raster = Raster(stage, *size, theme=theme, view=view, ghosts=max(0, len(records) - 1), zoom=zoom)
    try:
        if trail is not None:
            for record in records:
                raster.add_path(model.pose(record.q, trail)[:, :3, 3])
        if kind in PICTURES or not records:
            states = [_between(record, record.t[0] if at is None else at) for record in records] or [shown[0]]
            _write_picture(path, raster.picture(states[0], states[1:]))
        else:
            _write_film(path, kind, _pictures(raster, records, fps, speed, progress), size, fps, colors)
    finally:
        raster.close()
    return path


def _check(
    path: Path, kind: str, records: Sequence[Record], size: tuple[int, int], fps: float, speed: float, theme: str
) -> None:
    if kind not in FORMATS:
        raise InputError(f"{path}: images end in {', '.join(PICTURES)}, videos in {', '.join(FILMS)}")
    if kind in (".mp4", ".webm", ".gif") and not records:
        raise InputError(f"{path}: a video shows a run; a model gives an image ({', '.join(PICTURES)})")
    if not path.parent.is_dir():
        raise InputError(f"{path}: the folder {str(path.parent)!r} does not exist")
    if len(size) != 2 or any(int(n) != n or not 16 <= n <= 8192 for n in size):
        raise InputError(f"size is {size}; expected width and height, whole numbers from 16 to 8192")
    for name, value, high in (("fps", fps, 240), ("speed", speed, 1e6)):
        if not (np.isfinite(value) and 0 < value <= high):
            raise InputError(f"{name} is {value}; expected a positive number, at most {high:g}")
    if theme not in THEMES:
        raise InputError(f"theme is {theme!r}; expected one of {', '.join(THEMES)}")
    if records and kind in FILMS:
        count = fps * max(r.t[-1] - r.t[0] for r in records) / speed
        if count > MOST_PICTURES:
            raise InputError(
                f"the video would have {count:.0f} frames, more than {MOST_PICTURES}; raise the speed"
            )


def _configuration(model: Model, q: Any) -> Array:
    from polybody.studio.viewer.posing import first_configuration

    return first_configuration(model) if q is None else model.assemble(q)


def _between(record: Record, t: float) -> Array:
    """The configuration at a time, between samples along the manifold."""
    k = int(np.clip(np.searchsorted(record.t, t, side="right") - 1, 0, len(record.t) - 1))
    if k + 1 >= len(record.t) or t <= record.t[k]:
        return record.q[k]
    part = (t - record.t[k]) / (record.t[k + 1] - record.t[k])
    return record.model.integrate(record.q[k], part * record.model.difference(record.q[k], record.q[k + 1]))


def _pictures(
    raster: Raster, records: Sequence[Record], fps: float, speed: float, progress: Callable[[float], None] | None
) -> Iterator[Array]:
    start, end = min(r.t[0] for r in records), max(r.t[-1] for r in records)
    times = np.arange(start, end + 0.5 * speed / fps, speed / fps)
    for k, t in enumerate(times):
        states = [_between(record, float(t)) for record in records]
        yield raster.picture(states[0], states[1:])
        if progress is not None:
            progress((k + 1) / len(times))


def _write_picture(path: Path, picture: Array) -> None:
    """Whole or not at all."""
    if path.suffix.lower() == ".png":
        write_whole(path, png_bytes(picture, 4))
        return
    from PIL import Image

    packed = io.BytesIO()
    Image.fromarray(picture).save(packed, format=path.suffix[1:].lower().replace("jpg", "jpeg"))
    write_whole(path, packed.getvalue())


def _write_film(
    path: Path, kind: str, pictures: Iterator[Array], size: tuple[int, int], fps: float, colors: int | None
) -> None:
    if kind in (".gif", ".webp"):
        _write_frames(path, kind, pictures, fps, colors)
        return
    try:
        import imageio_ffmpeg
    except ImportError as error:
        raise PolybodyError(
            f"videos need the package imageio-ffmpeg ({error}): pip install 'polybody[render]'"
        ) from None
    if any(n % 2 for n in size):
        raise InputError(f"size is {size}; videos need even numbers")
    codec = "libx264" if kind == ".mp4" else "libvpx-vp9"
    pace: Any = fps  # a float is taken as well, whatever its type hint says
    writer = imageio_ffmpeg.write_frames(str(path), tuple(size), fps=pace, codec=codec, quality=8, macro_block_size=2,
                                         ffmpeg_log_level="error")  # fmt: skip
    writer.send(None)
    try:
        for picture in pictures:
            writer.send(picture)
    except OSError as error:
        raise PolybodyError(f"{path}: ffmpeg could not write it ({error})") from None
    finally:
        writer.close()


def _write_frames(path: Path, kind: str, pictures: Iterator[Array], fps: float, colors: int | None) -> None:
    from PIL import Image

    frames = [Image.fromarray(picture) for picture in pictures]
    if kind == ".gif":
        shared = frames[len(frames) // 2].quantize(
            colors or 128, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
        frames = [frame.quantize(palette=shared, dither=Image.Dither.NONE) for frame in frames]
        options: dict[str, Any] = {"optimize": True, "disposal": 1}
    else:
        options = {"quality": 62, "method": 4}
    try:
        frames[0].save(
            path, save_all=True, append_images=frames[1:], duration=max(10, round(1000 / fps)), loop=0, **options
        )
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error})") from None


__all__ = ["FILMS", "FORMATS", "PICTURES", "render"]
