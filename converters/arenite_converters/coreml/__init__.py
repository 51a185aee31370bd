# SPDX-License-Identifier: Apache-2.0
"""Trained model to an ML Program for Apple's Neural Engine, checked off a Mac."""

from arenite_converters.coreml.checking import check_coreml
from arenite_converters.coreml.mil_executor import MilExecutor
from arenite_converters.coreml.pipeline import convert_coreml
from arenite_converters.coreml.report import CoreMlCheck, CoreMlReport

__all__ = ["CoreMlCheck", "CoreMlReport", "MilExecutor", "check_coreml", "convert_coreml"]
