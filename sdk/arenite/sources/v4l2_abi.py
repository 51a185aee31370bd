# SPDX-License-Identifier: Apache-2.0
"""The part of Linux's video capture interface that a camera needs: structures, requests, formats.

Format: the kernel's include/uapi/linux/videodev2.h; a test compares every size, offset and number with it.
"""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_int32, c_long, c_uint8, c_uint32, c_void_p

__all__ = [
    "Buffer",
    "CAPTURE",
    "CAP_DEVICE_CAPS",
    "CAP_STREAMING",
    "CAP_VIDEO_CAPTURE",
    "COLORSPACE_REC709",
    "Capability",
    "CaptureParameters",
    "Format",
    "MMAP",
    "PIXEL_FORMATS",
    "PixelFormat",
    "QUANTIZATION_FULL_RANGE",
    "REQUESTS",
    "RequestBuffers",
    "StreamParameters",
    "fourcc",
]

CAP_VIDEO_CAPTURE, CAP_STREAMING, CAP_DEVICE_CAPS = 0x00000001, 0x04000000, 0x80000000
CAPTURE = 1  # V4L2_BUF_TYPE_VIDEO_CAPTURE
MMAP = 1  # V4L2_MEMORY_MMAP
COLORSPACE_REC709, QUANTIZATION_FULL_RANGE = 3, 1
# Frame's name of a format: the kernel's four letters. RGB565 words are little-endian in both.
PIXEL_FORMATS = {
    "MJPEG": "MJPG",
    "NV12": "NV12",
    "YUYV": "YUYV",
    "UYVY": "UYVY",
    "NV21": "NV21",
    "RGB": "RGB3",
    "BGR": "BGR3",
    "RGB565": "RGBP",
    "GREY": "GREY",
}


def fourcc(letters: str) -> int:
    """Four letters as the kernel writes them in 32 bits."""
    return int.from_bytes(letters.encode("ascii"), "little")


class Capability(ctypes.Structure):
    """struct v4l2_capability."""

    _fields_ = (
        ("driver", c_char * 16),
        ("card", c_char * 32),
        ("bus_info", c_char * 32),
        ("version", c_uint32),
        ("capabilities", c_uint32),
        ("device_caps", c_uint32),
        ("reserved", c_uint32 * 3),
    )


class PixelFormat(ctypes.Structure):
    """struct v4l2_pix_format."""

    _fields_ = tuple(
        (name, c_uint32)
        for name in (
            *("width", "height", "pixelformat", "field", "bytesperline", "sizeimage"),
            *("colorspace", "priv", "flags", "ycbcr_enc", "quantization", "xfer_func"),
        )
    )


class _FormatUnion(ctypes.Union):
    # Another member of the kernel's union holds a pointer, which aligns it.
    _fields_ = (("pix", PixelFormat), ("raw_data", c_uint8 * 200), ("_aligns", c_void_p))


class Format(ctypes.Structure):
    """struct v4l2_format."""

    _fields_ = (("type", c_uint32), ("fmt", _FormatUnion))


class CaptureParameters(ctypes.Structure):
    """struct v4l2_captureparm, its fraction spelled out."""

    _fields_ = tuple(
        (name, c_uint32)
        for name in ("capability", "capturemode", "numerator", "denominator", "extendedmode", "buffers")
    )


class _ParametersUnion(ctypes.Union):
    _fields_ = (("capture", CaptureParameters), ("raw_data", c_uint8 * 200))


class StreamParameters(ctypes.Structure):
    """struct v4l2_streamparm."""

    _fields_ = (("type", c_uint32), ("parm", _ParametersUnion))


class RequestBuffers(ctypes.Structure):
    """struct v4l2_requestbuffers."""

    _fields_ = (
        ("count", c_uint32),
        ("type", c_uint32),
        ("memory", c_uint32),
        ("capabilities", c_uint32),
        ("flags", c_uint8),
        ("reserved", c_uint8 * 3),
    )


class _Time(ctypes.Structure):
    _fields_ = (("tv_sec", c_long), ("tv_usec", c_long))


class _TimeCode(ctypes.Structure):
    _fields_ = (("type", c_uint32), ("flags", c_uint32), ("rest", c_uint8 * 8))


class _BufferUnion(ctypes.Union):
    _fields_ = (("offset", c_uint32), ("_pointer", c_void_p))


class Buffer(ctypes.Structure):
    """struct v4l2_buffer."""

    _fields_ = (
        ("index", c_uint32),
        ("type", c_uint32),
        ("bytesused", c_uint32),
        ("flags", c_uint32),
        ("field", c_uint32),
        ("timestamp", _Time),
        ("timecode", _TimeCode),
        ("sequence", c_uint32),
        ("memory", c_uint32),
        ("m", _BufferUnion),
        ("length", c_uint32),
        ("reserved2", c_uint32),
        ("request_fd", c_int32),
    )


_WRITE, _READ = 1, 2


def _request(direction: int, number: int, argument: type[ctypes.Structure | c_int32]) -> int:
    """The number of an ioctl request, as asm-generic/ioctl.h makes it."""
    return direction << 30 | ctypes.sizeof(argument) << 16 | ord("V") << 8 | number


REQUESTS = {
    "VIDIOC_QUERYCAP": _request(_READ, 0, Capability),
    "VIDIOC_S_FMT": _request(_READ | _WRITE, 5, Format),
    "VIDIOC_REQBUFS": _request(_READ | _WRITE, 8, RequestBuffers),
    "VIDIOC_QUERYBUF": _request(_READ | _WRITE, 9, Buffer),
    "VIDIOC_QBUF": _request(_READ | _WRITE, 15, Buffer),
    "VIDIOC_DQBUF": _request(_READ | _WRITE, 17, Buffer),
    "VIDIOC_STREAMON": _request(_WRITE, 18, c_int32),
    "VIDIOC_STREAMOFF": _request(_WRITE, 19, c_int32),
    "VIDIOC_S_PARM": _request(_READ | _WRITE, 22, StreamParameters),
}
