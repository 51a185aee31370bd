/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer of an exported component: vectors come on standard input, outputs and what the helpers say of them go to standard
 * output. Defined outside: MODEL and MODEL_UPPER, the component's name, and MODEL_HEADER. */
#include MODEL_HEADER
#include <stdio.h>

#define PASTE(a, b) a##_##b
#define JOIN(a, b) PASTE(a, b)
#define CALL(function) JOIN(MODEL, function)
#define CONSTANT(name) JOIN(MODEL_UPPER, name)

#ifdef ROW_FED
static int take(void) {
    static unsigned char row[CONSTANT(ROW_BYTES)];
    CALL(begin)();
    for (uint32_t y = 0; y < CONSTANT(ROWS); y++) {
        if (fread(row, 1, sizeof row, stdin) != sizeof row || !CALL(feed_row)(row, sizeof row)) {
            return 0;
        }
    }
    return CALL(row)() == NULL && !CALL(feed_row)(row, sizeof row);
}
#else
static int take(void) {
    void *const input = CALL(input)(0);
    if (fread(input, 1, CONSTANT(INPUT_0_BYTES), stdin) != CONSTANT(INPUT_0_BYTES)) {
        return 0;
    }
    CALL(run)();
    return 1;
}
#endif

int main(void) {
    CALL(init)();
    while (take()) {
        const uint32_t best = CALL(best)(0);
        const char *const label = CALL(label)(0, best);
        fwrite(CALL(output)(0), 1, CONSTANT(OUTPUT_0_BYTES), stdout);
        fprintf(stderr, "%u %.9g %s %ld %ld\n", (unsigned)best, (double)CALL(value)(0, best),
                label == NULL ? "-" : label, (long)CALL(quantised)(0, 0.5f), (long)CALL(quantised)(0, -1e9f));
    }
    return feof(stdin) ? 0 : 1;
}
