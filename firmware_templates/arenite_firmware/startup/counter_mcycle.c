/* SPDX-License-Identifier: Apache-2.0 */
/* Core cycles of a RISC-V core in 64 bits: mcycle (RISC-V Privileged Architecture 1.12, chapter 3). */
#include "board.h"
#include "drivers.h"

void counter_init(void) { __asm__ volatile("csrw mcountinhibit, zero" ::: "memory"); }

uint64_t board_counter(void) {
    for (;;) {
        uint32_t high, low, again;
        __asm__ volatile("csrr %0, mcycleh" : "=r"(high));
        __asm__ volatile("csrr %0, mcycle" : "=r"(low));
        __asm__ volatile("csrr %0, mcycleh" : "=r"(again));
        if (again == high) {
            return (uint64_t)high << 32 | low;
        }
    }
}
