/* SPDX-License-Identifier: Apache-2.0 */
/* What a board does by writing constants to registers, as its board.toml lists them: a watchdog, a marker pin. */
#include "board.h"
#include "drivers.h"

#define WRITE(address, value) *(volatile uint32_t *)(address) = (value);

void watchdog_init(void) {
#ifdef BOARD_WATCHDOG_SETUP
    BOARD_WATCHDOG_SETUP(WRITE)
#endif
}

void watchdog_feed(void) {
#ifdef BOARD_WATCHDOG_FEED
    BOARD_WATCHDOG_FEED(WRITE)
#endif
}

void marker_init(void) {
#ifdef BOARD_MARKER_SETUP
    BOARD_MARKER_SETUP(WRITE)
#endif
    board_marker(false);
}

void board_marker(bool on) {
#ifdef BOARD_MARKER_ON
    if (on) {
        BOARD_MARKER_ON(WRITE)
    } else {
        BOARD_MARKER_OFF(WRITE)
    }
#else
    (void)on;
#endif
}
