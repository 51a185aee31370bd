# SPDX-License-Identifier: Apache-2.0
"""The model as a component for a project that is already there: ESP-IDF, Zephyr, Arduino, PlatformIO, CMake, Make, C.

Every format has the same C in it and the same interface, `NAME.h` and `NAME.hpp`, which knows no header of Arenite's. A
format is a row of `FORMATS`: which template makes which file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from arenite.contract import Contract
from arenite.errors import UsageError
from arenite_codegen.board_support import firmware_folder
from arenite_codegen.render import render
from arenite_codegen.single_file import amalgamated

__all__ = ["EXPORTS", "check_exports", "component_name", "export_files"]

_FOLDERS = ("model", "runtime", "kernels", "camera")
_C_TYPES = {"int8": "int8_t", "uint8": "uint8_t", "int16": "int16_t", "int32": "int32_t", "float32": "float"}
_MOST_CHARACTERS = 40


@dataclass(frozen=True)
class _Format:
    """One kind of component.

    Attributes:
        title: What it is called.
        usage: How it is brought into a project: Markdown, with `{name}`.
        files: Target, with `{name}`, and the template that makes it.
        include: Folder of the public headers.
    """

    title: str
    usage: str
    files: Mapping[str, str] = field(default_factory=dict)
    include: str = "include"


_EXAMPLE = "api/example.c.j2"
FORMATS: Mapping[str, _Format] = {
    "cmake": _Format(
        "CMake package",
        "`add_subdirectory` this folder, or install it and `find_package({name} CONFIG)`; link `arenite::{name}`.",
        {"CMakeLists.txt": "cmake/CMakeLists.txt.j2", "example/example.c": _EXAMPLE},
    ),
    "make": _Format(
        "Makefile",
        "`make` builds `build/lib{name}.a`; the header is in `include/`.",
        {"Makefile": "make/Makefile.j2", "example/example.c": _EXAMPLE},
    ),
    "single-file": _Format("two files", "Add `{name}.c` and `{name}.h` to the project; C99.", {}, "."),
    "arduino": _Format(
        "Arduino library",
        "Copy this folder, named `{name}`, into the sketchbook's `libraries`, or add it as a ZIP.",
        {
            "library.properties": "arduino/library.properties.j2",
            "examples/{name}_basic/{name}_basic.ino": "arduino/example.ino.j2",
        },
        "src",
    ),
    "platformio": _Format(
        "PlatformIO library",
        "Put it into the project's `lib/`, or name its path in `lib_deps`.",
        {"library.json": "platformio/library.json.j2", "examples/basic/main.c": _EXAMPLE},
    ),
    "esp-idf": _Format(
        "ESP-IDF component",
        "Put it into the project's `components/`, named `{name}`; `idf.py menuconfig` can move the arena to PSRAM.",
        {
            "CMakeLists.txt": "esp-idf/CMakeLists.txt.j2",
            "idf_component.yml": "esp-idf/idf_component.yml.j2",
            "Kconfig": "esp-idf/Kconfig.j2",
            "examples/basic/CMakeLists.txt": "esp-idf/example.cmake.j2",
            "examples/basic/main/CMakeLists.txt": "esp-idf/example_main.cmake.j2",
            "examples/basic/main/main.c": "esp-idf/main.c.j2",
            "examples/basic/main/example.c": _EXAMPLE,
        },
    ),
    "zephyr": _Format(
        "Zephyr module",
        "Name its path in `ZEPHYR_EXTRA_MODULES` or in `west.yml`, and set `CONFIG_{NAME}=y`.",
        {
            "west.yml": "zephyr/west.yml.j2",
            "zephyr/module.yml": "zephyr/module.yml.j2",
            "CMakeLists.txt": "zephyr/CMakeLists.txt.j2",
            "Kconfig": "zephyr/Kconfig.j2",
            "samples/basic/CMakeLists.txt": "zephyr/sample_CMakeLists.txt.j2",
            "samples/basic/prj.conf": "zephyr/prj.conf.j2",
            "samples/basic/sample.yaml": "zephyr/sample.yaml.j2",
            "samples/basic/dtcm.overlay": "zephyr/dtcm.overlay.j2",
            "samples/basic/dtcm.conf": "zephyr/dtcm.conf.j2",
            "samples/basic/src/main.c": "zephyr/main.c.j2",
            "samples/basic/src/example.c": _EXAMPLE,
        },
    ),
}
EXPORTS = tuple(FORMATS)


def check_exports(formats: Sequence[str], models: int, caller_memory: bool, guards: bool) -> None:
    """Refuse what a component does not hold.

    Raises:
        UsageError: There is no such format; there are several models; or one has memory of the caller's or guard words.
    """
    for name in formats:
        if name not in FORMATS:
            raise UsageError(f"there is no export {name!r}", cure=f"Choose among {', '.join(EXPORTS)}")
    if not formats:
        return
    if models > 1:
        raise UsageError("a component holds one model", cure="Bundle each by itself, or leave out --export")
    if caller_memory:
        problem = "a component gives the model all its memory"
        raise UsageError(problem, cure="Leave out --caller-input and --caller-output, or --export")
    if guards:
        raise UsageError("a validation build is no component", cure="Leave out --guards or --export")


def component_name(stem: str) -> str:
    """A C identifier out of a model's file name."""
    words = re.sub(r"[^a-z0-9]+", "_", stem.lower()).strip("_")[:_MOST_CHARACTERS].rstrip("_")
    return f"model_{words}" if not words or words[0].isdigit() or words.startswith("arenite") else words


def export_files(
    name: str, bundle: Path, manifest: Mapping[str, Any], contract: Contract | None, version: str
) -> dict[str, bytes]:
    """One component's files, relative to its folder.

    Args:
        name: A key of `FORMATS`.
        bundle: Folder of the bundle, with its C already there.
        manifest: What is known of it so far.
        contract: The model's, for its labels.
        version: Of the component.
    """
    form = FORMATS[name]
    c_files = _c_files(bundle, manifest)
    context = _context(manifest, contract, sorted(n for n in c_files if n.endswith(".c")), version)
    own = {
        f"{context['name']}.h": render("api/api.h.j2", context, _folder()),
        f"{context['name']}.c": render("api/api.c.j2", context, _folder()),
        f"{context['name']}.hpp": render("api/api.hpp.j2", context, _folder()),
    }
    context |= {"sources": sorted({*context["sources"], f"{context['name']}.c"}), "format_name": form.title}
    context["usage"] = form.usage.format(name=context["name"], NAME=context["NAME"])
    files = {
        target.format(name=context["name"]): render(template, context, _folder())
        for target, template in {**form.files, "README.md": "api/README.md.j2"}.items()
    }
    if name == "single-file":
        files[f"{context['name']}.c"] = amalgamated(f"{context['name']}.c", c_files | own)
    else:
        files |= {f"src/{file}": text for file, text in c_files.items()}
        files[f"src/{context['name']}.c"] = own[f"{context['name']}.c"]
    headers = {file: text for file, text in own.items() if not file.endswith(".c")}
    files |= {(Path(form.include) / file).as_posix(): text for file, text in headers.items()}
    return {file: text.encode("utf-8") for file, text in sorted(files.items())}


def _folder() -> Path:
    return firmware_folder("exports")


def _c_files(bundle: Path, manifest: Mapping[str, Any]) -> dict[str, str]:
    """The model's C, in one folder: no two files have the same name."""
    headers = [p.relative_to(bundle).as_posix() for folder in _FOLDERS for p in (bundle / folder).glob("*.h")]
    wanted = [*manifest["sources"], *headers]
    paths = sorted(path for path in wanted if path.split("/")[0] in _FOLDERS)
    return {path.rsplit("/", 1)[1]: (bundle / path).read_text(encoding="utf-8") for path in paths}


def _context(
    manifest: Mapping[str, Any], contract: Contract | None, sources: list[str], version: str
) -> dict[str, Any]:
    model = manifest["models"][0]
    name = component_name(model["name"])
    inputs, outputs = ([_io(io) for io in model[side]] for side in ("inputs", "outputs"))
    arena = [_buffer(row) for row in manifest["regions"] if row["holds"] == "arena"]
    if len(arena) == 1:  # where it goes is then a matter of configuration
        arena[0] |= {"macro": "ARENA", "in_psram": False}
    states = [_buffer(row) for row in manifest["regions"] if row["holds"] == "state"]
    labels = [list(output.labels or ()) for output in contract.outputs] if contract is not None else []
    rows = model["layers"][0]["rows"] if model["row_fed"] else 0
    camera = model.get("camera")
    frame = re.match(r"(\d+)x(\d+):", camera["frame"]) if camera else None
    floats = "float32" in {io["dtype"] for io in outputs}
    return {
        "name": name,
        "NAME": name.upper(),
        "component": name,
        "title": re.sub(r"[^\w .+-]", "_", str(model["name"]), flags=re.ASCII),
        "symbol": model["symbol"],
        "sha256": model["sha256"],
        "board": manifest["board"],
        "version": version,
        "ram_bytes": sum(buffer["bytes"] for buffer in (*arena, *states)),
        "weights_bytes": manifest["weights_bytes"],
        "inputs": inputs,
        "outputs": outputs,
        "stored_type": "float" if floats else "int32_t",
        "buffers": [*arena, *states],
        "remembers": bool(states),
        "row_fed": model["row_fed"],
        "rows": rows,
        "row_bytes": inputs[0]["bytes"] // rows if rows else 0,
        "label_lists": labels,
        "labelled": [i for i, found in enumerate(labels) if found],
        "camera": camera["frame"] if camera else "",
        "camera_width": frame[1] if frame else 0,
        "camera_height": frame[2] if frame else 0,
        "sources": sources,
        "example_purpose": _purpose(model),
        "idf_target": manifest["board"] if str(manifest["board"]).startswith("esp32") else "esp32s3",
    }


def _buffer(row: Mapping[str, Any]) -> dict[str, Any]:
    """A piece of RAM that the component holds: a part of the arena, or the states."""
    variable = re.sub(r"\W", "_", f"{row['holds']}_{row['name']}").lower()
    return {
        "name": row["name"],
        "bytes": row["bytes"],
        "macro": variable.upper(),
        "variable": variable,
        "in_psram": row["name"] == "psram",
    }


def _io(io: Mapping[str, Any]) -> dict[str, Any]:
    dtype = np.dtype(io["dtype"])
    limits = np.iinfo(dtype) if dtype.kind in "iu" else None
    return {
        **io,
        "c_type": _C_TYPES[io["dtype"]],
        "elements": io["bytes"] // dtype.itemsize,
        "scale": f"{float(np.float32(io['scale'])):.9e}f",
        "lowest": int(limits.min) if limits and dtype.itemsize < 4 else -(2**31 - 1),
        "highest": int(limits.max) if limits and dtype.itemsize < 4 else 2**31 - 1,
    }


def _purpose(model: Mapping[str, Any]) -> str:
    shape = model["inputs"][0]["shape"]
    if model["row_fed"]:
        return "A camera's rows, fed one by one into the model."
    if len(shape) == 4 and shape[3] in (1, 3) and min(shape[1:3]) >= 16:
        return "A picture, or a spectrogram of sound, into the model."
    return "A window of samples, such as a microphone's features or an accelerometer's, into the model."
