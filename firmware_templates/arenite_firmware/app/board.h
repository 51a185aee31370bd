/* SPDX-License-Identifier: Apache-2.0 */
/* What the application asks of a board. Every board implements these functions and nothing else. */
#ifndef ARENITE_BOARD_H
#define ARENITE_BOARD_H

#include <stdbool.h>
#include <stdint.h>

#include "board_config.h"

/* Sets up the serial port and the counter. Called once, before anything else here. */
void board_init(void);

/* Next received byte, 0..255, or -1 when none has arrived. Never waits. */
int board_uart_read(void);

/* Waits until a byte may have arrived since the last board_uart_read(); may return at once. */
void board_idle(void);

/* Sends one byte; waits while the transmitter is full. */
void board_uart_write(uint8_t byte);

/* Free-running 64-bit counter. Its unit and rate are BOARD_COUNTER_UNIT and BOARD_COUNTER_HZ. */
uint64_t board_counter(void);

/* Fills the unused stack with a pattern, so that board_stack_peak_bytes() sees what was used since. */
void board_stack_paint(void);

/* Deepest use of the stack since it was painted, in bytes; 0 where the board cannot tell. */
uint32_t board_stack_peak_bytes(void);

/* The run is alive, and about to do this step of this layer: feeds the watchdog, and keeps the place for a fault's record. */
void board_alive(uint16_t layer, uint16_t step);

/* A pin that is high while an inference runs, for a meter beside the board; nothing where the board has none. */
void board_marker(bool on);

typedef enum {
    BOARD_RESET_UNKNOWN = 0, /* power, a pin, or whatever leaves no note */
    BOARD_RESET_ASKED = 1,   /* board_reset() */
    BOARD_RESET_FAULT = 2,
    BOARD_RESET_WATCHDOG = 3
} board_reset_cause_t;

/* What a fault left behind before it reset the board. */
typedef struct {
    uint32_t kind;    /* Cortex-M: number of the exception; RISC-V: mcause */
    uint32_t pc;      /* of the instruction */
    uint32_t lr;      /* where its function returns to */
    uint32_t status;  /* Cortex-M: CFSR, 0 on a Cortex-M0 */
    uint32_t address; /* that could not be reached, where the core says one */
    uint16_t layer;   /* of the last step that began */
    uint16_t step;
} board_fault_t;

/* Why the board started. */
board_reset_cause_t board_reset_cause(void);

/* Of a start after a fault or the watchdog; else all zero. */
const board_fault_t *board_fault(void);

/* Starts the board again; does not return, but on the host. */
void board_reset(void);

/* What tells this chip from others: writes at most BOARD_MAX_ID_BYTES, returns how many. */
#define BOARD_MAX_ID_BYTES 20u
uint32_t board_mcu_id(uint8_t *to);

#endif
