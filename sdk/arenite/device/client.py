# SPDX-License-Identifier: Apache-2.0
"""A board at the other end of a serial link, and the models on it.

with open_device("/dev/ttyACM0") as device:
    device.load(0, picture)
    print(device.run().counter, device.read_output(0))
"""

from __future__ import annotations

import contextlib
import struct
import time
from dataclasses import dataclass
from types import TracebackType

from arenite.device import protocol
from arenite.device.messages import (
    About,
    Heartbeat,
    ResetCause,
    RowPiece,
    read_about,
    read_heartbeat,
    read_reset_cause,
    read_row_piece,
)
from arenite.device.protocol import Frame, FrameReader, Identification, TensorInfo
from arenite.device.streams import SerialStream, Stream
from arenite.errors import LinkError, MemoryDamageError, UsageError

__all__ = ["Device", "Identity", "RunResult", "open_device"]

_REPLY_S = 9.0
_AGAIN_S = 3.0  # a request that was not answered is sent again, then after twice that time, and so on
_MOST_IN_VAIN = 5
_KNOCK_S = 0.25
_PARAMETERS = ("marker", "sleep")


@dataclass(frozen=True)
class Identity:
    """What a board says of itself and of the selected model.

    Attributes:
        arena_bytes: The arena that all its models share.
        counter_unit: `none`, `cycles`, `instructions` or `ticks` of `counter_hz`.
        models: How many models the board holds.
        model: Which of them is selected; the following are its own.
        model_sha256: Digest of its `.tflite` file, hexadecimal.
    """

    protocol_version: int
    board: str
    arena_bytes: int
    counter_unit: str
    counter_hz: int
    models: int
    model: int
    model_sha256: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]


@dataclass(frozen=True)
class RunResult:
    """One inference: the counter's advance in `unit`; `stack_peak_bytes` is 0 where the board cannot tell."""

    counter: int
    unit: str
    stack_peak_bytes: int


def open_device(port: str | Stream, *, timeout_s: float = 10.0, baud: int = 115200) -> Device:
    """Opens the link to a board and waits until it answers.

    Args:
        port: A pyserial URL, `usb:VID:PID` or `usb:VID:PID:SERIAL` in hexadecimal, or a stream.
        baud: Rate of a serial port.
        timeout_s: How long the board may take to start.

    Raises:
        MissingToolError: pyserial is not installed.
        LinkError: The port cannot be opened, or no board answers.
    """
    stream = SerialStream(port, baud) if isinstance(port, str) else port
    try:
        return Device(stream, timeout_s=timeout_s)
    except BaseException:
        stream.close()
        raise


class Device:
    """A board that answers on `stream`; `identity` is what it said on opening."""

    def __init__(self, stream: Stream, *, timeout_s: float = 10.0) -> None:
        self.name = stream.name
        self._stream = stream
        self._reader = FrameReader()
        self._sequence = 0
        self._max_payload = protocol.MAX_PAYLOAD
        self._rows: list[RowPiece] = []
        identification = self._shake_hands(timeout_s)
        self._max_payload = identification.max_payload
        self.identity = self._describe(identification)

    def __enter__(self) -> Device:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the link."""
        self._stream.close()

    def identify(self) -> Identity:
        """Asks the board again who it is."""
        payload = self.request(protocol.IDENTIFY, b"")
        self.identity = self._describe(protocol.read_identification(payload, self.name))
        return self.identity

    def select(self, index: int) -> Identity:
        """Turns to another model of the board; returns what the board then says of it.

        The models share one arena: inputs must be loaded again, outputs are gone.

        Raises:
            UsageError: No such model.
            LinkError: The board does not answer.
        """
        if not 0 <= index < self.identity.models:
            raise UsageError(f"the board has no model {index}: it has {self.identity.models}")
        self.request(protocol.SELECT, bytes([index]))
        return self.identify()

    def restart(self) -> None:
        """Bring the selected model back to its start, if it remembers; inputs must be loaded again.

        Raises:
            LinkError: The board does not answer.
        """
        self.request(protocol.SELECT, bytes([self.identity.model]))

    def load(self, index: int, data: bytes | bytearray | memoryview, *, chunk_bytes: int | None = None) -> None:
        """Writes an input, front to back. Every input must be loaded again before every run.

        A row-fed model computes what each row allows while it is loaded.

        Args:
            index: Which input.
            data: All its bytes.
            chunk_bytes: Bytes a frame; None takes the most that the board can receive.

        Raises:
            UsageError: No such input, or `data` is not exactly its size.
            LinkError: The board refuses or does not answer.
        """
        tensor = _pick(self.identity.inputs, index, "input")
        view = memoryview(data).cast("B")
        if len(view) != tensor.bytes:
            raise UsageError(f"input {index} ({tensor.name}) takes {tensor.bytes} bytes, not {len(view)}")
        if chunk_bytes is not None and chunk_bytes < 1:
            raise UsageError(f"a chunk has at least 1 byte, not {chunk_bytes}")
        step = min(self._max_payload - 5, chunk_bytes or self._max_payload)
        for at in range(0, len(view), step):
            self.request(protocol.LOAD, struct.pack("<BI", index, at) + view[at : at + step])

    def run(self, *, count: int = 1, timeout_s: float = 60.0) -> RunResult:
        """Runs the model on what was loaded.

        Args:
            count: How often, without a pause. Runs after the first read what it left of its inputs: they take as long,
                and no outputs can be read.
            timeout_s: For all of them.

        Raises:
            MemoryDamageError: The firmware watches its arena, and a guard word was damaged.
            LinkError: An input is missing, `count` is not 1 and the model is row-fed, or no answer comes in time.
        """
        self._rows.clear()
        payload = self.request(protocol.RUN, b"" if count == 1 else struct.pack("<I", count), timeout_s=timeout_s)
        if len(payload) < 13:
            raise LinkError("the board's reply to `run` is malformed", where=self.name)
        _, counter, stack = struct.unpack_from("<BQI", payload)
        return RunResult(counter, self.identity.counter_unit, stack)

    def read_output(self, index: int) -> bytes:
        """The bytes of an output of the last run.

        Raises:
            UsageError: No such output.
            LinkError: Nothing was run since the last load, or the board does not answer.
        """
        tensor = _pick(self.identity.outputs, index, "output")
        step = self._max_payload - 1
        parts = []
        for at in range(0, tensor.bytes, step):
            count = min(step, tensor.bytes - at)
            part = self.request(protocol.READ, struct.pack("<BIH", index, at, count))
            if len(part) != count:
                raise LinkError(f"the board sent {len(part)} of {count} bytes of an output", where=self.name)
            parts.append(part)
        return b"".join(parts)

    def about(self) -> About:
        """Firmware and chip.

        Raises:
            LinkError: The board does not answer.
        """
        return read_about(self.request(protocol.ABOUT, b""), self.name)

    def heartbeat(self) -> Heartbeat:
        """How the board fares.

        Raises:
            LinkError: The board does not answer.
        """
        return read_heartbeat(self.request(protocol.HEARTBEAT, b""), self.name)

    def reset_cause(self) -> ResetCause:
        """Why the board started last.

        Raises:
            LinkError: The board does not answer.
        """
        return read_reset_cause(self.request(protocol.RESET_CAUSE, b""), self.name)

    def parameter(self, name: str, value: int | None = None) -> int:
        """Reads a parameter, after setting it if there is a `value`; the board forgets it when it restarts.

        Args:
            name: `marker` (the marker pin follows inferences) or `sleep` (the core sleeps between requests); 1 at
                first.

        Raises:
            UsageError: No such parameter.
            LinkError: The board does not answer.
        """
        if name not in _PARAMETERS:
            raise UsageError(f"a board has no parameter {name!r}", cure=f"There are {' and '.join(_PARAMETERS)}")
        index = bytes([_PARAMETERS.index(name)])
        reply = self.request(protocol.PARAMETER, index if value is None else index + struct.pack("<I", value))
        return int.from_bytes(reply[:4], "little")

    def reboot(self, *, into_update: bool = False, timeout_s: float = 10.0) -> Identity:
        """Restarts the board and waits until it answers; returns what it then says.

        Args:
            into_update: Start the image that was just sent. It is on trial, and another restart would end that; so the
                board restarts once, also when it is asked again because its reply was lost.
            timeout_s: For the restart.

        Raises:
            LinkError: It does not answer within `timeout_s`.
        """
        if into_update:
            with contextlib.suppress(LinkError):  # a lost reply: whether it has restarted shows afterwards
                self.request(protocol.UPDATE, bytes([protocol.UPDATE_RESTART]))
        else:
            self.request(protocol.REBOOT, b"")
        self._stream.reopen(timeout_s)
        self.identity = self._describe(self._shake_hands(timeout_s))
        return self.identity

    def take_rows(self) -> list[RowPiece]:
        """What a traced run sent of its watched rows, since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def _describe(self, found: Identification) -> Identity:
        return Identity(
            protocol_version=found.protocol_version,
            board=found.board,
            arena_bytes=found.arena_bytes,
            counter_unit=found.counter_unit,
            counter_hz=found.counter_hz,
            models=found.models,
            model=found.model,
            model_sha256=found.model_sha256,
            inputs=tuple(self._tensor(0, i) for i in range(found.input_count)),
            outputs=tuple(self._tensor(1, i) for i in range(found.output_count)),
        )

    def _tensor(self, kind: int, index: int) -> TensorInfo:
        payload = self.request(protocol.DESCRIBE, bytes([kind, index]))
        return protocol.read_tensor_info(payload, self.name)

    def _shake_hands(self, timeout_s: float) -> Identification:
        """Knocks until the board answers: it may be in reset, or in the middle of someone else's frame."""
        deadline = time.monotonic() + timeout_s
        while True:
            reply = self._ask(protocol.IDENTIFY, b"", min(deadline, time.monotonic() + _KNOCK_S), hurry=True)
            if reply is not None:
                payload = self._checked(protocol.IDENTIFY, reply)
                return protocol.read_identification(payload, self.name)
            if time.monotonic() >= deadline:
                raise self._silence("the board does not answer", timeout_s)

    def _silence(self, problem: str, timeout_s: float) -> LinkError:
        heard = self._reader.received_bytes
        if heard:
            cure = "Check the baud rate and that the firmware on the board is one of `arenite build`"
            problem += f" within {timeout_s:g} s: {heard} bytes came and no frame that answers"
        else:
            cure = "Check the port's name, the cable and that the firmware is flashed; then reset the board"
            problem += f" within {timeout_s:g} s: not one byte came"
        return LinkError(problem, where=self.name, cure=cure)

    def request(self, command: int, payload: bytes, *, timeout_s: float = _REPLY_S) -> bytes:
        """Sends until answered, under one sequence number: a run whose answer was lost is not run twice.

        Args:
            command: A command of `arenite.device.protocol`.
            payload: What it takes.
            timeout_s: For all attempts together.

        Returns:
            The reply's payload after its status.

        Raises:
            LinkError: No answer comes within `timeout_s`, or the board refuses.
            MemoryDamageError: A run damaged a guard word.
        """
        self._sequence = self._sequence % 255 + 1
        start = time.monotonic()
        deadline, wait_s, attempts, in_vain = start + timeout_s, _AGAIN_S, 0, 0
        while attempts == 0 or (time.monotonic() < deadline and in_vain < _MOST_IN_VAIN):
            asked = time.monotonic()
            reply = self._ask(command, payload, min(deadline, asked + wait_s))
            if reply is not None:
                return self._checked(command, reply)
            # A stream that knows that nothing can come says so at once.
            in_vain += time.monotonic() - asked < wait_s / 2
            wait_s *= 2
            attempts += 1
        raise self._silence(f"no answer to `{protocol.NAMES[command]}` after {attempts} attempts", timeout_s)

    def _ask(self, command: int, payload: bytes, deadline: float, hurry: bool = False) -> Frame | None:
        self._stream.write(protocol.encode_frame(Frame(command, self._sequence, payload)))
        while (left_s := deadline - time.monotonic()) > 0:
            data = self._stream.read(left_s)
            if not data:
                return None
            for frame in self._reader.feed(data):
                if frame.command == command | protocol.REPLY and frame.sequence == self._sequence:
                    return frame
                if frame.command == protocol.ROW:
                    self._rows.append(read_row_piece(frame.payload, self.name))
                elif frame.command == protocol.BANNER:
                    if hurry:
                        return None
                    raise self._restarted(command)
        return None

    def _restarted(self, command: int) -> LinkError:
        problem = f"the board restarted during `{protocol.NAMES[command]}`"
        cure = "Check its supply and watchdog, and open the link again"
        reply = self._ask(protocol.RESET_CAUSE, b"", time.monotonic() + _AGAIN_S, hurry=True)
        if reply is not None and reply.payload[:1] == b"\0":
            found = read_reset_cause(reply.payload[1:], self.name)
            if found.fault is not None:
                problem += f": {found.cause}, {found.fault}"
                cure = "Look at that address in the firmware's ELF file: arm-none-eabi-addr2line -e build/firmware.elf"
        return LinkError(problem, where=self.name, cure=cure)

    def _checked(self, command: int, reply: Frame) -> bytes:
        status = reply.payload[0] if reply.payload else None
        if status == 0:
            return reply.payload[1:]
        if status == protocol.DAMAGED:
            raise self._damage(reply.payload[1:])
        text = protocol.STATUS_TEXT.get(status, "unknown") if status is not None else "an empty reply"
        raise LinkError(
            f"the board refused `{protocol.NAMES[command]}`: {text} (status {status})",
            where=self.name,
            cure="Load every input before each run, and read outputs before the next load",
        )

    def _damage(self, payload: bytes) -> MemoryDamageError:
        guard, layer, step = protocol.read_damage(payload, self.name)
        return MemoryDamageError(
            f"{protocol.STATUS_TEXT[protocol.DAMAGED]}: guard {guard} is damaged after step {step}, by layer {layer}",
            guard=guard,
            layer=layer,
            step=step,
            where=self.name,
            cure="Let `arenite verify` name the operator",
        )


def _pick(tensors: tuple[TensorInfo, ...], index: int, kind: str) -> TensorInfo:
    if not 0 <= index < len(tensors):
        raise UsageError(f"the model has no {kind} {index}: it has {len(tensors)}")
    return tensors[index]
