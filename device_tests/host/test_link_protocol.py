# SPDX-License-Identifier: Apache-2.0
"""The serial link: the host's frames, and the firmware's C under sanitizers, on hostile bytes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arenite.device import open_device
from arenite.device.protocol import (
    ABOUT,
    BANNER,
    DESCRIBE,
    HEARTBEAT,
    IDENTIFY,
    LAYERS,
    LOAD,
    MAX_PAYLOAD,
    PARAMETER,
    READ,
    REBOOT,
    REPLY,
    RESET_CAUSE,
    ROW,
    RUN,
    SELECT,
    TRACE,
    Frame,
    FrameReader,
    decode_frame,
    encode_frame,
    read_identification,
    read_tensor_info,
)
from arenite.errors import LinkError, UsageError
from support.fake_bundle import A_BYTES, ARENA_BYTES, B_BYTES, MIRROR_SHA256, SHA256, expected_outputs, random_inputs
from support.link_harness import LinkHarness, build_harness

BYTES = st.integers(0, 255)
PAYLOADS = st.one_of(
    st.binary(max_size=40),
    st.integers(250, 260).map(lambda n: b"\x01" * n),
    st.integers(250, 260).map(lambda n: b"\x01" * n + b"\0"),
    st.binary(min_size=MAX_PAYLOAD, max_size=MAX_PAYLOAD),
    st.lists(st.sampled_from([b"\0", b"\xff", b"A", b"r", b"\x01"]), max_size=600).map(b"".join),
)
FRAMES = st.builds(Frame, BYTES, BYTES, PAYLOADS)
FAST = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


# The host's side


@pytest.mark.parametrize(
    ("plain", "stuffed"),
    [  # the worked examples of the COBS article (Cheshire and Baker 1999, and Wikipedia's table)
        ("00", "01 01"),
        ("00 00", "01 01 01"),
        ("00 11 00", "01 02 11 01"),
        ("11 22 00 33", "03 11 22 02 33"),
        ("11 22 33 44", "05 11 22 33 44"),
        ("11 00 00 00", "02 11 01 01 01"),
    ],
)
def test_stuffing_follows_the_published_examples(plain: str, stuffed: str) -> None:
    from arenite.device.protocol import _stuff, _unstuff

    assert _stuff(bytes.fromhex(plain)) == bytes.fromhex(stuffed)
    assert _unstuff(bytes.fromhex(stuffed)) == bytes.fromhex(plain)


def test_a_frame_on_the_wire_is_these_bytes() -> None:
    body = b"Ar\x01\x07\x00\x00"
    crc = struct.pack("<I", zlib.crc32(body))
    assert 0 not in crc
    want = b"\0" + b"\x05Ar\x01\x07" + b"\x01" + b"\x05" + crc + b"\0"
    assert encode_frame(Frame(IDENTIFY, 7, b"")) == want


@FAST
@given(FRAMES)
def test_what_is_encoded_is_decoded(frame: Frame) -> None:
    line = encode_frame(frame)
    assert line[0] == line[-1] == 0
    assert 0 not in line[1:-1]
    assert decode_frame(line[1:-1]) == frame
    assert list(FrameReader().feed(line)) == [frame]


@FAST
@given(st.lists(st.one_of(FRAMES, st.binary(max_size=80)), max_size=6), st.integers(1, 50))
def test_frames_are_found_between_garbage_in_pieces_of_any_size(parts: list[Frame | bytes], step: int) -> None:
    line = b"".join(encode_frame(p) if isinstance(p, Frame) else p for p in parts)
    reader = FrameReader()
    found = [frame for i in range(0, len(line), step) for frame in reader.feed(line[i : i + step])]
    assert [f for f in found if f in parts] == [p for p in parts if isinstance(p, Frame)]
    assert reader.received_bytes == len(line)


@FAST
@given(FRAMES, st.data())
def test_a_changed_byte_never_makes_another_frame(frame: Frame, data: st.DataObject) -> None:
    line = bytearray(encode_frame(frame))
    at = data.draw(st.integers(0, len(line) - 1))
    line[at] ^= data.draw(st.integers(1, 255))
    assert all(found == frame for found in FrameReader().feed(bytes(line)))


def test_a_line_without_zeros_does_not_fill_the_memory() -> None:
    reader = FrameReader()
    for _ in range(100):
        assert list(reader.feed(b"\x55" * 5000)) == []
    assert len(reader._pending) < 2000
    assert list(reader.feed(encode_frame(Frame(1, 2, b"x")))) == [Frame(1, 2, b"x")]


def test_a_payload_or_number_that_no_frame_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 1032 fit"):
        encode_frame(Frame(1, 1, bytes(MAX_PAYLOAD + 1)))
    with pytest.raises(ValueError, match="256 is no byte"):
        encode_frame(Frame(1, 256, b""))


@pytest.mark.parametrize("payload", [b"", b"\x03", bytes([3]) + bytes(46)])
def test_a_short_identification_is_a_link_error(payload: bytes) -> None:
    with pytest.raises(LinkError, match="reply to `identify` is malformed"):
        read_identification(payload, "port")


def test_another_protocol_version_is_named() -> None:
    with pytest.raises(LinkError, match="port: the board speaks version 9 of the link, this program 3"):
        read_identification(bytes([9]), "port")


@pytest.mark.parametrize("payload", [b"", b"\x63" + bytes(20)])
def test_a_malformed_description_is_a_link_error(payload: bytes) -> None:
    with pytest.raises(LinkError, match="reply to `describe` is malformed"):
        read_tensor_info(payload, "port")


# The firmware's side


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkHarness]:
    harness = LinkHarness(build_harness(tmp_path_factory.mktemp("harness")))
    yield harness
    harness.close()


class Expectation:
    """What the board must answer, computed here from the protocol's definition alone."""

    TENSORS = (
        (
            [(0, -128, A_BYTES, 0.5, b"a"), (1, 7, B_BYTES, 0.0078125, b'b, "quoted" */')],
            [(0, 3, A_BYTES, 0.25, b"sum"), (1, 0, B_BYTES, 1.0, b"reversed")],
        ),
        ([(1, 1, B_BYTES, 2.0, b"c")], [(1, 2, B_BYTES, 4.0, b"mirrored")]),
    )

    def __init__(self) -> None:
        self._select(0)
        self.parameters = [1, 1]

    def _select(self, model: int) -> None:
        self.model = model
        self.mode, self.traced = 0, False
        self.layers: list[bytes] = []
        self.inputs = [bytearray(size) for _, _, size, _, _ in self.TENSORS[model][0]]
        self.loaded = [0] * len(self.inputs)
        self.outputs: list[bytes] | None = None
        self.run_sequence: int | None = None

    def answer(self, request: Frame) -> Frame:
        status, payload = self._dispatch(request)
        return Frame(request.command | REPLY, request.sequence, bytes([status]) + payload)

    def _dispatch(self, request: Frame) -> tuple[int, bytes]:
        p = request.payload
        if request.command == IDENTIFY:
            return (2, b"") if p else (0, self._identification())
        if request.command == DESCRIBE:
            return self._describe(p)
        if request.command == LOAD:
            return self._load(p)
        if request.command == RUN:
            return self._run(p, request.sequence)
        if request.command == SELECT:
            return self._choose(p)
        if request.command == TRACE:
            return self._trace(p)
        if request.command == LAYERS:
            return self._layers(p)
        if request.command == PARAMETER:
            return self._parameter(p)
        return self._read(p) if request.command == READ else (1, b"")

    def _trace(self, p: bytes) -> tuple[int, bytes]:
        if len(p) != 11:
            return 2, b""
        mode, layer = struct.unpack_from("<BH", p)
        if mode > 15:
            return 8, b""
        if layer >= (3, 1)[self.model]:
            return 3, b""
        self.mode, self.traced = mode & 3, False
        return 0, b""

    def _layers(self, p: bytes) -> tuple[int, bytes]:
        if len(p) != 2:
            return 2, b""
        (first,) = struct.unpack("<H", p)
        if first >= (3, 1)[self.model]:
            return 3, b""
        if self.outputs is None or not self.traced:
            return 6, b""
        records = [
            struct.pack("<IIQ", 1, zlib.crc32(rows) if self.mode & 2 else 0, 1000) for rows in self.layers[first:]
        ]
        return 0, b"".join(records)

    def _parameter(self, p: bytes) -> tuple[int, bytes]:
        if len(p) not in (1, 5):
            return 2, b""
        if p[0] > 1:
            return 3, b""
        if len(p) == 5:
            (self.parameters[p[0]],) = struct.unpack_from("<I", p, 1)
        return 0, struct.pack("<I", self.parameters[p[0]])

    def _identification(self) -> bytes:
        inputs, outputs = self.TENSORS[self.model]
        head = (3, 0, 2, self.model, len(inputs), len(outputs), MAX_PAYLOAD, 0, ARENA_BYTES)
        return struct.pack("<BBBBBBHII", *head) + (SHA256, MIRROR_SHA256)[self.model] + b"host"

    def _choose(self, p: bytes) -> tuple[int, bytes]:
        if len(p) != 1:
            return 2, b""
        if p[0] > 1:
            return 3, b""
        self._select(p[0])
        return 0, b""

    def _describe(self, p: bytes) -> tuple[int, bytes]:
        if len(p) != 2:
            return 2, b""
        if p[0] > 1 or p[1] >= len(self.TENSORS[self.model][p[0]]):
            return 3, b""
        fields = self.TENSORS[self.model][p[0]][p[1]]
        return 0, struct.pack("<BhIf", *fields[:4]) + fields[4]

    def _load(self, p: bytes) -> tuple[int, bytes]:
        if len(p) < 5:
            return 2, b""
        index, offset = struct.unpack_from("<BI", p)
        if index >= len(self.inputs):
            return 3, b""
        data = p[5:]
        if offset + len(data) > len(self.inputs[index]):
            return 4, b""
        if offset > self.loaded[index]:
            return 5, b""
        self.inputs[index][offset : offset + len(data)] = data
        self.loaded[index] = offset + len(data)
        self.outputs = self.run_sequence = None
        return 0, b""

    def _run(self, p: bytes, sequence: int) -> tuple[int, bytes]:
        if len(p) not in (0, 4):
            return 2, b""
        (count,) = struct.unpack("<I", p) if p else (1,)
        if not count:
            return 8, b""
        if self.run_sequence != sequence:
            if self.loaded != [len(data) for data in self.inputs]:
                return 5, b""
            data = [bytes(i) for i in self.inputs]
            self.outputs = expected_outputs(data) if self.model == 0 else [data[0][::-1]]
            self.inputs = [bytearray(b"\x55" * len(i)) for i in data] if self.model == 0 else self.inputs
            # What the fake model's layers write: its third leaves nothing of the first bytes of its row.
            self.layers = [*self.outputs, b""] if self.model == 0 else self.outputs
            self.traced = self.mode != 0
            self.outputs = self.outputs if count == 1 else None
            self.loaded = [0] * len(data)
            self.run_sequence = sequence
            # The harness's counter goes on by 1000 with each reading: one before each step, one after a traced one.
            self.counter = 1000 * (1 + count * (3, 1)[self.model] * (2 if self.traced else 1))
        return 0, struct.pack("<BQI", 0, self.counter, 123)

    def _read(self, p: bytes) -> tuple[int, bytes]:
        if len(p) != 7:
            return 2, b""
        index, offset, count = struct.unpack("<BIH", p)
        outputs = self.TENSORS[self.model][1]
        if index >= len(outputs):
            return 3, b""
        if count > MAX_PAYLOAD - 1 or offset + count > outputs[index][2]:
            return 4, b""
        return (6, b"") if self.outputs is None else (0, self.outputs[index][offset : offset + count])


ELSEWHERE = (ABOUT, HEARTBEAT, RESET_CAUSE, REBOOT)  # answered with what only the board knows: tests of their own
OFFSETS = st.sampled_from([0, 1, 36, 37, 38, 1027, 2054, 2999, 3000, 3001, 2**31, 2**32 - 1, 2**32 - 5])
LOADS = st.builds(
    lambda index, offset, data: Frame(LOAD, 0, struct.pack("<BI", index, offset) + data),
    st.sampled_from([0, 1, 2, 255]),
    OFFSETS,
    st.one_of(st.binary(max_size=40), st.sampled_from([946, 1027]).map(lambda n: b"\xa7" * n)),
)
READS = st.builds(
    lambda index, offset, count: Frame(READ, 0, struct.pack("<BIH", index, offset, count)),
    st.sampled_from([0, 1, 2, 255]),
    OFFSETS,
    st.sampled_from([0, 1, 37, 38, 1031, 1032, 65535]),
)
REQUESTS = st.one_of(
    LOADS,
    READS,
    st.just(Frame(RUN, 0, b"")),
    st.sampled_from([0, 1, 3]).map(lambda count: Frame(RUN, 0, struct.pack("<I", count))),
    st.builds(
        lambda mode, layer: Frame(TRACE, 0, struct.pack("<BHII", mode, layer, 0, 0)),
        st.sampled_from([0, 1, 2, 3, 16]),
        st.sampled_from([0, 2, 3]),
    ),
    st.sampled_from([0, 1, 2, 3, 65535]).map(lambda first: Frame(LAYERS, 0, struct.pack("<H", first))),
    st.builds(
        Frame,
        st.sampled_from([IDENTIFY, DESCRIBE, LOAD, RUN, READ, SELECT, TRACE, LAYERS, PARAMETER]),
        st.just(0),
        st.binary(max_size=8),
    ),
    st.sampled_from([0, 0, 0, 1, 2, 255]).map(lambda model: Frame(SELECT, 0, bytes([model]))),
    st.builds(Frame, BYTES.filter(lambda command: command not in ELSEWHERE), st.just(0), st.binary(max_size=3)),
)


def load_frames(inputs: list[bytes]) -> list[Frame]:
    return [
        Frame(LOAD, 0, struct.pack("<BI", index, at) + data[at : at + 1027])
        for index, data in enumerate(inputs)
        for at in range(0, len(data), 1027)
    ]


def whole_read(count: int) -> Frame:
    return Frame(READ, 0, struct.pack("<BIH", 0, 0, count))


MIRROR_RUNS = st.binary(min_size=B_BYTES, max_size=B_BYTES).map(
    lambda data: [Frame(SELECT, 0, b"\1"), *load_frames([data]), Frame(RUN, 0, b""), whole_read(B_BYTES)]
)
WHOLE_RUNS = st.integers(0, 2**32).map(lambda seed: [*load_frames(random_inputs(seed)), Frame(RUN, 0, b"")])
DIALOGUES = st.lists(st.one_of(REQUESTS.map(lambda request: [request]), WHOLE_RUNS, MIRROR_RUNS), max_size=12)


def test_the_board_sends_a_banner_when_it_starts(board: LinkHarness) -> None:
    assert list(FrameReader().feed(board.banner)) == [Frame(BANNER, 0, b"")]


@FAST
@given(DIALOGUES, st.lists(st.integers(1, 3), min_size=1, max_size=20))
def test_the_board_answers_every_request_as_the_protocol_says(
    board: LinkHarness, dialogue: list[list[Frame]], sequences: list[int]
) -> None:
    """Right and wrong requests in any order, with few sequence numbers, so that repeated ones occur."""
    expectation = forget(board)
    requests = [request for part in dialogue for request in part]
    for i, request in enumerate(requests):
        asked = Frame(request.command, sequences[i % len(sequences)], request.payload)
        answers = list(FrameReader().feed(board.exchange(encode_frame(asked))))
        assert answers == [expectation.answer(asked)]


def forget(board: LinkHarness) -> Expectation:
    """Brings the board into a known state: the first model, nothing loaded, no outputs."""
    for frame in (Frame(PARAMETER, 97, b"\0\1\0\0\0"), Frame(PARAMETER, 98, b"\1\1\0\0\0"), Frame(SELECT, 99, b"\0")):
        board.exchange(encode_frame(frame))
    return Expectation()


@FAST
@given(st.binary(max_size=3000))
def test_the_board_survives_garbage_and_hears_the_next_frame(board: LinkHarness, garbage: bytes) -> None:
    line = garbage + encode_frame(Frame(IDENTIFY, 5, b""))
    answers = list(FrameReader().feed(board.exchange(line)))
    assert answers[-1].command == IDENTIFY | REPLY
    assert answers[-1].payload[0] == 0


@FAST
@given(st.lists(FRAMES, min_size=1, max_size=4), st.data())
def test_the_board_survives_damaged_frames(board: LinkHarness, frames: list[Frame], data: st.DataObject) -> None:
    forget(board)
    line = bytearray(b"".join(encode_frame(f) for f in frames))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(line) - 1))
        action = data.draw(st.sampled_from(["change", "drop", "insert", "cut"]))
        if action == "change":
            line[at] = data.draw(BYTES)
        elif action == "drop" and len(line) > 1:
            del line[at]
        elif action == "insert":
            line.insert(at, data.draw(BYTES))
        else:
            del line[at + 1 :]
    answers = list(FrameReader().feed(board.exchange(bytes(line) + encode_frame(Frame(IDENTIFY, 6, b"")))))
    expectation = Expectation()
    expectation.model = answers[-1].payload[4]  # a frame may have survived that selects the other
    assert answers[-1] == expectation.answer(Frame(IDENTIFY, 6, b""))


@FAST
@given(st.binary(max_size=MAX_PAYLOAD), BYTES)
def test_the_board_survives_any_payload_under_a_right_checksum(
    board: LinkHarness, payload: bytes, command: int
) -> None:
    answers = list(FrameReader().feed(board.exchange(encode_frame(Frame(command, 9, payload)))))
    answers = [a for a in answers if a.command not in (BANNER, ROW) or command | REPLY == a.command]
    assert [(a.command, a.sequence) for a in answers[:1]] == [(command | REPLY, 9)]
    assert answers[0].payload[0] <= 8
    assert answers[0].payload[0] == 0 or len(answers[0].payload) == 1


def test_a_frame_longer_than_the_buffer_is_dropped(board: LinkHarness) -> None:
    body = b"Ar\x03\x01" + struct.pack("<H", 2000) + bytes(range(1, 251)) * 8
    body += struct.pack("<I", zlib.crc32(body))
    stuffed = bytearray()
    for run in body.split(b"\0"):
        for at in range(0, len(run), 200):
            stuffed += bytes([len(run[at : at + 200]) + 1]) + run[at : at + 200]
    reply = board.exchange(b"\0" + bytes(stuffed) + b"\0" + encode_frame(Frame(IDENTIFY, 1, b"")))
    assert [frame.command for frame in FrameReader().feed(reply)] == [IDENTIFY | REPLY]


# Both together


def test_a_device_runs_the_model(board: LinkHarness) -> None:
    device = open_device(NeverClosed(board))
    device.select(0)
    assert device.identity.board == "host"
    assert device.identity.model_sha256 == SHA256.hex()
    assert [tensor.name for tensor in device.identity.inputs] == ["a", 'b, "quoted" */']
    assert device.identity.inputs[0].zero_point == -128
    assert device.identity.outputs[0].scale == 0.25
    for seed in (1, 2):
        inputs = random_inputs(seed)
        for index, data in enumerate(inputs):
            device.load(index, data)
        result = device.run()
        assert (result.counter, result.unit, result.stack_peak_bytes) == (4000, "none", 123)
        assert [device.read_output(i) for i in (0, 1)] == expected_outputs(inputs)


def test_a_device_turns_from_one_model_to_the_other(board: LinkHarness) -> None:
    """They share an arena: after a select nothing is loaded and nothing can be read."""
    device = open_device(NeverClosed(board))
    assert device.identity.models == 2
    for seed in range(20):
        assert device.select(0).model_sha256 == SHA256.hex()
        inputs = random_inputs(seed)
        for index, data in enumerate(inputs):
            device.load(index, data)
        device.run()
        assert [device.read_output(i) for i in (0, 1)] == expected_outputs(inputs)
        identity = device.select(1)
        assert (identity.model, identity.model_sha256) == (1, MIRROR_SHA256.hex())
        assert [(t.name, t.bytes, t.zero_point) for t in identity.inputs] == [("c", B_BYTES, 1)]
        with pytest.raises(LinkError, match=r"refused `read`: no run since the last load \(status 6\)"):
            device.read_output(0)
        with pytest.raises(LinkError, match=r"refused `run`: an input is not loaded whole \(status 5\)"):
            device.run()
        device.load(0, inputs[1])
        device.run()
        assert device.read_output(0) == inputs[1][::-1]


def test_a_model_that_is_not_there_cannot_be_selected(board: LinkHarness) -> None:
    device = open_device(NeverClosed(board))
    with pytest.raises(UsageError, match="the board has no model 2: it has 2"):
        device.select(2)
    with pytest.raises(LinkError, match=r"refused `select`: no such input, output or model \(status 3\)"):
        device.request(SELECT, b"\2")
    with pytest.raises(LinkError, match=r"refused `select`: payload of the wrong length \(status 2\)"):
        device.request(SELECT, b"")


class NeverClosed:
    """A stream that outlives the device."""

    def __init__(self, board: LinkHarness) -> None:
        self.name, self.write, self.read, self.reopen = board.name, board.write, board.read, board.reopen

    def close(self) -> None:
        """Keeps it open."""


class Lossy(NeverClosed):
    """A line that loses every n-th reply, cuts one and adds noise."""

    def __init__(self, board: LinkHarness, every: int) -> None:
        super().__init__(board)
        self._board, self._every, self._count = board, every, 0

    def read(self, timeout_s: float) -> bytes:  # type: ignore[no-redef]
        data = self._board.read(timeout_s)
        self._count += 1
        if data and self._count % self._every == 0:
            return data[: len(data) // 2] + b"noise" if self._count % 2 else b""
        return data


@pytest.mark.parametrize("every", [2, 3, 5, 7])
def test_a_lossy_line_changes_no_result(board: LinkHarness, every: int) -> None:
    device = open_device(Lossy(board, every))
    device.select(0)
    inputs = random_inputs(every)
    for index, data in enumerate(inputs):
        device.load(index, data)
    device.run()
    assert [device.read_output(i) for i in (0, 1)] == expected_outputs(inputs)


def test_wrong_use_of_a_device_is_named(board: LinkHarness) -> None:
    device = open_device(NeverClosed(board))
    device.select(0)
    with pytest.raises(UsageError, match="the model has no input 2: it has 2"):
        device.load(2, b"")
    with pytest.raises(UsageError, match=r"input 0 \(a\) takes 3000 bytes, not 5"):
        device.load(0, b"12345")
    with pytest.raises(UsageError, match="the model has no output -1"):
        device.read_output(-1)
    device.load(1, bytes(B_BYTES))
    with pytest.raises(LinkError, match=r"refused `run`: an input is not loaded whole \(status 5\)"):
        device.run()
    with pytest.raises(LinkError, match=r"refused `read`: no run since the last load \(status 6\)"):
        device.read_output(0)


class Scripted:
    """A stream that says what it was told to say, whatever it hears."""

    name = "scripted"

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self.closed = False

    def write(self, data: bytes) -> None:
        """Hears nothing."""

    def read(self, timeout_s: float) -> bytes:
        return self._answers.pop(0) if self._answers else b""

    def reopen(self, timeout_s: float) -> None:
        """Never away."""

    def close(self) -> None:
        self.closed = True


def test_a_dumb_line_is_told_from_a_wrong_one() -> None:
    dumb = Scripted()
    with pytest.raises(LinkError, match=r"scripted: the board does not answer within 0.05 s: not one byte came"):
        open_device(dumb, timeout_s=0.05)
    assert dumb.closed
    with pytest.raises(LinkError, match=r"12 bytes came and no frame that answers. Check the baud rate"):
        open_device(Scripted(b"Hello world!"), timeout_s=0.05)


def test_a_board_that_restarts_in_between_is_named(board: LinkHarness) -> None:
    stream = NeverClosed(board)
    device = open_device(stream)
    stream.read = lambda timeout_s: encode_frame(Frame(BANNER, 0, b""))
    with pytest.raises(LinkError, match="the board restarted during `run`"):
        device.run()
