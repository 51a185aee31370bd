# SPDX-License-Identifier: Apache-2.0
"""Trained model to quantised TFLite, with calibration, checks and the contract written into the file."""

from arenite_converters.pipeline import convert
from arenite_converters.quantisation import Quantisation, QuantiseOptions
from arenite_converters.report import Check, ConversionReport, TensorQuality

__all__ = ["Check", "ConversionReport", "Quantisation", "QuantiseOptions", "TensorQuality", "convert"]
