/* SPDX-License-Identifier: Apache-2.0 */
/* A board that names no pin for meters. */
#include "board.h"
#include "drivers.h"

void pin_init(void) {}

void board_pin(bool high) { (void)high; }
