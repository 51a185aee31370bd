# SPDX-License-Identifier: Apache-2.0
"""Builds small TFLite files, for tests that need a graph no converter would emit."""

from arenite_converters.tflite_builder import ModelBuilder

__all__ = ["ModelBuilder"]
