# SPDX-License-Identifier: Apache-2.0
"""Boards of real hardware: every constant against a source that is not ours, since no such board is here to object.

`modm-devices` holds ST's, Nordic's and Raspberry Pi's device data, `pyocd` memory maps and the vendors' SVD files,
`esptool` the address map of each ESP32; `support/device_tree_facts.toml` is what Zephyr's device trees say.
"""

from __future__ import annotations

import io
import re
import sys
import warnings
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from arenite_codegen.board_hardware import FAMILIES
from arenite_codegen.board_model import Board, MemoryRegion
from arenite_codegen.boards import list_boards, load_board

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FACTS = tomllib.loads((Path(__file__).parents[1] / "support" / "device_tree_facts.toml").read_text("utf-8"))
STM32 = [
    "nucleo-f446re",
    "nucleo-f767zi",
    "nucleo-h743zi2",
    "nucleo-u385rg-q",
    "nucleo-u575zi-q",
    "stm32f746g-disco",
    "stm32h747i-disco",
]
NRF = ["arduino-nano-33-ble-sense", "microbit-v2", "nrf52840dk"]
RP2 = ["rpi-pico", "rpi-pico2", "rpi-pico2-riscv"]
ESP = ["esp32", "esp32c3", "esp32c6", "esp32p4", "esp32s3"]
REAL = sorted([*STM32, *NRF, *RP2, *ESP, "teensy41"])
_MODM_FILES = {
    "nucleo-f446re": "stm32/stm32f4-46.xml",
    "nucleo-f767zi": "stm32/stm32f7-67_68_77_78.xml",
    "nucleo-h743zi2": "stm32/stm32h7-42_43_50_53.xml",
    "nucleo-u385rg-q": "stm32/stm32u3-75_85.xml",
    "nucleo-u575zi-q": "stm32/stm32u5-75_85.xml",
    "stm32f746g-disco": "stm32/stm32f7-45_46_50_56.xml",
    "stm32h747i-disco": "stm32/stm32h7-45_47_55_57.xml",
    "arduino-nano-33-ble-sense": "nrf/nrf52820_840.xml",
    "microbit-v2": "nrf/nrf52832_833.xml",
    "nrf52840dk": "nrf/nrf52820_840.xml",
    "rpi-pico": "rp/rp2040.xml",
    "rpi-pico2": "rp/rp2350.xml",
}
_FPUS = {"none": None, "single": ("fpv4-sp-d16", "fpv5-sp-d16"), "double": ("fpv5-d16",)}
# What a flash that is not inside the chip holds is not in the chip's data.
_OUTSIDE = 0x90000000


def test_every_board_that_is_not_emulated_is_checked_here() -> None:
    assert [name for name in list_boards() if load_board(name).proven != "emulated"] == REAL


@cache
def modm(name: str) -> Any:
    """The device of a board in modm-devices."""
    modm_devices = pytest.importorskip("modm_devices", reason="modm-devices is not installed")
    from modm_devices.parser import DeviceParser

    root = Path(modm_devices.__file__).parent / "resources" / "devices"
    wanted = load_board(name).hardware.chip.lower()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        devices = list(DeviceParser().parse(str(root / _MODM_FILES[name])).get_devices())
    cores = {"cortex-m7": "@m7"} if "h747" in wanted else {}
    found = [d for d in devices if d.partname.startswith(wanted[:6] if wanted.startswith("rp2") else wanted)]
    return next(d for d in found if cores.get(load_board(name).cpu, "") in d.partname)


def _covers(spans: list[tuple[int, int]], region: MemoryRegion) -> bool:
    """Whether spans, joined where they touch, hold a region."""
    at, end = region.origin, region.origin + region.length
    for low, high in sorted(spans):
        at = high if low <= at < high else at
    return at >= end


@pytest.mark.parametrize("name", STM32 + NRF)
def test_memories_are_those_of_the_chip(name: str) -> None:
    board = load_board(name)
    spans = [(int(m["start"], 0), int(m["start"], 0) + int(m["size"])) for m in modm(name).get_driver("core")["memory"]]
    if name == "stm32h747i-disco":  # modm gives domain D2's RAM to the other core; this one sees it too (RM0399, 2.3)
        spans.append((0x30000000, 0x30048000))
    for region in board.memory:
        if region.origin != _OUTSIDE:
            assert _covers(spans, region), f"{name}: {region} is not within {[tuple(map(hex, s)) for s in spans]}"
    wholes = {region.origin + region.length for region in board.memory if region.origin != _OUTSIDE}
    ends = {high for _, high in spans}
    assert wholes <= ends, f"{name}: regions end at {sorted(map(hex, wholes))}, the chip's at {sorted(map(hex, ends))}"


@pytest.mark.parametrize("name", [*STM32, *NRF, "rpi-pico", "rpi-pico2"])
def test_core_and_vectors_are_those_of_the_chip(name: str) -> None:
    board, core = load_board(name), modm(name).get_driver("core")
    assert core["type"] == board.cpu
    assert core.get("fpu") in (_FPUS[board.features.fpu] or (None,)), (core.get("fpu"), board.features.fpu)
    last = max(int(vector["position"]) for vector in core["vector"])
    assert board.hardware.interrupts == last + 1
    names = {int(vector["position"]): vector["name"] for vector in core["vector"]}
    assert board.uart.irq is not None
    assert "UART" in names[board.uart.irq] or "USART" in names[board.uart.irq]


@pytest.mark.parametrize("name", STM32)
def test_pins_carry_the_functions_they_are_given(name: str) -> None:
    board = load_board(name)
    uart = {0x40011000: "1", 0x40013800: "1", 0x40004400: "2", 0x40004800: "3"}[board.uart.base or 0]
    function = str((board.hardware.settings or {})["uart_function"])
    for pin, signal in ((board.uart.tx_pin, "tx"), (board.uart.rx_pin, "rx")):
        assert pin is not None
        assert ("usart", uart, signal, function) in set(_functions(name, pin))
    for pin, af in board.hardware.qspi_pins:
        found = {f for driver, _, _, f in _functions(name, pin) if driver.startswith("quadspi")}
        assert str(af) in found, f"{name}: pin {pin} has QUADSPI as {found}, not {af}"


def _functions(name: str, number: int) -> Iterator[tuple[str, str, str, str]]:
    port, pin = chr(ord("a") + number // 16), str(number % 16)
    for gpio in modm(name).get_driver("gpio")["gpio"]:
        if (gpio["port"], gpio["pin"]) == (port, pin):
            for signal in gpio.get("signal", []):
                yield signal["driver"], signal.get("instance", ""), signal["name"], signal.get("af", "")


@pytest.mark.parametrize("name", STM32)
def test_clock_and_wait_states_are_within_the_chip(name: str) -> None:
    board = load_board(name)
    assert board.clock_hz <= int(modm(name).get_driver("rcc")["max-frequency"][0])
    flash_hz = board.clock_hz // 2 if board.hardware.family == "stm32-h7" else board.clock_hz
    tables = modm(name).get_driver("flash")["latency"]
    mv = 1150 if board.hardware.family == "stm32-h7" else max(int(table["vcore-min"]) for table in tables)
    table = next(table for table in tables if int(table["vcore-min"]) == mv)
    least = next(int(row["ws"]) for row in table["wait-state"] if int(row["hclk-max"]) >= flash_hz)
    given = (board.hardware.settings or {}).get("flash_access", 0) & 0xF
    assert least <= given, f"{name}: {given} wait states at {flash_hz} Hz, the chip needs {least}"


@pytest.mark.parametrize("name", sorted(FACTS))
def test_a_board_agrees_with_the_device_tree(name: str) -> None:
    board, facts = load_board(name), dict(FACTS[name])
    settings = dict(board.hardware.settings or {})
    ours = {
        "uart_base": board.uart.base,
        "uart_irq": board.uart.irq,
        "tx_pin": board.uart.tx_pin,
        "rx_pin": board.uart.rx_pin,
        "ram_bytes": board.ram_bytes,
        "clock_hz": board.clock_hz,
        "qspi_pins": [pin for pin, _ in board.hardware.qspi_pins],
        "qspi_bytes": sum(region.length for region in board.memory if region.origin == _OUTSIDE),
        **settings,
        **_addresses_in_c(board),
    }
    source = facts.pop("source")
    for key, fact in facts.items():
        value = [_pin(pin) for pin in fact] if key == "qspi_pins" else _pin(fact) if key.endswith("_pin") else fact
        assert ours[key] == value, f"{name}: {key} is {ours[key]} in the board's files and {value} in {source}"


@pytest.mark.parametrize("name", STM32)
def test_the_marker_is_the_pin_that_was_made_an_output(name: str) -> None:
    board = load_board(name)
    assert board.marker is not None
    number = (board.hardware.settings or {})["marker_pin"]
    register = _addresses_in_c(board)["gpio"] + 0x400 * (number // 16) + 0x18  # BSRR: low half sets, high half resets
    assert board.marker.on == ((register, 1 << number % 16),)
    assert board.marker.off == ((register, 1 << number % 16 + 16),)


def _pin(name: str) -> int:
    return 16 * (ord(name[0]) - ord("A")) + int(name[1:])


def _addresses_in_c(board: Board) -> dict[str, int]:
    """Constants of the family's C file."""
    from arenite_codegen.board_support import firmware_folder

    names = {"RCC": "rcc", "FLASH": "flash_controller", "GPIO": "gpio"}
    lines = (firmware_folder("startup") / FAMILIES[board.hardware.family].source).read_text("utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("#define ")]
    return {names[w[1]]: int(w[2].rstrip("u"), 0) for w in words if w[1] in names}


@cache
def svd(name: str) -> dict[str, tuple[int, set[int], dict[str, ElementTree.Element]]]:
    """Peripherals of an SVD file in pyOCD: base, interrupts, registers by name."""
    pyocd = pytest.importorskip("pyocd", reason="pyocd is not installed")
    archive = Path(pyocd.__file__).parent / "debug" / "svd" / "svd_data.zip"
    with zipfile.ZipFile(archive) as files:
        root = ElementTree.parse(io.BytesIO(files.read(name))).getroot()
    nodes = {node.findtext("name", ""): node for node in root.iter("peripheral")}
    return {key: _peripheral(node, nodes) for key, node in nodes.items()}


def _peripheral(
    node: ElementTree.Element, nodes: dict[str, ElementTree.Element]
) -> tuple[int, set[int], dict[str, ElementTree.Element]]:
    parent = nodes.get(node.get("derivedFrom", ""))
    registers = [*(parent.iter("register") if parent is not None else ()), *node.iter("register")]
    irqs = {int(i.findtext("value", "0"), 0) for i in node.iter("interrupt")}
    return int(node.findtext("baseAddress", "0"), 0), irqs, {r.findtext("name", ""): r for r in registers}


def _offset(register: ElementTree.Element) -> int:
    return int(register.findtext("addressOffset", "0"), 0)


def test_both_kinds_of_core_of_an_rp2350_see_the_same_chip() -> None:
    arm, riscv = load_board("rpi-pico2"), load_board("rpi-pico2-riscv")
    assert arm.memory == riscv.memory
    assert arm.hardware.settings == riscv.hardware.settings
    assert (arm.marker, arm.clock_hz, arm.hardware.chip) == (riscv.marker, riscv.clock_hz, riscv.hardware.chip)
    assert (arm.uart.base, arm.uart.tx_pin, arm.uart.rx_pin) == (riscv.uart.base, riscv.uart.tx_pin, riscv.uart.rx_pin)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("nrf52840dk", "nrf52840.svd"),
        ("arduino-nano-33-ble-sense", "nrf52840.svd"),
        ("microbit-v2", "nrf52833.svd"),
    ],
)
def test_nordic_registers_are_those_of_the_svd(name: str, file: str) -> None:
    board, chip = load_board(name), svd(file)
    base, irqs, registers = chip["UART0"]
    assert (base, {board.uart.irq}) == (board.uart.base, irqs)
    offsets = {"TASKS_STARTRX": 0x000, "EVENTS_RXDRDY": 0x108, "EVENTS_TXDRDY": 0x11C, "INTENSET": 0x304}
    offsets |= {"ENABLE": 0x500, "RXD": 0x518, "TXD": 0x51C, "BAUDRATE": 0x524, "CONFIG": 0x56C}
    assert {key: _offset(registers[key]) for key in offsets} == offsets
    port, bit = {"nrf52840dk": ("P1", 3), "microbit-v2": ("P0", 2), "arduino-nano-33-ble-sense": ("P1", 11)}[name]
    pins = {key: chip[port][0] + _offset(chip[port][2][key]) for key in ("DIRSET", "OUTSET", "OUTCLR")}
    assert board.marker is not None and board.unique_id is not None
    assert (*board.marker.setup, *board.marker.on, *board.marker.off) == tuple((at, 1 << bit) for at in pins.values())
    number = next(r for key, r in chip["FICR"][2].items() if key.startswith("DEVICEID"))
    assert board.unique_id.base == chip["FICR"][0] + _offset(number)
    assert (chip["CLOCK"][0], _offset(chip["CLOCK"][2]["EVENTS_HFCLKSTARTED"])) == (0x40000000, 0x100)
    assert (chip["NVMC"][0], _offset(chip["NVMC"][2]["ICACHECNF"])) == (0x4001E000, 0x540)


def test_teensy_registers_are_those_of_the_svd() -> None:
    board, chip = load_board("teensy41"), svd("MIMXRT1062.xml")
    settings = dict(board.hardware.settings or {})
    assert board.marker is not None
    port = {key: chip["GPIO4"][0] + _offset(chip["GPIO4"][2][key]) for key in ("GDIR", "DR_SET", "DR_CLEAR")}
    mux_of_marker = chip["IOMUXC"][0] + _offset(chip["IOMUXC"][2]["SW_MUX_CTL_PAD_GPIO_EMC_04"])
    assert board.marker.setup == ((mux_of_marker, 5), (port["GDIR"], 1 << 4))
    assert (board.marker.on, board.marker.off) == (((port["DR_SET"], 16),), ((port["DR_CLEAR"], 16),))
    base, irqs, registers = chip["LPUART6"]
    assert (base, irqs) == (board.uart.base, {board.uart.irq})
    assert {n: _offset(registers[n]) for n in ("BAUD", "STAT", "CTRL", "DATA")} == {
        "BAUD": 0x10,
        "STAT": 0x14,
        "CTRL": 0x18,
        "DATA": 0x1C,
    }
    mux_base, _, mux = chip["IOMUXC"]
    for setting, register in (
        ("uart_tx_mux", "SW_MUX_CTL_PAD_GPIO_AD_B0_02"),
        ("uart_rx_mux", "SW_MUX_CTL_PAD_GPIO_AD_B0_03"),
        ("uart_rx_select", "LPUART6_RX_SELECT_INPUT"),
    ):
        assert settings[setting] == mux_base + _offset(mux[register])
    text = ElementTree.tostring(mux["SW_MUX_CTL_PAD_GPIO_AD_B0_03"], "unicode")
    assert f"ALT{settings['uart_function']} mux port: LPUART6_RX" in text
    gates = chip["CCM"][2][f"CCGR{settings['uart_gate']}"]
    assert (chip["CCM"][0] + _offset(gates)) == 0x400FC068 + 4 * settings["uart_gate"]
    assert board.hardware.interrupts == 1 + max(irq for _, all_irqs, _ in chip.values() for irq in all_irqs)


def test_stm32f4_registers_are_those_of_the_svd() -> None:
    board, chip = load_board("nucleo-f446re"), svd("STM32F429x.svd")
    base, _, registers = chip["USART2"]
    assert base == board.uart.base
    assert {n: _offset(registers[n]) for n in ("SR", "DR", "BRR", "CR1")} == {"SR": 0, "DR": 4, "BRR": 8, "CR1": 12}
    assert _addresses_in_c(board) == {
        "rcc": chip["RCC"][0],
        "flash_controller": chip["FLASH"][0],
        "gpio": chip["GPIOA"][0],
    }
    enable = chip["RCC"][2]["APB1ENR"]
    bits = {f.findtext("name"): int(f.findtext("bitOffset", "0")) for f in enable.iter("field")}
    settings = board.hardware.settings or {}
    assert (settings["uart_enable"], settings["uart_enable_bit"]) == (_offset(enable), bits["USART2EN"])


def _numbers_of_driver(name: str) -> dict[str, int]:
    """Constants of a flash driver in C."""
    from arenite_codegen.board_flash import DRIVERS
    from arenite_codegen.board_support import firmware_folder

    text = "".join((firmware_folder("update") / file).read_text("utf-8") for file in DRIVERS[name])
    found = re.findall(r"#define (\w+) \(?([0-9][0-9xXa-fA-F]*)u?(?: << ([0-9]+)\))?(?:\s|$)", text)
    numbers = {key: int(value, 0) << int(shift or "0") for key, value, shift in found}
    return numbers | {key: int(value, 0) for key, value in re.findall(r"(\w+) = (0x[0-9a-fA-F]+|\d+)[,\s}]", text)}


def _mask(register: ElementTree.Element, *names: str) -> int:
    """Bits of fields of a register."""
    bits = {f.findtext("name", ""): f for f in register.iter("field")}
    width = {name: int(bits[name].findtext("bitWidth", "1")) for name in names}
    return sum(((1 << width[name]) - 1) << int(bits[name].findtext("bitOffset", "0")) for name in names)


def test_the_flash_driver_of_stm32f4_has_the_registers_of_the_svd() -> None:
    ours, (base, _, registers) = _numbers_of_driver("stm32-f4-f7"), svd("STM32F429x.svd")["FLASH"]
    assert ours["FLASH"] == base
    for key in ("ACR", "KEYR", "SR", "CR"):
        assert ours[key] == _offset(registers[key])
    status, control, access = registers["SR"], registers["CR"], registers["ACR"]
    assert ours["BUSY"] == _mask(status, "BSY")
    assert ours["ERRORS"] == _mask(status, "OPERR", "WRPERR", "PGAERR", "PGPERR", "PGSERR")
    assert (ours["PROGRAM"], ours["ERASE_SECTOR"]) == (_mask(control, "PG"), _mask(control, "SER"))
    assert (ours["START"], ours["LOCK"]) == (_mask(control, "STRT"), _mask(control, "LOCK"))
    assert 31 << ours["SECTOR_SHIFT"] == _mask(control, "SNB")
    assert ours["WORDS"] == _mask(control, "PSIZE") // 3 * 2  # 0 bytes, 1 half-words, 2 words
    assert ours["CACHES_ON"] == _mask(access, "ICEN", "DCEN")
    assert ours["CACHES_ON"] << ours["RESET_ABOVE_ON_SHIFT"] == _mask(access, "ICRST", "DCRST")


def test_the_flash_driver_of_stm32_with_pages_has_the_registers_of_the_svd() -> None:
    ours, (base, _, registers) = _numbers_of_driver("stm32-pages"), svd("STM32L4x2.svd")["FLASH"]
    assert ours["FLASH"] == base
    for key in ("ACR", "KEYR", "SR", "CR"):
        assert ours[key] == _offset(registers[key])
    status, control, access = registers["SR"], registers["CR"], registers["ACR"]
    assert ours["BUSY"] & ~(1 << 18) == _mask(status, "BSY")  # bit 18 is a G0's, which has no SVD here
    errors = ("OPERR", "PROGERR", "WRPERR", "PGAERR", "SIZERR", "PGSERR", "MISERR", "FASTERR")
    assert ours["ERRORS"] == _mask(status, *errors)
    assert (ours["PROGRAM"], ours["ERASE_PAGE"]) == (_mask(control, "PG"), _mask(control, "PER"))
    assert (ours["START"], ours["LOCK"]) == (_mask(control, "START"), _mask(control, "LOCK"))
    assert 255 << ours["PAGE_SHIFT"] == _mask(control, "PNB")
    assert ours["CACHES_ON"] << ours["RESET_ABOVE_ON_SHIFT"] == _mask(access, "ICRST", "DCRST")


RESET_CAUSES = {
    **dict.fromkeys(("nucleo-f446re", "stm32f746g-disco", "nucleo-f767zi"), ("STM32F429x.svd", "RCC", "CSR")),
    **dict.fromkeys(("nrf52840dk", "arduino-nano-33-ble-sense"), ("nrf52840.svd", "POWER", "RESETREAS")),
    "microbit-v2": ("nrf52833.svd", "POWER", "RESETREAS"),
    "teensy41": ("MIMXRT1062.xml", "SRC", "SRSR"),
}


@pytest.mark.parametrize("name", [name for name in REAL if load_board(name).reset_cause is not None])
def test_the_chip_s_reset_cause_is_that_of_the_svd(name: str) -> None:
    file, peripheral, register = RESET_CAUSES[name]
    base, _, registers = svd(file)[peripheral]
    cause = load_board(name).reset_cause
    assert cause is not None
    assert cause.register == base + _offset(registers[register])
    bits = {f.findtext("name", ""): f for f in registers[register].iter("field")}
    place = {key: int(f.findtext("bitOffset") or f.findtext("lsb") or "", 0) for key, f in bits.items()}
    of_watchdogs = {"CSR": ("WDGRSTF", "WWDGRSTF"), "RESETREAS": ("DOG",), "SRSR": ("wdog_rst_b", "wdog3_rst_b")}
    assert cause.watchdog_bits == sum(1 << place[key] for key in of_watchdogs[register])
    cleared = 1 << place["RMVF"] if register == "CSR" else cause.watchdog_bits  # the others by writing ones
    assert cause.clear == ((cause.register, cleared),)


@pytest.mark.parametrize("file", ["nrf51.svd", "nrf52833.svd", "nrf52840.svd"])
def test_the_flash_driver_of_nordic_has_the_registers_of_the_svd(file: str) -> None:
    ours, (base, _, registers) = _numbers_of_driver("nrf"), svd(file)["NVMC"]
    assert ours["NVMC"] == base
    offsets = [_offset(registers[key]) for key in ("READY", "CONFIG", "ERASEPAGE")]
    assert [ours[key] for key in ("READY", "CONFIG", "ERASE_PAGE")] == offsets
    values = {v.findtext("name"): int(v.findtext("value", ""), 0) for v in registers["CONFIG"].iter("enumeratedValue")}
    assert [ours[key] for key in ("READ_ONLY", "WRITE_ENABLED", "ERASE_ENABLED")] == [
        values["Ren"],
        values["Wen"],
        values["Een"],
    ]


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("nrf52840dk", "nrf52840"),
        ("microbit-v2", "nrf52833"),
        ("teensy41", "mimxrt1060"),
        ("rpi-pico", "rp2040"),
        ("nucleo-f767zi", "stm32f767zi"),
    ],
)
def test_memories_are_those_that_pyocd_knows(name: str, target: str) -> None:
    pytest.importorskip("pyocd", reason="pyocd is not installed")
    from pyocd.target import TARGET

    known = {key.lower(): value for key, value in TARGET.items()}
    chip = known[next(key for key in sorted(known) if key.startswith(target))]
    regions = chip.memoryMap if name == "teensy41" else chip.MEMORY_MAP
    spans = [(region.start, region.end + 1) for region in regions]
    if name == "teensy41":  # pyOCD counts all of FlexRAM as TCM; as the fuses come, half of it is OCRAM behind OCRAM2
        spans.append((0x20280000, 0x202C0000))
    for region in load_board(name).memory:
        assert _covers(spans, region), f"{name}: {region} is not within {[tuple(map(hex, s)) for s in spans]}"


@pytest.mark.parametrize("name", ESP)
def test_esp32_memories_are_in_the_address_map_of_esptool(name: str) -> None:
    targets = pytest.importorskip("esptool.targets", reason="esptool is not installed")
    board = load_board(name)
    chip = targets.CHIP_DEFS[name]
    assert board.hardware.chip == chip.CHIP_NAME
    # All that an ESP32-P4 reaches through its cache, flash and PSRAM, is one span there.
    kinds = {"flash": ("DROM", "IROM"), "dram": ("DRAM", "BYTE_ACCESSIBLE"), "psram": ("EXTRAM_DATA", "DROM")}
    for region in board.memory:
        spans = [(low, high) for low, high, what in chip.MEMORY_MAP if what in kinds[region.name]]
        assert _covers(spans, region), f"{name}: {region} is not within {[tuple(map(hex, s)) for s in spans]}"
    sizes = {int(size.removesuffix("MB")) << 20 for size in chip.FLASH_SIZES if size.endswith("MB")}
    assert board.flash_bytes + (512 << 10) in sizes
