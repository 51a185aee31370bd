# SPDX-License-Identifier: Apache-2.0
"""The options of each command; `arenite._commands` does what they ask for."""
