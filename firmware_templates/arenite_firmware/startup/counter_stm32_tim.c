/* SPDX-License-Identifier: Apache-2.0 */
/* A 32-bit general-purpose timer of an STM32 (TIM2 or TIM5; ST RM0090, chapter 18). Its clock must be on: the board's own
 * C does that where reset leaves it off. */
#include "board.h"
#include "counter_wide.h"
#include "drivers.h"

#define TIM ((volatile uint32_t *)BOARD_COUNTER_BASE)

enum { CR1 = 0x00 / 4, EGR = 0x14 / 4, CNT = 0x24 / 4, PSC = 0x28 / 4, ARR = 0x2C / 4 };
enum { CR1_CEN = 1u << 0, EGR_UG = 1u << 0 };

void counter_init(void) {
    TIM[PSC] = BOARD_COUNTER_CLOCK_HZ / BOARD_COUNTER_HZ - 1u;
    TIM[ARR] = 0xFFFFFFFFu;
    TIM[EGR] = EGR_UG; /* the prescaler takes effect at an update */
    TIM[CR1] = CR1_CEN;
}

uint64_t board_counter(void) { return counter_widened(TIM[CNT]); }
