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

/* Drives the pin that tells an external meter when something is measured; does nothing where the board names none. */
void board_pin(bool high);

/* Fills the unused stack with a pattern, so that board_stack_peak_bytes() sees what was used since. */
void board_stack_paint(void);

/* Deepest use of the stack since it was painted, in bytes; 0 where the board cannot tell. */
uint32_t board_stack_peak_bytes(void);

#endif
