/* SPDX-License-Identifier: Apache-2.0 */
/* Why the board started: a note in memory that no start-up clears, written before a reset, read once after it. */
#include <stddef.h>
#include <string.h>

#include "board.h"
#include "crc32.h"
#include "drivers.h"

#define MAGIC 0x65746F4Eu

typedef struct {
    uint32_t magic;
    uint32_t cause;
    board_fault_t fault;
    uint32_t checksum; /* of all before: after power-on the memory holds anything */
} note_t;

__attribute__((section(".noinit"))) static note_t note;
static board_reset_cause_t cause;
static board_fault_t last_fault;
static uint16_t layer_now, step_now;

static uint32_t checksum(void) { return link_crc32((const uint8_t *)&note, offsetof(note_t, checksum)); }

static void leave_note(board_reset_cause_t why) {
    note.magic = MAGIC;
    note.cause = (uint32_t)why;
    note.checksum = checksum();
}

#ifdef BOARD_RESET_CAUSE_REGISTER
#define WRITE(address, value) *(volatile uint32_t *)(address) = (value);

/* The chip's own word, for a watchdog that leaves no time for a note. */
static bool watchdog_did_it(void) {
    const uint32_t flags = *(volatile uint32_t *)BOARD_RESET_CAUSE_REGISTER;
    BOARD_RESET_CAUSE_CLEAR(WRITE)
    return (flags & BOARD_RESET_CAUSE_WATCHDOG) != 0;
}
#else
static bool watchdog_did_it(void) { return false; }
#endif

void reset_init(void) {
    if (note.magic == MAGIC && note.checksum == checksum() && note.cause <= BOARD_RESET_WATCHDOG) {
        cause = (board_reset_cause_t)note.cause;
        last_fault = note.fault;
    }
    memset(&note, 0, sizeof note);
    if (watchdog_did_it() && cause == BOARD_RESET_UNKNOWN) {
        cause = BOARD_RESET_WATCHDOG;
    }
}

board_reset_cause_t board_reset_cause(void) { return cause; }

const board_fault_t *board_fault(void) { return &last_fault; }

void board_alive(uint16_t layer, uint16_t step) {
    layer_now = layer;
    step_now = step;
    watchdog_feed();
}

#if defined(__riscv)
/* The core starts where the code does. */
static void start_again(void) { __asm__ volatile("tail __code_start"); }

#define WATCHDOG_KIND 0xFFFFFFFFu /* none comes as a trap */
#else
#define AIRCR (*(volatile uint32_t *)0xE000ED0Cu)
#define AIRCR_KEY_AND_RESET 0x05FA0004u

static void start_again(void) {
    __asm__ volatile("dsb" ::: "memory");
    AIRCR = AIRCR_KEY_AND_RESET;
    for (;;) {
    }
}

#define WATCHDOG_KIND 2u /* the non-maskable interrupt */
#endif

void board_reset(void) {
    memset(&note.fault, 0, sizeof note.fault);
    leave_note(BOARD_RESET_ASKED);
    start_again();
}

void fault_record(const board_fault_t *fault) {
    note.fault = *fault;
    note.fault.layer = layer_now;
    note.fault.step = step_now;
    leave_note(fault->kind == WATCHDOG_KIND ? BOARD_RESET_WATCHDOG : BOARD_RESET_FAULT);
    start_again();
}
