/* SPDX-License-Identifier: Apache-2.0 */
/* What a Cortex-M knows of a fault: the frame that it stacked, and its fault status registers (Arm v6-M, v7-M and v8-M
 * Architecture Reference Manuals). */
#include "board.h"
#include "drivers.h"

#define FRAME_LR 5
#define FRAME_PC 6
#define FRAME_WORDS 8

extern uint32_t __stack_start[];
extern uint32_t __stack_end[];

void Fault_Handler(void);
void fault_of_frame(const uint32_t *frame);

/* A stack that overflowed holds nothing that could be kept: the handler starts on an empty one. */
__attribute__((naked)) void Fault_Handler(void) {
    __asm__ volatile("mov r0, sp\n\t"
                     "ldr r1, =__stack_end\n\t"
                     "mov sp, r1\n\t"
                     "bl fault_of_frame\n\t"
                     ".ltorg");
}

static uint32_t exception_number(void) {
    uint32_t number;
    __asm__ volatile("mrs %0, ipsr" : "=r"(number));
    return number & 0x1FFu;
}

__attribute__((used)) void fault_of_frame(const uint32_t *frame) {
    board_fault_t fault = {.kind = exception_number()};
    if (frame >= __stack_start && frame + FRAME_WORDS <= __stack_end) {
        fault.pc = frame[FRAME_PC];
        fault.lr = frame[FRAME_LR];
    }
#if !defined(__ARM_ARCH_6M__)
    const uint32_t status = *(volatile uint32_t *)0xE000ED28u; /* CFSR */
    fault.status = status;
    if ((status & 1u << 15) != 0) { /* BFARVALID */
        fault.address = *(volatile uint32_t *)0xE000ED38u;
    } else if ((status & 1u << 7) != 0) { /* MMARVALID */
        fault.address = *(volatile uint32_t *)0xE000ED34u;
    }
#endif
    fault_record(&fault);
}
