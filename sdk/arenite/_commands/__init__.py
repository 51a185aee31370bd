# SPDX-License-Identifier: Apache-2.0
"""What each command of the command line does: call one function of `arenite`, print its report."""
