# SPDX-License-Identifier: Apache-2.0
"""The C: no warning under any compiler here, no heap, no undefined behaviour, hostile names harmless, output stable."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from arenite.tflite_graph import parse_graph
from arenite_codegen import bundle
from arenite_codegen.emit import emit
from arenite_codegen.firmware import Shared, shared_files
from arenite_codegen.legalise import legalise
from arenite_codegen.plan import make_plan
from arenite_codegen.render import c_string
from arenite_codegen.schedule import make_schedule
from arenite_codegen.variants import VARIANTS
from support.emission import limits_header
from support.graphs import KINDS, random_graph

FIRMWARE = Path(str(resources.files("arenite_firmware")))
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-O2", "-c"]
COMPILERS = {"gcc": ["gcc"], "clang": ["clang"], "zig": [sys.executable, "-m", "ziglang", "cc"]}


def compiler(name: str) -> list[str]:
    if name != "zig" and shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return COMPILERS[name]


@pytest.mark.parametrize("guards", [False, True])
@pytest.mark.parametrize("name", COMPILERS)
def test_hand_written_c_has_no_warnings(name: str, guards: bool, tmp_path: Path) -> None:
    (tmp_path / "arenite_limits.h").write_text(limits_header(guards, max_pointers=9))
    parts = ("camera", "host", "kernels", "runtime")
    for source in sorted(path for part in parts for path in (FIRMWARE / part).glob("*.c")):
        includes = [f"-I{folder}" for folder in (FIRMWARE / "runtime", FIRMWARE / "kernels", tmp_path)]
        command = [*compiler(name), *STRICT, *includes, str(source)]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{source.name}:\n{result.stderr}"


@pytest.mark.parametrize("name", COMPILERS)
def test_generated_c_has_no_warnings(name: str, tmp_path: Path) -> None:
    seen: set[tuple[str, ...]] = set()
    for kind in KINDS:
        network = legalise(parse_graph(random_graph(kind, 11).model_bytes))
        kernels = tuple(layer.kernel for layer in network.layers)
        if kernels in seen:
            continue
        seen.add(kernels)
        schedule = make_schedule(network)
        plan = make_plan(network, schedule)
        emitted = emit(network, schedule, plan)
        for file, text in {**emitted.files, **shared_files([emitted], [plan], Shared.of([emitted], [plan]))}.items():
            (tmp_path / file).write_text(text)
        includes = [f"-I{FIRMWARE / 'runtime'}", f"-I{FIRMWARE / 'kernels'}", f"-I{tmp_path}"]
        for source in ("model.c", "weights.c", "arenite_models.c"):
            command = [*compiler(name), *STRICT, *includes, str(tmp_path / source)]
            result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert result.returncode == 0, f"{kind} {source}:\n{result.stderr}"


def test_a_cpp_program_links_the_model(tmp_path: Path) -> None:
    """Arduino and ESP-IDF applications are C++."""
    path = tmp_path / "model.tflite"
    path.write_bytes(random_graph("CONV_2D", 11).model_bytes)
    bundle(path, "host", tmp_path / "b", vectors=0)
    (tmp_path / "main.cpp").write_text(
        '#include "arenite_model.h"\n'
        "alignas(16) static uint8_t arena[ARENITE_MODEL_ARENA_BYTES];\n"
        "static uint8_t *const memory[] = {arena};\n"
        "int main() {\n"
        "    arenite_run(&arenite_model, memory);\n"
        "    return arenite_input(&arenite_model, memory, 0) == nullptr;\n"
        "}\n"
    )
    zig = [sys.executable, "-m", "ziglang"]
    includes = [f"-I{tmp_path / 'b' / part}" for part in ("runtime", "kernels", "model")]
    parts = [tmp_path / "b" / part for part in ("model", "kernels", "runtime")]
    sources = [tmp_path / "main.cpp", *(source for part in parts for source in part.glob("*.c"))]
    objects = [str(tmp_path / f"{source.name}.o") for source in sources]
    for source, target in zip(sources, objects, strict=True):
        language = "c++" if source.suffix == ".cpp" else "cc"
        subprocess.run([*zig, language, *includes, "-c", str(source), "-o", target], check=True)
    program = str(tmp_path / "program")
    subprocess.run([*zig, "cc", *objects, "-o", program], check=True)
    assert subprocess.run([program], check=False).returncode == 0


def test_no_heap_no_library_calls() -> None:
    allowed = {"float.h", "stdint.h", "stddef.h", "arm_mve.h", "arm_neon.h", "cpuid.h", "immintrin.h"}
    for source in sorted([*(FIRMWARE / "kernels").iterdir(), *(FIRMWARE / "runtime").iterdir()]):
        text = source.read_text(encoding="utf-8")
        assert set(re.findall(r"#include <(.+)>", text)) <= allowed, source.name
        assert not re.search(r"\b(malloc|calloc|realloc|free|alloca|printf)\s*\(", text), source.name


def test_every_kernel_has_a_header_that_states_its_contract() -> None:
    helpers = {f"arenite_{name}.c" for variants in VARIANTS.values() for v in variants for name in v.sources}
    for source in (FIRMWARE / "kernels").glob("*.c"):
        if source.name in helpers:
            continue
        header = source.with_suffix(".h").read_text(encoding="utf-8")
        assert "Authority:" in header, source.name
        assert f"void {source.stem}(const void *params" in header.replace("\n", " "), source.name


@pytest.mark.parametrize(
    "name", ['"; system("x"); "', "a\\", "??/", "line\nbreak", "*/ int x; /*", "%s%n", "\0nul", "ünï/../../etc"]
)
def test_a_tensor_name_is_only_ever_a_string(name: str, tmp_path: Path) -> None:
    literal = c_string(name)
    assert re.fullmatch(r'"(?:[ !#-\[\]-~]|\\[0-7]{3})*"', literal)
    assert "??" not in literal
    octal = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), literal[1:-1])
    assert octal.encode("latin-1") == name.encode("utf-8")


def test_the_same_model_gives_the_same_text() -> None:
    graph = parse_graph(random_graph("CONV_2D", 4).model_bytes)
    texts = []
    for _ in range(2):
        network = legalise(graph)
        schedule = make_schedule(network)
        texts.append(dict(emit(network, schedule, make_plan(network, schedule)).files))
    assert texts[0] == texts[1]
