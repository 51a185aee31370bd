/* SPDX-License-Identifier: Apache-2.0 */
/* Core cycles of a Cortex-M3 or later: CYCCNT of the data watchpoint and trace unit (ARMv7-M and ARMv8-M Architecture
 * Reference Manuals). */
#include "board.h"
#include "counter_wide.h"
#include "drivers.h"

#define DEMCR (*(volatile uint32_t *)0xE000EDFCu)
#define DEMCR_TRCENA (1u << 24)
#define DWT_CTRL (*(volatile uint32_t *)0xE0001000u)
#define DWT_CTRL_CYCCNTENA (1u << 0)
#define DWT_CYCCNT (*(volatile uint32_t *)0xE0001004u)
#define DWT_LAR (*(volatile uint32_t *)0xE0001FB0u) /* some Cortex-M7 start with the unit locked */
#define DWT_UNLOCK 0xC5ACCE55u

void counter_init(void) {
    DEMCR |= DEMCR_TRCENA;
    DWT_LAR = DWT_UNLOCK;
    DWT_CYCCNT = 0;
    DWT_CTRL |= DWT_CTRL_CYCCNTENA;
}

uint64_t board_counter(void) { return counter_widened(DWT_CYCCNT); }
