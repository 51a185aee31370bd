# SPDX-License-Identifier: Apache-2.0
"""Trained model to full-INT8 TFLite, with calibration, checks and the contract written into the file."""

from arenite_converters.pipeline import convert
from arenite_converters.report import Check, ConversionReport, TensorQuality

__all__ = ["Check", "ConversionReport", "TensorQuality", "convert"]
