# SPDX-License-Identifier: Apache-2.0
"""How deep a firmware's stack can get at most: the longest path through its calls, weighted by stack frames.

The compiler states each function's frame (GCC: `.su` files, clang: sections `.stack_sizes`). Who calls whom is in
the object files' relocations, since every function has a section of its own. A call through a pointer may reach
every function whose address is taken anywhere. Nothing in a firmware recurses; if something did, there would be no
bound and the answer is None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from arenite_codegen.elf import ALLOC, EXECUTE, ElfFile, Relocation, Section, read_elf

__all__ = ["stack_bound_bytes"]

_LIBRARY_FRAME = 128  # of a compiler's support function (division, float arithmetic), whose frame is not stated
_EM_RISCV = 243
_FUNCTION = 2
_UNDEFINED, _FIRST_RESERVED = 0, 0xFF00
_CALLS = {
    40: (10, 30, 51, 102),  # R_ARM_THM_CALL, _JUMP24, _JUMP19, _JUMP11
    _EM_RISCV: (16, 17, 18, 19, 44, 45),  # R_RISCV_BRANCH, _JAL, _CALL, _CALL_PLT, _RVC_BRANCH, _RVC_JUMP
}

_Node = tuple[int, int]  # object, section


@dataclass
class _Graph:
    frames: dict[_Node, int] = field(default_factory=dict)
    edges: dict[_Node, set[_Node]] = field(default_factory=dict)
    library_calls: set[_Node] = field(default_factory=set)
    indirect: set[_Node] = field(default_factory=set)
    targets: set[_Node] = field(default_factory=set)


def stack_bound_bytes(objects: Sequence[Path], entry: str) -> int | None:
    """The most stack that a firmware can use, in bytes.

    Args:
        objects: Its object files, made with `-ffunction-sections` and a statement of stack frames.
        entry: The function that starts it.

    Returns:
        The bound, or None when there is none (a cycle of calls) or the entry is not found.
    """
    files = [read_elf(path) for path in objects]
    places = _global_functions(files)
    if entry not in places:
        return None
    graph = _Graph()
    for number, (path, file) in enumerate(zip(objects, files, strict=True)):
        _add_frames(graph, number, path, file)
        _add_calls(graph, number, file, places)
    for node in graph.indirect:
        graph.edges.setdefault(node, set()).update(graph.targets)
    try:
        return _deepest(graph, places[entry], {}, set())
    except _CycleError:
        return None


class _CycleError(Exception):
    """The calls form a cycle."""


def _deepest(graph: _Graph, node: _Node, known: dict[_Node, int], open_nodes: set[_Node]) -> int:
    if node in known:
        return known[node]
    if node in open_nodes:
        raise _CycleError
    open_nodes.add(node)
    below = [_deepest(graph, callee, known, open_nodes) for callee in graph.edges.get(node, ())]
    open_nodes.remove(node)
    if node in graph.library_calls:
        below.append(_LIBRARY_FRAME)
    known[node] = graph.frames.get(node, 0) + max(below, default=0)
    return known[node]


def _global_functions(files: Sequence[ElfFile]) -> dict[str, _Node]:
    return {
        symbol.name: (number, symbol.section)
        for number, file in enumerate(files)
        for symbol in file.symbols
        if symbol.kind == _FUNCTION and _UNDEFINED < symbol.section < _FIRST_RESERVED
    }


def _add_frames(graph: _Graph, number: int, path: Path, file: ElfFile) -> None:
    stated = _su_frames(path.with_suffix(".su"))
    for symbol in file.symbols:
        if symbol.kind == _FUNCTION and symbol.section < _FIRST_RESERVED:
            frame = stated.get(symbol.name.split(".")[0], 0)
            _raise_frame(graph, (number, symbol.section), frame)
    for section in file.sections:
        if section.name == ".stack_sizes":
            _raise_frame(graph, (number, section.link), max(_stack_sizes(section), default=0))


def _raise_frame(graph: _Graph, node: _Node, frame: int) -> None:
    graph.frames[node] = max(graph.frames.get(node, 0), frame)


def _su_frames(path: Path) -> dict[str, int]:
    """Frames by function; of a function's clones the largest."""
    frames: dict[str, int] = {}
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            place, size, _ = line.split("\t")
            name = place.rsplit(":", 1)[1].split(".")[0]
            frames[name] = max(frames.get(name, 0), int(size))
    return frames


def _stack_sizes(section: Section) -> Iterator[int]:
    """The sizes in a section of entries (32-bit address, ULEB128 size)."""
    at = 4
    while at < len(section.data):
        size = shift = 0
        while True:
            byte = section.data[at]
            size |= (byte & 0x7F) << shift
            shift, at = shift + 7, at + 1
            if byte < 0x80:
                break
        yield size
        at += 4


def _add_calls(graph: _Graph, number: int, file: ElfFile, places: dict[str, _Node]) -> None:
    direct: dict[int, set[int]] = {}
    for relocation in file.relocations():
        source = file.sections[relocation.section]
        if not source.flags & ALLOC or _calls_nothing(source):
            continue
        is_call = relocation.kind in _CALLS.get(file.machine, ())
        if is_call:
            direct.setdefault(source.index, set()).add(relocation.offset)
        _add_reference(graph, (number, source.index), file, relocation, is_call, places)
    for section in file.sections:
        if section.flags & EXECUTE and _calls_through_pointer(file.machine, section, direct.get(section.index, set())):
            graph.indirect.add((number, section.index))


def _calls_nothing(section: Section) -> bool:
    """Tables that name functions which nothing calls: unwinding, and what resets, faults and boot ROMs enter."""
    is_vectors = section.name in (".vectors", ".image_def") and not section.flags & EXECUTE
    return is_vectors or section.name.startswith((".ARM.ex", ".eh_frame"))


def _add_reference(
    graph: _Graph, source: _Node, file: ElfFile, relocation: Relocation, is_call: bool, places: dict[str, _Node]
) -> None:
    symbol = file.symbols[relocation.symbol]
    if _UNDEFINED < symbol.section < _FIRST_RESERVED:
        target: _Node | None = (source[0], symbol.section)
        is_code = bool(file.sections[symbol.section].flags & EXECUTE)
    else:
        target = places.get(symbol.name)
        is_code = target is not None
    if is_call and target is None:
        graph.library_calls.add(source)
    elif is_call and target is not None and target != source:
        graph.edges.setdefault(source, set()).add(target)
    elif not is_call and is_code and target is not None and not symbol.name.startswith(".L"):
        graph.targets.add(target)  # a label .L is a place inside a function, as in the table of a switch


def _calls_through_pointer(machine: int, section: Section, direct: set[int]) -> bool:
    """Whether the code may hold a call or jump to an address in a register, returns aside."""
    data, at, previous = section.data, 0, -1
    is_riscv = machine == _EM_RISCV
    while at + 2 <= len(data):
        half = int.from_bytes(data[at : at + 2], "little")
        if is_riscv:
            wide = half & 3 == 3
            word = int.from_bytes(data[at : at + 4], "little")
            found = _riscv_indirect(word) and previous not in direct if wide else _riscv_indirect_short(half)
        else:
            wide = half >> 11 >= 0x1D
            found = not wide and (half & 0xFF87 == 0x4780 or (half & 0xFF87 == 0x4700 and half >> 3 & 15 != 14))
        if found:
            return True
        previous, at = at, at + (4 if wide else 2)
    return False


def _riscv_indirect(word: int) -> bool:
    is_jalr = word & 0x707F == 0x67
    is_return = word >> 7 & 31 == 0 and word >> 15 & 31 == 1
    return is_jalr and not is_return


def _riscv_indirect_short(half: int) -> bool:
    is_jump = half & 0xF07F in (0x8002, 0x9002)  # c.jr, c.jalr
    register, is_call = half >> 7 & 31, half & 0x1000 != 0
    return is_jump and register != 0 and (is_call or register != 1)
