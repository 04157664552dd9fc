"""Folders of images beside torchvision: kinds of pixels, and folders that are none or hold no images."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wirelessfl.errors import DataError
from wirelessfl.learning.data.image_folder import load_image_folder
from wirelessfl.learning.data.pictures import pixels
from wirelessfl.learning.vision import torchvision_module

pillow = pytest.importorskip("PIL.Image")
NOISE = np.random.default_rng(3).integers(0, 256, (11, 17, 4), dtype=np.uint8)


def picture(mode: str) -> Any:
    coloured = pillow.fromarray(NOISE, "RGBA")
    if mode == "P":
        return coloured.convert("RGB").quantize(30)
    return coloured.convert("RGB").convert(mode) if mode in ("CMYK", "YCbCr", "1") else coloured.convert(mode)


def write(folder: Path, *names: str, image: Any = None) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (image or picture("RGB")).save(folder / name)
    return folder


def five(folder: Path, image: Any = None) -> Path:
    return write(folder, *(f"a/{at}.png" for at in range(5)), image=image)


@pytest.mark.parametrize("grey", [False, True])
@pytest.mark.parametrize("side", [None, 7])
@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_pixels_are_those_of_torchvision(mode: str, side: int | None, grey: bool) -> None:
    functional = torchvision_module("transforms").functional
    plain = picture(mode).convert("L" if grey else "RGB")
    wanted = functional.to_tensor(plain if side is None else plain.resize((side, side), pillow.Resampling.BILINEAR))
    assert np.array_equal(pixels(picture(mode), grey, side), wanted.numpy())


@pytest.mark.parametrize("order", ["<", ">"])
def test_16_bits_are_scaled_by_their_white(order: str, tmp_path: Path) -> None:
    """Pillow's conversion to 8 bits makes everything above 255 of 65,535 white."""
    values = np.linspace(0, 65_535, 36).astype(np.uint16).reshape(6, 6)
    image = pillow.fromarray(values.astype(f"{order}u2"))
    assert image.mode.startswith("I;16")
    wanted = (values / 65_535).astype(np.float32)
    assert np.allclose(pixels(image, True)[0], wanted, atol=1e-7)
    read = load_image_folder(five(tmp_path, pillow.fromarray(values)), size=6)
    assert np.allclose(read.train.inputs[0].numpy(), np.stack([wanted] * 3), atol=1e-7)


def test_pixels_whose_white_is_not_known_are_refused(tmp_path: Path) -> None:
    stored = io.BytesIO()
    pillow.fromarray(np.ones((4, 4), dtype=np.float32)).save(stored, "TIFF")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "0.png").write_bytes(stored.getvalue())
    with pytest.raises(DataError, match=r"0\.png: not a readable image: pixels of the mode F; allowed: 1, L, LA"):
        load_image_folder(tmp_path)


def test_files_and_folders_with_a_dot_are_no_images(tmp_path: Path) -> None:
    """Folders such as .ipynb_checkpoints were a class, and the ._ files of archives from a Mac no readable images."""
    write(five(tmp_path), ".ipynb_checkpoints/0.png", "a/.ipynb_checkpoints/1.png", "a/deep/er/9.PNG")
    (tmp_path / "a" / "._0.png").write_bytes(b"Mac OS X")
    dataset = load_image_folder(tmp_path)
    assert dataset.class_names == ("a",) and len(dataset.train) + len(dataset.test) == 6


def test_animations_are_their_first_picture_and_cameras_are_not_turned(tmp_path: Path) -> None:
    red, blue = (pillow.new("RGB", (4, 4), colour) for colour in ("red", "blue"))
    (tmp_path / "a").mkdir()
    turned = pillow.Exif()
    turned[0x0112] = 6
    upper = pillow.fromarray(np.repeat(np.array([0, 255], dtype=np.uint8), 32).reshape(8, 8))
    for at in range(5):
        red.save(tmp_path / "a" / f"{at}.gif", save_all=True, append_images=[blue])
        upper.save(tmp_path / "a" / f"{at + 5}.jpg", exif=turned, quality=100)
    inputs = load_image_folder(tmp_path, size=8).train.inputs.numpy()
    for image in inputs:
        animated = image[:, 0, 0].tolist() == [1, 0, 0]
        assert animated or (image[:, 0].max() < 0.1 and image[:, 7].min() > 0.9)


@pytest.mark.parametrize(
    ("names", "root", "says"),
    [
        ([], "none", "none: cannot be read: No such file or directory"),
        (["a/0.png"], "a/0.png", "a/0.png: cannot be read: Not a directory"),
        (["test/a/0.png", "b/0.png"], ".", "has a folder test with folders in it and none train; allowed: train and"),
        (["train/0.png"], ".", "train: holds no images; allowed: one folder for each class, with files .png"),
        (["a/0.png", "b/0.tiff"], ".", "b: holds no images; allowed: one folder for each class, with files .png"),
    ],
)
def test_other_folders_are_refused(tmp_path: Path, names: list[str], root: str, says: str) -> None:
    write(tmp_path, *names)
    with pytest.raises(DataError, match=says):
        load_image_folder(tmp_path / root)


def test_what_cannot_be_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    five(tmp_path)
    with pytest.raises(DataError, match="size: found 0; allowed: at least 1 pixel"):
        load_image_folder(tmp_path, size=0)
    (tmp_path / "a" / "gone.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(DataError, match=r"gone\.png: not a readable image: .*No such file"):
        load_image_folder(tmp_path)

    def refused(path: Any) -> Any:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", refused)
    with pytest.raises(DataError, match="a: cannot be read: Permission denied"):
        load_image_folder(tmp_path)


def test_a_class_may_be_called_test(tmp_path: Path) -> None:
    write(tmp_path, *(f"{name}/{at}.png" for name in ("control", "test") for at in range(5)))
    assert load_image_folder(tmp_path).class_names == ("control", "test")
