# SPDX-License-Identifier: Apache-2.0
"""TFLite -> graph -> row schedule -> arena plan -> C bundle."""

from arenite_codegen.bundle import BundleReport, OperatorReport, RegionReport, bundle

__all__ = ["BundleReport", "OperatorReport", "RegionReport", "bundle"]
