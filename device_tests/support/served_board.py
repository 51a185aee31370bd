# SPDX-License-Identifier: Apache-2.0
"""An emulated board behind a line of this machine, as a real one would be: a TCP socket or a pseudo-terminal."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from arenite.device.emulators import EmulatedBoard, start_emulator

__all__ = ["over_pty", "over_socket"]


@contextlib.contextmanager
def over_socket(bundle: Path) -> Iterator[str]:
    """The pyserial URL of a running board; one program after another may open it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        with _running(bundle, lambda board, stop: _serve(board, server, stop)):
            yield f"socket://127.0.0.1:{server.getsockname()[1]}"


@contextlib.contextmanager
def over_pty(bundle: Path) -> Iterator[str]:
    """The path of a running board's port."""
    ours, theirs = os.openpty()
    try:
        with _running(bundle, lambda board, stop: _pump(board, ours, ours, stop)):
            yield os.ttyname(theirs)
    finally:
        os.close(theirs)
        os.close(ours)


@contextlib.contextmanager
def _running(bundle: Path, serve: Callable[[EmulatedBoard, threading.Event], object]) -> Iterator[None]:
    board, stop = start_emulator(bundle), threading.Event()
    thread = threading.Thread(target=serve, args=(board, stop))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        board.close()


def _serve(board: EmulatedBoard, server: socket.socket, stop: threading.Event) -> None:
    while not stop.is_set():
        with contextlib.suppress(TimeoutError):
            connection, _ = server.accept()
            with connection, contextlib.suppress(ConnectionError):
                _pump(board, connection.fileno(), connection.fileno(), stop)


def _pump(board: EmulatedBoard, source: int, sink: int, stop: threading.Event) -> None:
    """Carries bytes both ways until the other side goes away."""
    while not stop.is_set():
        if select.select([source], [], [], 0.005)[0]:
            data = os.read(source, 4096)
            if not data:
                return
            board.stream.write(data)
        data = board.stream.read(0.005)
        while data:
            data = data[os.write(sink, data) :]
