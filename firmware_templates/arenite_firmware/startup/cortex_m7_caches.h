/* SPDX-License-Identifier: Apache-2.0 */
/* Switches both caches of a Cortex-M7 on (ARMv7-M Architecture Reference Manual, B2.2). Nothing here uses DMA, so that no
 * line must ever be cleaned. */
#ifndef ARENITE_CORTEX_M7_CACHES_H
#define ARENITE_CORTEX_M7_CACHES_H

#include <stdint.h>

static inline void cortex_m7_caches_on(void) {
    volatile uint32_t *const ccr = (volatile uint32_t *)0xE000ED14u;
    volatile uint32_t *const size = (volatile uint32_t *)0xE000ED80u;     /* CCSIDR */
    volatile uint32_t *const chosen = (volatile uint32_t *)0xE000ED84u;   /* CSSELR */
    volatile uint32_t *const all_code = (volatile uint32_t *)0xE000EF50u; /* ICIALLU */
    volatile uint32_t *const by_way = (volatile uint32_t *)0xE000EF60u;   /* DCISW */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    *all_code = 0;
    *chosen = 0; /* level 1, data */
    __asm__ volatile("dsb" ::: "memory");
    const uint32_t sets = (*size >> 13) & 0x7FFFu; /* less one, as the ways */
    const uint32_t ways = (*size >> 3) & 0x3FFu;
    for (uint32_t set = 0; set <= sets; set++) {
        for (uint32_t way = 0; way <= ways; way++) {
            *by_way = way << 30 | set << 5; /* four ways, lines of 32 bytes */
        }
    }
    __asm__ volatile("dsb\n\tisb" ::: "memory");
    *ccr |= 1u << 17 | 1u << 16; /* code, data */
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

#endif
