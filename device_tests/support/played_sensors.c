/* SPDX-License-Identifier: Apache-2.0 */
/* The sensors of examples/firmware_sensors, played from standard input; what is decided goes to standard output. */
#include "sensors.h"

#include <stdio.h>

static bool take(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

bool camera_row(uint8_t *row, size_t bytes) { return take(row, bytes); }

bool microphone_features(float *features, size_t count) { return take(features, count * sizeof(float)); }

bool imu_sample(float axes[3]) { return take(axes, 3 * sizeof(float)); }

void decided(uint32_t best, const char *label, float value) {
    printf("%u %s %.9g\n", (unsigned)best, label == NULL ? "-" : label, (double)value);
}
