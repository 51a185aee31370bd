# SPDX-License-Identifier: Apache-2.0
"""Rules that hold over the whole tree: who imports whom, what importing costs, what files must say."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {
    "arenite": ROOT / "sdk" / "arenite",
    "arenite_converters": ROOT / "converters" / "arenite_converters",
    "arenite_codegen": ROOT / "codegen" / "arenite_codegen",
    "arenite_firmware": ROOT / "firmware_templates" / "arenite_firmware",
}
# Who may import whom, anywhere in a module.
ALLOWED = {
    "arenite": {"arenite"},
    "arenite_converters": {"arenite", "arenite_converters"},
    "arenite_codegen": {"arenite", "arenite_codegen", "arenite_firmware"},
    "arenite_firmware": {"arenite_firmware"},
}
# The thin functions and the command line look the other way, inside functions only.
OUTWARD = {"__init__.py", "cli.py", "_commands", "_text"}
# Frameworks, compilers, emulators and engines: imported by the function that needs them.
HEAVY = {
    "ai_edge_litert",
    "coremltools",
    "h5py",
    "jinja2",
    "keras",
    "mlperf_loadgen",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "pyjoulescope_driver",
    "pynvml",
    "serial",
    "tensorflow",
    "tf_keras",
    "tflite_micro",
    "tflite_runtime",
    "torch",
    "unicorn",
    "ziglang",
}
SKIPPED = {".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis"}
SPDX = "SPDX-License-" + "Identifier"
SPDX_SUFFIXES = {".py", ".c", ".h", ".S", ".ld", ".toml", ".j2", ".cmake", ".mk"}
TEXT_SUFFIXES = SPDX_SUFFIXES | {".md", ".json", ".txt", ".yml", ".yaml", ".cfg", ""}
MODULES = [(package, path) for package, folder in PACKAGES.items() for path in sorted(folder.rglob("*.py"))]


def module_name(package: str, path: Path) -> str:
    parts = path.relative_to(PACKAGES[package]).with_suffix("").parts
    return ".".join((package, *(part for part in parts if part != "__init__")))


def modules(package: str | None = None) -> list[pytest.param]:
    return [pytest.param(p, path, id=module_name(p, path)) for p, path in MODULES if package in (None, p)]


def imports(tree: ast.AST, only_at_import: bool) -> Iterator[str]:
    """Top-level names that a module imports; with `only_at_import` not those inside functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]
        elif only_at_import and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or _type_checking(node)
        ):
            continue
        else:
            yield from imports(node, only_at_import)


def _type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def repository_files() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if path.is_file() and not SKIPPED & set(parts) and parts[0] not in {"build", "dist"}:
            yield path


@pytest.mark.parametrize(("package", "path"), modules())
def test_packages_import_in_one_direction(package: str, path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    ours = {name for name in imports(tree, only_at_import=False) if name in PACKAGES}
    if package == "arenite" and path.relative_to(PACKAGES["arenite"]).parts[0] in OUTWARD:
        ours = {name for name in imports(tree, only_at_import=True) if name in PACKAGES}
    assert ours <= ALLOWED[package], f"{path.name} imports {sorted(ours - ALLOWED[package])}"


@pytest.mark.parametrize(("package", "path"), modules())
def test_heavy_packages_are_imported_inside_functions(package: str, path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not HEAVY & set(imports(tree, only_at_import=True))


@pytest.mark.parametrize(("package", "path"), modules())
def test_all_is_sorted_and_importable(package: str, path: Path) -> None:
    if path.name == "__main__.py":
        return
    module = importlib.import_module(module_name(package, path))
    names = getattr(module, "__all__", [])
    assert list(names) == sorted(names)
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_public_package_declares_all() -> None:
    import arenite

    assert {"bundle", "convert", "open"} <= set(arenite.__all__)


def test_import_is_light() -> None:
    """An app on a small computer must not pay for frameworks it does not have."""
    code = "import arenite, json, sys; print(json.dumps(sorted({n.split('.')[0] for n in sys.modules})))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert not loaded & HEAVY
    assert not loaded & {"arenite_codegen", "arenite_converters", "arenite_firmware"}


def test_one_licence_line_a_file() -> None:
    wrong = []
    for path in repository_files():
        if path.suffix in SPDX_SUFFIXES or path.name in {"Makefile", "CMakeLists.txt"}:
            head = path.read_text(encoding="utf-8", errors="replace").splitlines()[:4]
            if sum(f"{SPDX}: Apache-2.0" in line for line in head) != 1:
                wrong.append(str(path.relative_to(ROOT)))
    assert wrong == []


def test_no_path_of_a_machine() -> None:
    folders = "|".join(["work", "root", "home", "Users", "tmp"])
    pattern = re.compile(rf"(?<![\w.$}}>\-*])/(?:{folders})/\w")
    wrong = []
    for path in repository_files():
        if path.suffix in TEXT_SUFFIXES and path.name != "LICENSE":
            text = path.read_text(encoding="utf-8", errors="replace")
            wrong += [f"{path.relative_to(ROOT)}: {found[0]}" for found in pattern.finditer(text)]
    assert wrong == []


def test_firmware_has_no_heap() -> None:
    pattern = re.compile(r"\b(malloc|calloc|realloc|free|alloca|strdup)\s*\(")
    sources = [p for p in PACKAGES["arenite_firmware"].rglob("*") if p.suffix in {".c", ".h", ".j2"}]
    assert [p.name for p in sources if pattern.search(p.read_text(encoding="utf-8"))] == []


def test_test_files_have_unique_names() -> None:
    names = [path.name for path in (ROOT / "device_tests").rglob("test_*.py")]
    assert sorted(set(names)) == sorted(names)
    assert not list((ROOT / "device_tests").rglob("__init__.py"))
