# SPDX-License-Identifier: Apache-2.0
"""What is installed for each job, which meters are here, and the cure for what is not."""

from __future__ import annotations

import platform
import shutil
import subprocess
from dataclasses import dataclass, replace

from arenite.machine import installed_version
from arenite.meters import FoundMeter, found_meters

__all__ = ["DoctorReport", "Tool", "examine"]

_TIMEOUT_S = 10


@dataclass(frozen=True)
class Tool:
    """One package or program.

    Attributes:
        name: Package or program.
        job: What it is for.
        kind: `package` or `program`.
        version: None when it is not installed.
        needed: False for what only adds speed or a second opinion, or has an alternative that is here.
        cure: How to install it.
    """

    name: str
    job: str
    kind: str
    version: str | None
    needed: bool
    cure: str


@dataclass(frozen=True)
class DoctorReport:
    """All tools, and which jobs can be done here.

    Attributes:
        jobs: Job and whether everything that it needs is here.
        healthy: All jobs can be done.
        meters: Energy meters of this machine and kits at its ports; none is needed.
    """

    arenite: str
    python: str
    system: str
    tools: tuple[Tool, ...]
    jobs: dict[str, bool]
    healthy: bool
    meters: tuple[FoundMeter, ...]


# Package, job, extra of the distribution, needed.
_PACKAGES = (
    ("ai-edge-litert", "session", "litert", True),
    ("tflite-runtime", "session", "tflite-runtime", False),
    ("onnxruntime", "session", "onnx", False),
    ("mlcommons-loadgen", "session", "loadgen", False),
    ("tensorflow", "convert", "convert", True),
    ("tf_keras", "convert", "convert", True),
    ("tflite-micro", "golden vectors", "firmware", True),
    ("jinja2", "bundle", "firmware", True),
    ("ziglang", "build", "firmware", True),
    ("unicorn", "emulate", "firmware", True),
    ("pyserial", "serial port", "firmware", True),
)
# Program, job, version option, Debian package.
_PROGRAMS = (
    ("arm-none-eabi-gcc", "build", "-dumpfullversion", "gcc-arm-none-eabi"),
    ("riscv64-unknown-elf-gcc", "build", "-dumpfullversion", "gcc-riscv64-unknown-elf"),
    ("cmake", "build", "--version", "cmake"),
    ("qemu-system-arm", "emulate", "--version", "qemu-system-arm"),
    ("qemu-system-riscv32", "emulate", "--version", "qemu-system-misc"),
)

# Any one of these does the job.
_ALTERNATIVES = {
    "session": ("ai-edge-litert", "tflite-runtime"),
    "build": ("ziglang", "arm-none-eabi-gcc", "riscv64-unknown-elf-gcc"),
    "emulate": ("unicorn", "qemu-system-arm", "qemu-system-riscv32"),
}


def examine() -> DoctorReport:
    """Look at this machine. Nothing is changed; each energy sensor is read once."""
    found = (*(_package(*row) for row in _PACKAGES), *(_program(*row) for row in _PROGRAMS))
    tools = tuple(_with_alternatives(tool, found) for tool in found)
    jobs = {job: _can(job, tools) for job in dict.fromkeys(tool.job for tool in tools)}
    return DoctorReport(
        arenite=installed_version("arenite") or "not installed as a package",
        python=platform.python_version(),
        system=f"{platform.system()} {platform.machine()}",
        tools=tools,
        jobs=jobs,
        healthy=all(jobs.values()),
        meters=found_meters(),
    )


def _can(job: str, tools: tuple[Tool, ...]) -> bool:
    mine = [tool for tool in tools if tool.job == job]
    return all(tool.version for tool in mine if tool.needed)


def _with_alternatives(tool: Tool, tools: tuple[Tool, ...]) -> Tool:
    names = _ALTERNATIVES.get(tool.job, ())
    replaced = tool.name in names and any(other.version for other in tools if other.name in names)
    return replace(tool, needed=False) if replaced else tool


def _package(name: str, job: str, extra: str, needed: bool) -> Tool:
    # TensorFlow also comes as a package without GPU support.
    found = installed_version(name) or (installed_version("tensorflow-cpu") if name == "tensorflow" else None)
    return Tool(name, job, "package", found, needed, f"pip install 'arenite[{extra}]'")


def _program(name: str, job: str, option: str, package: str) -> Tool:
    return Tool(name, job, "program", _program_version(name, option), False, f"apt-get install {package}")


def _program_version(name: str, option: str) -> str | None:
    path = shutil.which(name)
    if path is None:
        return None
    try:
        ran = subprocess.run(
            [path, option], capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    first = (ran.stdout.strip().splitlines() or [""])[0]
    # "QEMU emulator version 7.2.15 (Debian ...)": the first word that starts with a digit.
    words = [word for word in first.replace("(", " ").split() if word[:1].isdigit()]
    return words[0] if ran.returncode == 0 and words else None
