/* SPDX-License-Identifier: Apache-2.0 */
#include "board.h"
#include "drivers.h"

void board_init(void) {
    reset_init();
    hardware_init();
    uart_init();
    counter_init();
    idle_init();
    marker_init();
    watchdog_init();
}
