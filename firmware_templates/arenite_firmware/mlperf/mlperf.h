/* SPDX-License-Identifier: Apache-2.0 */
/* The serial protocol of MLPerf Tiny, over the one model of this firmware: the benchmark's host program drives the board.
 *
 * The host sends `command arguments%`, the board answers in lines that end in CR LF, the last of them `m-ready`.
 * docs/mlperf-tiny.md of Arenite lists the commands.
 *
 * The payload lies in the model's own input in the arena, so there is no second buffer; only a model whose payload is
 * float (anomaly detection) has one, since the mean squared error is taken against those floats. Runs do not overwrite
 * the input: the bundle is planned so. */
#ifndef ARENITE_MLPERF_H
#define ARENITE_MLPERF_H

#include <stdint.h>

/* What the payload is, and so what becomes of it. */
#define MLPERF_AS_IT_IS 0 /* the input tensor's bytes */
#define MLPERF_PIXELS 1   /* unsigned bytes; the input tensor holds them less 128 */
#define MLPERF_FLOATS                                                                                        \
    2 /* 32-bit floats, little-endian; quantised on load; the result is a mean squared error */

#define MLPERF_COMMAND_BYTES 80u /* longest command, without its final '%' */

#endif
