/* SPDX-License-Identifier: Apache-2.0 */
/* What tells this chip from others: the core's own identification, then the chip's unique number if its board names one. */
#include "board.h"
#include "bytes.h"

#if defined(__riscv)
static uint32_t core_id(void) {
    uint32_t id;
    __asm__ volatile("csrr %0, marchid" : "=r"(id));
    return id;
}
#else
static uint32_t core_id(void) { return *(volatile uint32_t *)0xE000ED00u; /* CPUID */ }
#endif

uint32_t board_mcu_id(uint8_t *to) {
    put_u32(to, core_id());
#ifdef BOARD_UNIQUE_ID_BASE
    for (uint32_t i = 0; i < BOARD_UNIQUE_ID_BYTES; i += 4) {
        put_u32(to + 4u + i, *(volatile uint32_t *)(BOARD_UNIQUE_ID_BASE + i));
    }
    return 4u + BOARD_UNIQUE_ID_BYTES;
#else
    return 4u;
#endif
}
