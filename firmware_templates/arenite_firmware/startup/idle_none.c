/* SPDX-License-Identifier: Apache-2.0 */
/* For a board whose serial port raises no interrupt, or whose watchdog does not stop in sleep: the main loop polls. */
#include "board.h"
#include "drivers.h"

void idle_init(void) {}

void board_idle(void) { watchdog_feed(); }
