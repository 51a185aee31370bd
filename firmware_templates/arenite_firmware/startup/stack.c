/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the stack by painting it. The stack lies at the very start of RAM: one that overflows leaves RAM
 * and faults instead of overwriting data. */
#include "board.h"

#define PAINT 0xA5A5A5A5u

extern uint32_t __stack_start[];
extern uint32_t __stack_end[];

static uint32_t *stack_pointer(void) {
    uint32_t *sp;
#if defined(__riscv)
    __asm__ volatile("mv %0, sp" : "=r"(sp));
#else
    __asm__ volatile("mov %0, sp" : "=r"(sp));
#endif
    return sp;
}

/* Nothing lives below the stack pointer: no interrupt runs, and neither architecture has a red zone. */
void board_stack_paint(void) {
    uint32_t *const top = stack_pointer();
    for (volatile uint32_t *p = __stack_start; p < top; p++) {
        *p = PAINT;
    }
}

uint32_t board_stack_peak_bytes(void) {
    const uint32_t *p = __stack_start;
    while (p < __stack_end && *(const volatile uint32_t *)p == PAINT) {
        p++;
    }
    return (uint32_t)((uintptr_t)__stack_end - (uintptr_t)p);
}
