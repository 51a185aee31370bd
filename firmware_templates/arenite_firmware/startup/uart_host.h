/* SPDX-License-Identifier: Apache-2.0 */
/* Entry points of the host library for a program that speaks the serial link. One caller at a time. */
#ifndef ARENITE_UART_HOST_H
#define ARENITE_UART_HOST_H

#include <stddef.h>
#include <stdint.h>

/* Resets the link and writes what the board sends on start to `out`. Returns the bytes that it sent, which
 * may be more than `capacity`: those beyond it are lost. */
size_t arenite_host_start(uint8_t *out, size_t capacity);

/* Gives the board `bytes` bytes; what it answers goes to `out` as above. */
size_t arenite_host_exchange(const uint8_t *in, size_t bytes, uint8_t *out, size_t capacity);

#endif
