# SPDX-License-Identifier: Apache-2.0
"""TFLite -> graph -> row schedule -> arena plan -> C bundle."""

from arenite_codegen.bundle import bundle
from arenite_codegen.bundle_report import BundleReport, ModelReport, OperatorReport

__all__ = ["BundleReport", "ModelReport", "OperatorReport", "bundle"]
