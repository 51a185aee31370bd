# SPDX-License-Identifier: Apache-2.0
"""Engines that run a model in the app's process; one module an engine."""
