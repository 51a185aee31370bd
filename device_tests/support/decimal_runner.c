/* SPDX-License-Identifier: Apache-2.0 */
/* Prints each float of standard input by the firmware's own decimal code, one a line. */
#include <stdio.h>

#include "decimal.h"

int main(void) {
    float value;
    char text[DECIMAL_MAX_BYTES];
    while (fread(&value, sizeof value, 1, stdin) == 1) {
        puts(decimal_milli(text, value));
    }
    puts(decimal_u64(text, 18446744073709551615u));
    return 0;
}
