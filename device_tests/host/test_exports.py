# SPDX-License-Identifier: Apache-2.0
"""Exported components, each built as its consumer would, with all warnings, and run here against the authority."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from arenite.contract import read_contract
from arenite.errors import UsageError
from arenite.frames import Frame
from arenite.preprocess import Preprocessor
from arenite.reference import reference_outputs
from arenite_codegen import bundle
from arenite_codegen.boards import load_board
from arenite_codegen.export import EXPORTS, component_name
from arenite_codegen.single_file import amalgamated
from arenite_codegen.variants import VARIANTS
from support.colour_model import LABELS, colour_model
from support.emission import KERNELS
from support.graphs import random_graph
from support.photograph_network import SIDE, network
from support.tflm import TflmModel

SUPPORT = Path(__file__).parents[1] / "support"
# Its kernels are the portable ones, which this computer runs too.
PORTABLE = "rpi-pico"
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Werror")
CC, CXX = shutil.which("gcc") or "gcc", shutil.which("g++") or "g++"
pytestmark = pytest.mark.skipif(
    shutil.which("gcc") is None or shutil.which("g++") is None, reason="needs GCC for the host"
)


@dataclass(frozen=True)
class Exported:
    """A model with all its components.

    Attributes:
        vectors: Inputs, one behind the other, and the authority's outputs of the first output.
    """

    name: str
    folder: Path
    row_fed: bool
    vectors: tuple[bytes, bytes]
    labels: tuple[str, ...]

    def defines(self) -> list[str]:
        fed = ["-DROW_FED"] if self.row_fed else []
        return [f"-DMODEL={self.name}", f"-DMODEL_UPPER={self.name.upper()}", f'-DMODEL_HEADER="{self.name}.h"', *fed]


@pytest.fixture(scope="module")
def colours(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """A whole frame in, labels and a camera."""
    folder = tmp_path_factory.mktemp("colours")
    path = folder / "Colours v2.tflite"
    path.write_bytes(colour_model(8))
    bundle(path, PORTABLE, folder / "b", exports=EXPORTS, camera="16x12:RGB565", vectors=0)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, (1, 8, 8, 3)).astype(np.int8) for _ in range(5)]
    return Exported("colours_v2", folder / "b", False, _expected(path, inputs), LABELS)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Fed row by row, without a contract."""
    folder = tmp_path_factory.mktemp("rows")
    path, case = folder / "rows.tflite", random_graph("CONV_2D", 8)
    path.write_bytes(case.model_bytes)
    bundle(path, PORTABLE, folder / "b", exports=EXPORTS, row_fed=True, vectors=0)
    return Exported("rows", folder / "b", True, _expected(path, [vector[0] for vector in case.vectors]), ())


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """It remembers: all vectors are one stream."""
    folder = tmp_path_factory.mktemp("stream")
    path, case = folder / "stream.tflite", random_graph("STREAM", 3)
    path.write_bytes(case.model_bytes)
    bundle(path, PORTABLE, folder / "b", exports=EXPORTS, vectors=0)
    oracle, inputs = TflmModel(case.model_bytes), [vector[0] for vector in case.vectors]
    outputs = [oracle.run([vector], 1)[0] for vector in inputs]
    made = b"".join(x.tobytes() for x in inputs), b"".join(y.tobytes() for y in outputs)
    return Exported("stream", folder / "b", False, made, ())


def _expected(path: Path, inputs: list[np.ndarray]) -> tuple[bytes, bytes]:
    outputs = reference_outputs(path.read_bytes(), [[vector] for vector in inputs])
    return b"".join(x.tobytes() for x in inputs), b"".join(o[0].tobytes() for o in outputs)


def call(*command: str | Path, cwd: Path | None = None, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    done = subprocess.run([str(word) for word in command], cwd=cwd, input=stdin, capture_output=True)
    assert done.returncode == 0, f"{command}\n{done.stdout.decode()[-3000:]}{done.stderr.decode()[-3000:]}"
    return done


def _with_gcc(model: Exported, form: str, out: Path) -> Path:
    """Sources as they lie, as Arduino and PlatformIO take them."""
    root = model.folder / "exports" / form
    headers = [root / "include"] if (root / "include").is_dir() else []
    includes = [f"-I{folder}" for folder in (*headers, root / "src" if (root / "src").is_dir() else root)]
    sources = sorted((root / "src").glob("*.c")) or sorted(root.glob("*.c"))
    command = [CC, "-std=c99", *STRICT, *includes, *model.defines(), *sources, SUPPORT / "export_runner.c"]
    call(*command, "-o", out / "run")
    return out / "run"


def _with_make(model: Exported, form: str, out: Path) -> Path:
    root = model.folder / "exports" / form
    call("make", f"CC={CC}", f"CFLAGS={' '.join(STRICT)}", f"BUILD={out}", "-j2", cwd=root)
    library, include = out / f"lib{model.name}.a", f"-I{root / 'include'}"
    call(CC, "-std=c99", *STRICT, include, *model.defines(), SUPPORT / "export_runner.c", library, "-o", out / "run")
    return out / "run"


def _with_cmake(model: Exported, form: str, out: Path) -> Path:
    """The folder in a project of CMake; ESP-IDF's and Zephyr's own functions are stood in for."""
    target = f"arenite::{model.name}" if form == "cmake" else "component"
    defines = " ".join(word.removeprefix("-D").replace('"', '\\"') for word in model.defines())
    lines = ["cmake_minimum_required(VERSION 3.13)", "project(consumer C)"]
    lines += [f'include("{SUPPORT}/export_stubs/esp_idf.cmake")', f"set(CONFIG_{model.name.upper()} y)"]
    lines += [f'add_subdirectory("{model.folder}/exports/{form}" part)']
    lines += [f'add_executable(run "{SUPPORT}/export_runner.c")', f"target_link_libraries(run PRIVATE {target})"]
    lines += [f"target_compile_definitions(run PRIVATE {defines})"]
    (out / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    call("cmake", "-S", out, "-B", out / "b", f"-DCMAKE_C_FLAGS={' '.join(STRICT)}", f"-DCMAKE_C_COMPILER={CC}")
    call("cmake", "--build", out / "b", "-j2")
    return out / "b" / "run"


CONSUMERS: dict[str, Callable[[Exported, str, Path], Path]] = {
    "cmake": _with_cmake,
    "make": _with_make,
    "single-file": _with_gcc,
    "arduino": _with_gcc,
    "platformio": _with_gcc,
    "esp-idf": _with_cmake,
    "zephyr": _with_cmake,
}


@pytest.mark.parametrize("form", EXPORTS)
@pytest.mark.parametrize("which", ["colours", "rows", "stream"])
def test_a_component_gives_the_authority_s_bytes(
    which: str, form: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for tool in ("cmake", "make"):
        if tool in CONSUMERS[form].__name__ and shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    model: Exported = request.getfixturevalue(which)
    inputs, expected = model.vectors
    done = call(CONSUMERS[form](model, form, tmp_path), stdin=inputs)
    assert done.stdout == expected
    _check_helpers(model, expected, done.stderr.decode().splitlines())


def _check_helpers(model: Exported, outputs: bytes, lines: list[str]) -> None:
    entry = json.loads((model.folder / "manifest.json").read_text())["models"][0]
    io, out = entry["inputs"][0], entry["outputs"][0]
    stored = np.frombuffer(outputs, out["dtype"]).reshape(len(lines), -1)
    limits = np.iinfo(io["dtype"])
    half = int(np.clip(np.round(0.5 / np.float32(io["scale"]) + io["zero_point"]), limits.min, limits.max))
    for row, line in zip(stored, lines, strict=True):
        best, value, label, quantised, lowest = line.split()
        assert int(best) == int(row.argmax())
        assert np.float32(value) == np.float32(out["scale"]) * np.float32(int(row.max()) - out["zero_point"])
        assert label == (model.labels[int(best)] if model.labels else "-")
        assert (int(quantised), int(lowest)) == (half, limits.min)


def test_kernels_of_this_computer_are_one_file_too(tmp_path: Path) -> None:
    """They include by condition, and name many things alike."""
    path = tmp_path / "net.tflite"
    path.write_bytes(network(6.0))
    bundle(path, "host", tmp_path / "b", exports=["single-file"], vectors=0)
    inputs = [np.random.default_rng(seed).integers(-128, 128, (1, SIDE, SIDE, 3)).astype(np.int8) for seed in range(3)]
    model = Exported("net", tmp_path / "b", False, _expected(path, inputs), ())
    assert call(_with_gcc(model, "single-file", tmp_path), stdin=model.vectors[0]).stdout == model.vectors[1]


@pytest.mark.parametrize("board", ["qemu-mps3-an547", "qemu-mps2-an386"])
def test_all_kernels_of_a_core_are_one_file(board: str, tmp_path: Path) -> None:
    """Whatever one of them names as another does, or another's header, is kept apart."""
    compiler = shutil.which("arm-none-eabi-gcc")
    if compiler is None:
        pytest.skip("arm-none-eabi-gcc is not installed")
    core = load_board(board)
    unfit = {
        f"arenite_{file}.c"
        for variant in (variant for variants in VARIANTS.values() for variant in variants)
        if variant.architecture not in (None, core.architecture)
        or (variant.feature and not getattr(core.features, variant.feature))
        for file in variant.files
    }
    files = {path.name: path.read_text() for path in KERNELS.glob("*.[ch]") if path.name not in unfit}
    del files["arenite_strips_s8.c"]  # what it calls is generated for each model
    (tmp_path / "all.h").touch()
    (tmp_path / "all.c").write_text(amalgamated("all.c", {**files, "all.c": "", "all.h": ""}))
    options = [f"-mcpu={core.cpu}", "-mthumb", *(["-mfloat-abi=hard"] if core.features.mve else [])]
    sources = ("-c", tmp_path / "all.c", "-o", tmp_path / "all.o")
    call(compiler, *options, "-std=c99", *STRICT, "-O1", f"-I{tmp_path}", *sources)


def test_a_cmake_package_is_found_once_installed(colours: Exported, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("cmake is not installed")
    root = colours.folder / "exports" / "cmake"
    call("cmake", "-S", root, "-B", tmp_path / "b", f"-DCMAKE_INSTALL_PREFIX={tmp_path / 'to'}")
    call("cmake", "--build", tmp_path / "b", "-j2", "--target", "install")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(consumer C)\nfind_package(colours_v2 CONFIG REQUIRED)\n"
        f'add_library(user STATIC "{root}/example/example.c")\n'
        "target_link_libraries(user PRIVATE arenite::colours_v2)\n"
    )
    call("cmake", "-S", tmp_path, "-B", tmp_path / "u", f"-DCMAKE_PREFIX_PATH={tmp_path / 'to'}")
    call("cmake", "--build", tmp_path / "u")


@pytest.mark.parametrize("which", ["colours", "rows"])
def test_the_sketch_of_an_arduino_library_runs_in_cpp(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    model: Exported = request.getfixturevalue(which)
    root = model.folder / "exports" / "arduino"
    sketch = root / "examples" / f"{model.name}_basic" / f"{model.name}_basic.ino"
    main = tmp_path / "main.cpp"
    main.write_text(f'#include <Arduino.h>\n#include "{sketch}"\nint main() {{ setup(); loop(); }}\n')
    objects = []
    for source in sorted((root / "src").glob("*.c")):
        objects.append(tmp_path / f"{source.stem}.o")
        call(CC, "-std=c99", *STRICT, "-c", source, "-o", objects[-1])
    stubs = f"-I{SUPPORT / 'export_stubs'}"
    call(CXX, "-std=c++17", *STRICT, stubs, f"-I{root / 'src'}", main, *objects, "-o", tmp_path / "run")
    best, value = call(tmp_path / "run").stdout.decode().split()
    assert int(best) >= 0
    assert np.isfinite(float(value))


def test_a_camera_s_frame_becomes_what_the_session_makes_of_it(colours: Exported, tmp_path: Path) -> None:
    """The single file, on a frame of 16x12 pixels in RGB565."""
    frame = np.random.default_rng(3).integers(0, 256, 16 * 12 * 2, dtype=np.uint8).tobytes()
    (tmp_path / "main.c").write_text(
        '#include "colours_v2.h"\n#include <stdio.h>\n'
        "int main(void) {\n    static uint8_t frame[16 * 12 * 2];\n"
        "    if (fread(frame, 1, sizeof frame, stdin) != sizeof frame) return 1;\n"
        "    colours_v2_init();\n    colours_v2_camera_frame(frame, 32);\n"
        "    fwrite(colours_v2_input(0), 1, COLOURS_V2_INPUT_0_BYTES, stdout);\n    return 0;\n}\n"
    )
    root = colours.folder / "exports" / "single-file"
    call(CC, "-std=c99", *STRICT, f"-I{root}", root / "colours_v2.c", tmp_path / "main.c", "-o", tmp_path / "run")
    made = call(tmp_path / "run", stdin=frame).stdout
    contract = read_contract(next(colours.folder.parent.glob("*.tflite")))
    assert contract is not None
    assert made == Preprocessor(contract.input)(Frame(np.frombuffer(frame, np.uint8), 16, 12, "RGB565")).tobytes()


# Compiler and machine for each board. The Xtensa one is an ESP8266's: another ABI than the ESP32's.
_RISCV = "riscv64-unknown-elf-gcc"
CHIPS = {
    "esp32": ("xtensa-lx106-elf-gcc",),
    "esp32s3": ("xtensa-lx106-elf-gcc",),
    "esp32c3": (_RISCV, "-march=rv32imc", "-mabi=ilp32"),
    "esp32c6": (_RISCV, "-march=rv32imac", "-mabi=ilp32"),
    "esp32p4": (_RISCV, "-march=rv32imafc", "-mabi=ilp32f"),
    "rpi-pico": ("arm-none-eabi-gcc", "-mcpu=cortex-m0plus"),
}


@pytest.mark.parametrize("board", CHIPS)
def test_the_component_compiles_for_chips(colours: Exported, board: str, tmp_path: Path) -> None:
    _compile_component(next(colours.folder.parent.glob("*.tflite")), board, tmp_path)


@pytest.mark.reference
@pytest.mark.slow
@pytest.mark.parametrize("board", [board for board in CHIPS if board.startswith("esp32")])
@pytest.mark.parametrize(
    "name", ["mlperf_tiny/kws_ref_model.tflite", "mobilenet_v2/tf2_mobilenet_v2_1.0_224_ptq.tflite"]
)
def test_trained_models_compile_for_the_esp32_family(
    shared_data: Path, name: str, board: str, tmp_path: Path
) -> None:
    """MobileNetV2 with its input row by row, as the smallest of the chips takes it."""
    _compile_component(shared_data / name, board, tmp_path, row_fed=name.startswith("mobilenet"))


def _compile_component(model: Path, board: str, folder: Path, row_fed: bool = False) -> None:
    if shutil.which(CHIPS[board][0]) is None:
        pytest.skip(f"{CHIPS[board][0]} is not installed")
    bundle(model, board, folder / "b", exports=["esp-idf"], row_fed=row_fed, vectors=0)
    root = folder / "b" / "exports" / "esp-idf"
    freestanding = SUPPORT.parents[1] / "firmware_templates/arenite_firmware/app/freestanding"
    flags = ["-O2", "-std=c99", "-ffreestanding", *STRICT, "-isystem", freestanding]
    includes = [f"-I{root / 'include'}", f"-I{root / 'src'}"]
    for source in sorted((root / "src").glob("*.c")):
        call(*CHIPS[board], *flags, *includes, "-c", source, "-o", folder / "x.o")


# Manifests, by the tools that read them


def test_platformio_accepts_the_manifests(colours: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("platformio", reason="platformio is not installed")
    from platformio.package.manifest.parser import ManifestParserFactory
    from platformio.package.manifest.schema import ManifestSchema

    # It would fetch the list of licences from the network.
    known = {"licenses": [{"licenseId": "Apache-2.0"}]}
    monkeypatch.setattr(ManifestSchema, "load_spdx_licenses", staticmethod(lambda: known))
    for form, file in (("platformio", "library.json"), ("arduino", "library.properties")):
        path = colours.folder / "exports" / form / file
        data = ManifestSchema().load_manifest(ManifestParserFactory.new_from_file(str(path)).as_dict())
        assert (data["name"], data["version"]) == ("colours_v2", "0.1.0")


def test_the_idf_component_manager_accepts_the_manifest(colours: Exported) -> None:
    tools = pytest.importorskip("idf_component_tools.manager", reason="idf-component-manager is not installed")
    os.environ.setdefault("IDF_COMPONENT_CHECK_NEW_VERSION", "0")
    manifest = tools.ManifestManager(str(colours.folder / "exports" / "esp-idf"), "colours_v2").load()
    assert str(manifest.version) == "0.1.0"
    assert manifest.license == "Apache-2.0"


def test_a_zephyr_module_names_files_that_exist(colours: Exported) -> None:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    root = colours.folder / "exports" / "zephyr"
    module = yaml.safe_load((root / "zephyr" / "module.yml").read_text())
    assert module["name"] == "colours_v2"
    assert (root / module["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (root / module["build"]["kconfig"]).is_file()
    for sample in module["samples"]:
        assert list((root / sample).rglob("sample.yaml"))


def test_west_accepts_the_workspace(colours: Exported) -> None:
    manifest = pytest.importorskip("west.manifest", reason="west is not installed")
    text = (colours.folder / "exports" / "zephyr" / "west.yml").read_text()
    read = manifest.validate(text)["manifest"]
    assert read["self"]["path"] == "colours_v2"
    assert [project["name"] for project in read["projects"]] == ["zephyr"]


@pytest.mark.parametrize(
    ("form", "root", "option"),
    [
        ("esp-idf", "config SPIRAM_ALLOW_BSS_SEG_EXTERNAL_MEMORY\n    def_bool y\n", "COLOURS_V2_ARENA_IN_PSRAM"),
        ("zephyr", "dt_chosen_enabled = $(if-dtcm,$(1))\nif-dtcm = y\n", "COLOURS_V2_RAM_IN_DTCM"),
    ],
)
def test_kconfig_s_own_library_reads_the_options(
    colours: Exported, tmp_path: Path, form: str, root: str, option: str
) -> None:
    kconfiglib = pytest.importorskip("kconfiglib", reason="kconfiglib is not installed")
    path = tmp_path / "Kconfig"
    path.write_text(f'{root}source "{colours.folder}/exports/{form}/Kconfig"\n')
    read = kconfiglib.Kconfig(str(path), warn_to_stderr=False)
    assert not read.warnings
    if form == "zephyr":
        read.syms["COLOURS_V2"].set_value("y")
    assert read.syms[option].visibility, "its menu never shows it"
    assert read.syms[option].str_value == "n"


@pytest.mark.parametrize(
    ("board", "defines", "section"),
    [
        ("esp32c3", ["-DESP_PLATFORM"], ".bss"),
        ("esp32s3", ["-DESP_PLATFORM", "-DCONFIG_COLOURS_ARENA_IN_PSRAM=1"], ".ext_ram.bss"),
        ("rpi-pico", ["-DCONFIG_COLOURS_RAM_IN_DTCM=1"], ".dtcm_bss"),
    ],
)
def test_the_arena_lies_where_the_configuration_says(
    tmp_path: Path, board: str, defines: list[str], section: str
) -> None:
    (tmp_path / "colours.tflite").write_bytes(colour_model(8))
    bundle(tmp_path / "colours.tflite", board, tmp_path / "b", exports=["make"], vectors=0)
    root = tmp_path / "b" / "exports" / "make"
    includes = [f"-I{folder}" for folder in (root / "include", root / "src", SUPPORT / "export_stubs")]
    call(CC, "-std=c99", *STRICT, *defines, *includes, "-c", root / "src" / "colours.c", "-o", tmp_path / "x.o")
    symbols = call("objdump", "-t", tmp_path / "x.o").stdout.decode().splitlines()
    (arena,) = (line.split() for line in symbols if line.split()[-1:] and line.split()[-1].startswith("arena_"))
    assert section in arena


# What is refused


def test_what_a_component_does_not_hold_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    path.write_bytes(colour_model(4))
    for wrong, message in (
        ({"exports": ["keil"]}, "there is no export 'keil'. Choose among cmake, make,"),
        ({"exports": ["make"], "caller_inputs": True}, "a component gives the model all its memory"),
        ({"exports": ["make"], "guards": True}, "a validation build is no component"),
    ):
        with pytest.raises(UsageError, match=message.replace(".", r"\.")):
            bundle(path, "host", tmp_path / "b", **wrong)  # type: ignore[arg-type]
    other = tmp_path / "n.tflite"
    other.write_bytes(colour_model(5))
    with pytest.raises(UsageError, match="a component holds one model"):
        bundle([path, other], "host", tmp_path / "b", exports=["make"])


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("kws_ref-model (1)", "kws_ref_model_1"),
        ("2fast", "model_2fast"),
        ("arenite_x", "model_arenite_x"),
        ("ü", "model"),
    ],
)
def test_a_component_s_name_is_an_identifier(stem: str, name: str) -> None:
    assert component_name(stem).rstrip("_") == name
