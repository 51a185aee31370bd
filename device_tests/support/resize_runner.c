/* SPDX-License-Identifier: Apache-2.0 */
/* Entry of a program for an emulated processor without an operating system: the functions of the compiled resize. */
#include "arenite_resize_host.h"

enum { RUNS_HERE, COLUMNS, ROWS, BYTES };

int32_t start(uint32_t what, const void *how, const uint8_t *in, uint32_t first, uint32_t second,
              uint8_t *out);

int32_t start(uint32_t what, const void *how, const uint8_t *in, uint32_t first, uint32_t second,
              uint8_t *out) {
    switch (what) {
    case RUNS_HERE:
        return arenite_resize_runs_here();
    case COLUMNS:
        arenite_resize_columns(how, in, first, second, out);
        return 0;
    case ROWS:
        arenite_resize_rows(how, in, first, second, out);
        return 0;
    default:
        arenite_write_bytes(how, in, first, out);
        return 0;
    }
}
