# SPDX-License-Identifier: Apache-2.0
"""A C compiler of this machine for validation builds: strict warnings, and the sanitisers that are here."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

__all__ = ["HostCompiler", "find_compiler"]

STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror")
_ADDRESS = (
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "-fno-omit-frame-pointer",
    "-g",
    "-O1",
)
_UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all", "-g", "-O1")
_PLAIN = ("-O1", "-g")


@dataclass(frozen=True)
class HostCompiler:
    """A compiler driver.

    Attributes:
        name: `gcc`, `clang` or `zig`.
        command: Program and leading arguments.
        flags: Optimisation and sanitisers, for compiling and linking.
        sanitisers: What checks the run: `address,undefined`, `undefined` or `none`.
        farewell: What ends a program that does not see the end of its input.
    """

    name: str
    command: tuple[str, ...]
    flags: tuple[str, ...]
    sanitisers: str
    farewell: bytes = b""

    def compile(
        self, sources: Sequence[Path], includes: Sequence[Path], out: Path, *options: str
    ) -> list[Path]:
        """Compiles sources to objects in `out`, two at a time.

        Raises:
            RuntimeError: The compiler refused one; its messages are in the text.
        """
        out.mkdir(parents=True, exist_ok=True)
        paths = [f"-I{folder}" for folder in includes]

        def one(source: Path) -> Path:
            target = out / f"{source.parent.name}_{source.name}.o"
            _call(
                [*self.command, *STRICT, *self.flags, *options, *paths, "-c", str(source), "-o", str(target)]
            )
            return target

        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, sources))

    def link(self, objects: Sequence[Path], program: Path) -> None:
        """Links a program."""
        _call([*self.command, *self.flags, *map(str, objects), "-lm", "-o", str(program)])

    def launch(self, program: Path, *arguments: str) -> list[str]:
        """The command that runs a program."""
        return [str(program), *arguments]


@lru_cache
def find_compiler(sanitise: bool, choice: str | None = None) -> HostCompiler | None:
    """The best compiler here: GCC or Clang with the address sanitiser, else zig with only the other.

    Args:
        sanitise: Check the run; without it any compiler does.
        choice: `gcc`, `clang` or `zig` instead of the best.
    """
    for name in (choice,) if choice else ("gcc", "clang", "zig"):
        command = _command(name)
        if command is None:
            continue
        kinds = {"address,undefined": _ADDRESS, "undefined": _UNDEFINED} if sanitise else {"none": _PLAIN}
        for sanitisers, flags in kinds.items():
            if _links(command, flags):
                return HostCompiler(name, command, flags, sanitisers)
    return None


def _command(name: str) -> tuple[str, ...] | None:
    if name == "zig":
        return (sys.executable, "-m", "ziglang", "cc") if importlib.util.find_spec("ziglang") else None
    path = shutil.which(name)
    return None if path is None else (path,)


def _links(command: tuple[str, ...], flags: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.c"
        source.write_text("int main(void) { return 0; }\n")
        program = str(Path(folder) / "probe")
        done = subprocess.run(
            [*command, *flags, str(source), "-o", program], capture_output=True, check=False
        )
        return (
            done.returncode == 0
            and subprocess.run([program], check=False, capture_output=True).returncode == 0
        )


def _call(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}\n{done.stderr[-6000:]}")
