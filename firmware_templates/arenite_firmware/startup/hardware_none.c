/* SPDX-License-Identifier: Apache-2.0 */
/* For a board that is ready after reset: clocks run, and the serial port has its clock and its pins. */
#include "board.h"
#include "drivers.h"

void hardware_init(void) {}
