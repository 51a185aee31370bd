# SPDX-License-Identifier: Apache-2.0
"""What a board is: frozen values, as its `board.toml` says them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from arenite_codegen.board_flash import Flashing, UpdateSlots
from arenite_codegen.board_hardware import Hardware

__all__ = [
    "Board",
    "Counter",
    "Emulator",
    "Features",
    "Marker",
    "MemoryRegion",
    "Power",
    "Uart",
    "UniqueId",
    "Watchdog",
    "Writes",
]


@dataclass(frozen=True)
class Features:
    """Parts of the instruction set that a chip may lack.

    Attributes:
        fpu: Floating-point unit of a Cortex-M: `none`, `single` or `double`.
        dsp: Cortex-M has the DSP extension.
        mve: Cortex-M has the M-profile vector extension (Helium).
        extensions: Letters of the RISC-V extensions, for example `imc`.
    """

    fpu: str = "none"
    dsp: bool = False
    mve: bool = False
    extensions: str = ""


@dataclass(frozen=True)
class MemoryRegion:
    """One memory.

    Attributes:
        kind: `flash` or `ram`.
        origin: Its address.
        length: Bytes.
        word_cycles: Core cycles that reading 32 bits takes on average.
    """

    name: str
    kind: str
    origin: int
    length: int
    word_cycles: int = 1


@dataclass(frozen=True)
class Uart:
    """The serial port: its kind names the driver, `base` its address, `baud` its rate.

    With `irq`, the number of its receive interrupt (RISC-V: at the controller `plic_base`), the firmware
    sleeps between bytes instead of polling. `clock_hz` is the clock that the port divides, the core's where it is None;
    pins are numbers as the driver's registers take them.
    """

    kind: str
    base: int | None = None
    baud: int = 115200
    irq: int | None = None
    plic_base: int | None = None
    clock_hz: int | None = None
    tx_pin: int | None = None
    rx_pin: int | None = None


@dataclass(frozen=True)
class Counter:
    """What times a run; `unit` is `none`, `cycles`, `instructions` or `ticks` of `hz`.

    `clock_hz` is the clock that the timer divides, the core's where it is None.
    """

    kind: str
    unit: str
    hz: int
    base: int | None = None
    coarse_base: int | None = None
    clock_hz: int | None = None


Writes = tuple[tuple[int, int], ...]
"""Addresses of 32-bit registers, each with the value to write there, in order."""


@dataclass(frozen=True)
class ResetCause:
    """Where the chip says that its watchdog reset it.

    Attributes:
        register: Address.
        watchdog_bits: Any of these is set after such a reset.
        clear: Writes that clear them.
    """

    register: int
    watchdog_bits: int
    clear: Writes


@dataclass(frozen=True)
class Watchdog:
    """A watchdog: what starts it and what feeds it. A board that has one polls between requests, it does not sleep."""

    setup: Writes
    feed: Writes


@dataclass(frozen=True)
class Marker:
    """A pin that is high while an inference runs: what makes it an output, high and low."""

    setup: Writes
    on: Writes
    off: Writes


@dataclass(frozen=True)
class UniqueId:
    """Where the chip's own number is, and its `bytes`, a multiple of four."""

    base: int
    bytes: int


@dataclass(frozen=True)
class Power:
    """What the running chip draws: µW for each MHz of its clock, and where that figure comes from."""

    active_uw_per_mhz: float
    source: str

    def energy_mj(self, clock_hz: int, latency_ms: float) -> float:
        """Of a run at that clock: modelled, of the core and the memories in the chip alone."""
        return self.active_uw_per_mhz * clock_hz / 1e6 * latency_ms / 1e6


@dataclass(frozen=True)
class Emulator:
    """How one emulator runs the board. One instruction takes 2**`instruction_ns_log2` ns of emulated time."""

    name: str
    program: str | None = None
    arguments: tuple[str, ...] = ()
    cpu: str | None = None
    instruction_ns_log2: int = 0


@dataclass(frozen=True)
class Board:
    """A board, as its `board.toml` says. `directory` holds that file, which may have another name, `file`."""

    name: str
    description: str
    architecture: str
    cpu: str
    clock_hz: int
    stack_bytes: int
    features: Features
    memory: tuple[MemoryRegion, ...]
    uart: Uart
    counter: Counter
    emulators: tuple[Emulator, ...]
    directory: Path = field(compare=False)
    watchdog: Watchdog | None = None
    reset_cause: ResetCause | None = None
    marker: Marker | None = None
    unique_id: UniqueId | None = None
    power: Power | None = None
    hardware: Hardware = field(default_factory=Hardware)
    file: str = field(default="board.toml", compare=False)

    @property
    def own_c(self) -> tuple[Path, ...]:
        """C files of the board's own: those beside a file that is named `board.toml`."""
        return tuple(sorted(self.directory.glob("*.[ch]"))) if self.file == "board.toml" else ()

    @property
    def proven(self) -> str:
        """How far the board was proven: `emulated`, `emulated by NAME`, `built`, or `exported` to another project."""
        if self.architecture == "esp-idf":
            return "exported"
        if self.hardware.emulated_by:
            return f"emulated by {self.hardware.emulated_by}"
        return "emulated" if self.emulators or self.architecture == "host" else "built"
    flashing: Flashing | None = None
    update: UpdateSlots | None = None

    @property
    def has_fpu(self) -> bool:
        """The core has a floating-point unit that start-up must switch on."""
        return self.features.fpu != "none"

    @property
    def rams(self) -> tuple[MemoryRegion, ...]:
        """All RAM, in the file's order."""
        return tuple(region for region in self.memory if region.kind == "ram")

    @property
    def flashes(self) -> tuple[MemoryRegion, ...]:
        """All flash, in the file's order."""
        return tuple(region for region in self.memory if region.kind == "flash")

    @property
    def ram(self) -> MemoryRegion:
        """The region of stack and variables: the first of kind `ram`."""
        return self.rams[0]

    @property
    def flash(self) -> MemoryRegion:
        """The region of code: the first of kind `flash`."""
        return self.flashes[0]

    @property
    def ram_bytes(self) -> int:
        """RAM for stack, variables and arenas together, in bytes."""
        return sum(region.length for region in self.rams)

    @property
    def flash_bytes(self) -> int:
        """Flash for code and weights together, in bytes."""
        return sum(region.length for region in self.flashes)
