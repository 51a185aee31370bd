/* SPDX-License-Identifier: Apache-2.0 */
/* The loader of a board with slots: chooses one and starts it. It has no other way in: where no slot counts it waits for
 * whoever flashed the board. */
#include "update_link.h"

typedef struct {
    uint32_t stack;
    uint32_t reset;
} vectors_t;

static void start(const vectors_t *vectors) {
    const uint32_t stack = vectors->stack;
    const uint32_t reset = vectors->reset;
    __asm__ volatile("msr msp, %0\n\tbx %1" ::"r"(stack), "r"(reset) : "memory");
}

int main(void) {
    const update_slots_t *slots = board_update_slots(IMAGE_FIRMWARE);
    const update_boot_t boot = update_boot(slots);
    if (boot.slot >= 0) {
        start((const vectors_t *)(uintptr_t)(slots->start[boot.slot] + UPDATE_PAYLOAD_AT));
    }
    for (;;) {
    }
}
