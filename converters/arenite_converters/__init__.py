# SPDX-License-Identifier: Apache-2.0
"""Trained model to quantised TFLite, with calibration, checks and the contract written into the file."""

from arenite_converters.conversion_page import comparison_page, conversion_page
from arenite_converters.model_comparison import ModelComparison, compare_models
from arenite_converters.pipeline import convert
from arenite_converters.quantisation import Quantisation, QuantiseOptions
from arenite_converters.recipes import convert_again, save_recipe
from arenite_converters.report import Check, ConversionReport, TensorQuality

__all__ = [
    "Check",
    "ConversionReport",
    "ModelComparison",
    "Quantisation",
    "QuantiseOptions",
    "TensorQuality",
    "compare_models",
    "comparison_page",
    "conversion_page",
    "convert",
    "convert_again",
    "save_recipe",
]
