# SPDX-License-Identifier: Apache-2.0
"""Folders, cameras, iterables. The V4L2 camera speaks to a driver that is compiled against the kernel's header."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import arenite
from arenite.errors import MissingToolError, UsageError
from arenite.sources import v4l2_abi as abi
from support.host_compiler import HostCompiler, find_compiler

SUPPORT = Path(__file__).resolve().parents[1] / "support"
linux = pytest.mark.skipif(sys.platform != "linux", reason="V4L2 is Linux's")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "pictures"
    (made / "more").mkdir(parents=True)
    for name in ("b.png", "a.png", "more/c.png"):
        Image.new("RGB", (4, 4)).save(made / name)
    (made / "notes.txt").write_text("no picture")
    return made


def names(source: arenite.FrameSource) -> list[str]:
    return [Path(str(item)).name for item in source]


def test_a_folder(folder: Path) -> None:
    assert names(arenite.open_source(folder)) == ["a.png", "b.png", "c.png"]
    assert names(arenite.open_source(str(folder / "b.png"))) == ["b.png"]
    assert names(arenite.PictureFolder(folder, repeat=2)) == ["a.png", "b.png", "c.png"] * 2


def test_a_folder_as_a_camera(folder: Path) -> None:
    source = arenite.PictureFolder(folder, repeat=4, fps=1000)
    assert source.period_ms == 1
    taken = names(source)
    assert len(taken) + source.skipped == 12
    slow = arenite.PictureFolder(folder, repeat=0, fps=0.001)
    items = iter(slow)
    next(items)
    slow.close()
    assert list(items) == []  # not after a quarter of an hour


def test_frames_that_nobody_took_in_time_are_counted(folder: Path) -> None:
    import time

    source = arenite.PictureFolder(folder, repeat=2, fps=200)
    items = iter(source)
    next(items)
    time.sleep(0.1)
    assert list(items) == []
    assert source.skipped == 5


@pytest.mark.parametrize("options", [{"repeat": -1}, {"repeat": 1.5}, {"fps": 0}, {"fps": float("nan")}])
def test_folders_refuse_nonsense(folder: Path, options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="cannot"):
        arenite.PictureFolder(folder, **options)  # type: ignore[arg-type]


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no picture"):
        arenite.open_source(tmp_path)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ("v4l2:/dev/video0?size=big", "size or rate"),
        ("v4l2:/dev/video0?size=1x2x3", "size or rate"),
        ("v4l2:/dev/video0?colour=red", "no option 'colour'"),
        ("v4l2:/dev/video0?format=H264", "no camera format 'H264'"),
        ("v4l2:/dev/there-is-none", "cannot open the camera"),
        ("v4l2:/dev/null", "no video device"),
        ("picamera2:front", "number"),
        ("picamera2?format=NV12", "no option 'format'"),
    ],
)
def test_cameras_that_are_not_there(spec: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        arenite.open_source(spec)


def test_picamera2_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "picamera2", None)
    with pytest.raises(MissingToolError, match="sudo apt install python3-picamera2"):
        arenite.open_source("picamera2")


def test_picamera2_as_its_manual_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The calls that the Picamera2 manual shows, in their order; the camera itself is at no test machine."""
    calls: list[object] = []

    class Picamera2:
        def __init__(self, number: int) -> None:
            calls.append(number)

        def create_video_configuration(self, main: object, controls: object) -> object:
            return (main, controls)

        def configure(self, configuration: object) -> None:
            calls.append(configuration)

        def start(self) -> None:
            calls.append("start")

        def capture_array(self, stream: str) -> np.ndarray:
            return np.zeros((6, 8, 3), np.uint8)

        def stop(self) -> None:
            calls.append("stop")

        def close(self) -> None:
            calls.append("close")

    module = types.ModuleType("picamera2")
    module.Picamera2 = Picamera2  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "picamera2", module)
    source = arenite.open_source("picamera2:1?size=8x6&fps=50")
    frames = iter(source)
    assert next(frames).shape == (6, 8, 3)  # type: ignore[union-attr]
    assert source.period_ms == 20
    source.close()
    source.close()
    assert list(frames) == []
    main = {"size": (8, 6), "format": "BGR888"}
    assert calls == [1, (main, {"FrameRate": 50.0}), "start", "stop", "close"]


@pytest.fixture(scope="module")
def plain_compiler() -> HostCompiler:
    found = find_compiler(sanitise=False)
    if found is None:
        pytest.skip("no C compiler: pip install 'arenite[firmware]'")
    return found


@linux
def test_structures_are_the_kernels(plain_compiler: HostCompiler, tmp_path: Path) -> None:
    program = tmp_path / "abi"
    plain_compiler.link(plain_compiler.compile([SUPPORT / "v4l2_abi.c"], [], tmp_path), program)
    printed = subprocess.run([program], capture_output=True, text=True, check=True).stdout
    said = dict(re.findall(r"(\S+) (\d+)", printed))
    structures = {
        "v4l2_capability": abi.Capability,
        "v4l2_format": abi.Format,
        "v4l2_requestbuffers": abi.RequestBuffers,
        "v4l2_streamparm": abi.StreamParameters,
        "v4l2_buffer": abi.Buffer,
    }
    constants = {
        "V4L2_CAP_VIDEO_CAPTURE": abi.CAP_VIDEO_CAPTURE,
        "V4L2_CAP_STREAMING": abi.CAP_STREAMING,
        "V4L2_CAP_DEVICE_CAPS": abi.CAP_DEVICE_CAPS,
        "V4L2_BUF_TYPE_VIDEO_CAPTURE": abi.CAPTURE,
        "V4L2_MEMORY_MMAP": abi.MMAP,
        "V4L2_COLORSPACE_REC709": abi.COLORSPACE_REC709,
        "V4L2_QUANTIZATION_FULL_RANGE": abi.QUANTIZATION_FULL_RANGE,
        **abi.REQUESTS,
    }
    # The kernel's names of the formats where they are not ours.
    other = {"RGB": "RGB24", "BGR": "BGR24"}
    for name, letters in abi.PIXEL_FORMATS.items():
        constants[f"V4L2_PIX_FMT_{other.get(name, name)}"] = abi.fourcc(letters)
    for name, value in said.items():
        structure, _, member = name.partition(".")
        if member:
            assert _offset(structures[structure], member.split(".")) == int(value), name
        elif structure in structures:
            assert abi.ctypes.sizeof(structures[structure]) == int(value), name
        else:
            assert constants.pop(name) == int(value), name
    assert constants == {}


def _offset(structure: type, members: list[str]) -> int:
    total = 0
    for member in members:
        if member == "timeperframe":
            continue  # ours spells the fraction out
        total += getattr(structure, member).offset
        structure = {name: kind for name, kind, *_ in structure._fields_}[member]  # type: ignore[attr-defined]
    return total


@pytest.fixture(scope="module")
def driver(plain_compiler: HostCompiler, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The preloadable driver."""
    if sys.platform != "linux":
        pytest.skip("V4L2 is Linux's")
    library = tmp_path_factory.mktemp("driver") / "v4l2_driver.so"
    source = SUPPORT / "v4l2_driver.c"
    flags = ["-std=gnu99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-shared", "-fPIC", "-O1"]
    subprocess.run([*plain_compiler.command, *flags, str(source), "-o", str(library), "-ldl"], check=True)
    return library


def with_driver(driver: Path, tmp_path: Path, program: str, **env: str) -> list[str]:
    """A program's lines; its argument is the device."""
    device = tmp_path / "video0"
    device.write_bytes(bytes(4 * 4096))
    everything = {**os.environ, "LD_PRELOAD": str(driver), **env}
    arguments = [sys.executable, "-c", program, str(device)]
    done = subprocess.run(arguments, env=everything, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


OPEN = "import sys, arenite, numpy as np\ncamera = arenite.open_source(f'v4l2:{sys.argv[1]}?size=32x16&fps=30')\n"


def test_camera_gives_the_newest_frame(driver: Path, tmp_path: Path) -> None:
    """Two are ready each time; the rows have gaps; full range, as the driver says."""
    program = OPEN + (
        "print(camera.format, camera.width, camera.height, camera.period_ms)\n"
        "frames = iter(camera)\n"
        "for _ in range(5):\n"
        "    frame = next(frames)\n"
        "    pixels = np.asarray(frame.image())\n"
        "    print(frame.format, pixels.shape, np.unique(pixels), camera.skipped)\n"
        "camera.close(); camera.close()\n"
        "print(list(frames))\n"
    )
    expected = [f"YUYV (8, 16, 3) [{17 + 2 * i}] {i}" for i in range(5)]
    assert with_driver(driver, tmp_path, program) == ["YUYV 16 8 40.0", *expected, "[]"]


def test_camera_in_a_pipeline(driver: Path, tmp_path: Path) -> None:
    from support.colour_model import colour_model

    model = tmp_path / "colours.tflite"
    model.write_bytes(colour_model())
    program = OPEN + (
        f"pipeline = arenite.Pipeline(arenite.open({str(model)!r}), camera)\n"
        "for frame in pipeline:\n"
        "    if frame.number == 20: break\n"
        "report = pipeline.report()\n"
        "print(report.frames, report.source_skipped >= 20, report.source.startswith('v4l2:'))\n"
    )
    assert with_driver(driver, tmp_path, program) == ["21 True True"]


def test_camera_that_is_unplugged(driver: Path, tmp_path: Path) -> None:
    program = OPEN + (
        "try:\n"
        "    for frame in camera: print('frame')\n"
        "except arenite.UsageError as error: print(error.what, error.where == camera.name)\n"
        "camera.close()\n"
    )
    lines = with_driver(driver, tmp_path, program, DRIVER_FRAMES="4")
    assert lines == ["frame", "the camera is gone (No such device) True"]


def test_camera_with_jpeg_frames(driver: Path, tmp_path: Path) -> None:
    """Cameras leave the standard Huffman tables away."""
    buffer = io.BytesIO()
    Image.new("RGB", (16, 8), (200, 30, 40)).save(buffer, "JPEG")
    content = buffer.getvalue()
    while (start := content.find(b"\xff\xc4")) >= 0:
        content = content[:start] + content[start + 2 + int.from_bytes(content[start + 2 : start + 4], "big") :]
    program = OPEN + (
        "from arenite.preprocess import decode_picture\n"
        "picture = next(iter(camera))\n"
        "print(camera.format, type(picture).__name__, decode_picture(picture).getpixel((3, 3)))\n"
    )
    (line,) = with_driver(driver, tmp_path, program, DRIVER_FORMAT="MJPG", DRIVER_PICTURE=content.hex())
    expected = Image.open(io.BytesIO(buffer.getvalue())).getpixel((3, 3))
    assert line == f"MJPEG bytes {expected}"


@pytest.mark.parametrize(
    ("spec", "env", "told"),
    [
        ("", {"DRIVER_KIND": "radio"}, "this video device gives no pictures"),
        ("?format=NV12", {}, "the camera does not offer the format NV12"),
    ],
)
def test_cameras_that_do_not_fit(driver: Path, tmp_path: Path, spec: str, env: dict[str, str], told: str) -> None:
    program = (
        "import sys, arenite\n"
        f"try: arenite.open_source(f'v4l2:{{sys.argv[1]}}{spec}')\n"
        "except arenite.UsageError as error: print(error.what)\n"
    )
    assert with_driver(driver, tmp_path, program, **env) == [told]
