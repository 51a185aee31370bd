# SPDX-License-Identifier: Apache-2.0
"""Trained model to an ML Program for Apple's Neural Engine, checked off a Mac."""
