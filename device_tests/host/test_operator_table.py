# SPDX-License-Identifier: Apache-2.0
"""The table of supported operators in docs/operators.md is what the code does."""

from __future__ import annotations

from support.operator_table import PAGE, missing_operators, page_with, table


def test_the_page_is_current() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert page_with(text, table()) == text, "run: python -m support.operator_table"


def test_every_lowering_has_a_random_graph() -> None:
    assert missing_operators() == []
