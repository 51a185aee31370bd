# SPDX-License-Identifier: Apache-2.0
"""Reports as lines for a person."""
