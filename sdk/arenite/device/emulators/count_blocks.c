/* SPDX-License-Identifier: Apache-2.0 */
/* Unicorn calls this for each basic block that it enters; it adds up the block's instructions. A few
 * nanoseconds a block, where a callback into Python takes microseconds. */
#include <stdint.h>

#define SLOTS 8192u

typedef struct {
    uint64_t address;
    uint32_t bytes;
    uint32_t instructions;
} slot_t;

typedef int (*stop_t)(void *engine);

typedef struct {
    uint64_t instructions;   /* the sum */
    uint64_t origin;         /* address of the first byte of code */
    uint64_t length;         /* bytes of code */
    const uint8_t *code;     /* copy of the memory that holds the program */
    uint32_t compressed_isa; /* 0 Thumb, 1 RISC-V with 16-bit instructions */
    uint32_t stopped;        /* the emulation was stopped at `stop_at` */
    uint64_t stop_at;    /* stop the emulation before the block that begins after this many instructions */
    stop_t stop;         /* uc_emu_stop */
    slot_t slots[SLOTS]; /* counts of the blocks met most recently */
} counter_t;

static uint32_t width(const counter_t *c, const uint8_t *p) {
    if (c->compressed_isa == 1) {
        return (p[0] & 3u) == 3u ? 4u : 2u;
    }
    return p[1] >> 3 >= 0x1Du ? 4u : 2u;
}

static uint32_t count(const counter_t *c, uint64_t address, uint32_t bytes) {
    const uint64_t at = address - c->origin;
    uint32_t instructions = 0;
    for (uint32_t i = 0; i + 2 <= bytes; i += width(c, c->code + at + i)) {
        instructions++;
    }
    return instructions;
}

uint32_t arenite_counter_bytes(void) { return (uint32_t)sizeof(counter_t); }

void arenite_count_block(void *engine, uint64_t address, uint32_t bytes, void *user) {
    counter_t *c = (counter_t *)user;
    if (c->instructions >= c->stop_at) {
        /* Unicorn does not run this block any more, and calls here again for it when it goes on. */
        c->stopped = 1;
        c->stop(engine);
        return;
    }
    if (address < c->origin || address - c->origin > c->length || bytes > c->length - (address - c->origin)) {
        return;
    }
    slot_t *slot = &c->slots[(address >> 1) % SLOTS];
    if (slot->address != address || slot->bytes != bytes) {
        slot->address = address;
        slot->bytes = bytes;
        slot->instructions = count(c, address, bytes);
    }
    c->instructions += slot->instructions;
}
