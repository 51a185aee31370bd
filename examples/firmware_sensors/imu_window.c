/* SPDX-License-Identifier: Apache-2.0 */
/* A window of an accelerometer's samples into a model, half of it new each time.
 *
 *     arenite bundle gestures.tflite --board BOARD --export single-file -o firmware */
#include "gestures.h"

#include <string.h>

#include "sensors.h"

enum { AXES = 3, SAMPLES = GESTURES_INPUT_0_ELEMENTS / AXES, HOP = SAMPLES / 2 };

/* The model may overwrite its input, so that the window is kept beside it. */
static gestures_input_0_t window[SAMPLES][AXES];

static bool fill(uint32_t from) {
    for (uint32_t sample = from; sample < SAMPLES; sample++) {
        float axes[AXES];
        if (!imu_sample(axes)) {
            return false;
        }
        for (uint32_t axis = 0; axis < AXES; axis++) {
            window[sample][axis] = (gestures_input_0_t)gestures_quantised(0, axes[axis]);
        }
    }
    return true;
}

int main(void) {
    gestures_init();
    for (uint32_t kept = 0; fill(kept); kept = SAMPLES - HOP) {
        memcpy(gestures_input(0), window, GESTURES_INPUT_0_BYTES);
        gestures_run();
        const uint32_t best = gestures_best(0);
        decided(best, gestures_label(0, best), gestures_value(0, best));
        memmove(window, window[HOP], (SAMPLES - HOP) * sizeof window[0]);
    }
    return 0;
}
