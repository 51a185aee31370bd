/* SPDX-License-Identifier: Apache-2.0 */
/* A microphone's frames into a streaming model, which remembers the frames before by itself: it runs once for as many new
 * frames as its input holds. One run's answer is noisy, so that a moving average decides.
 *
 *     arenite bundle wake_word.tflite --board BOARD --export single-file -o firmware */
#include "wake_word.h"

#include "sensors.h"

#ifndef FEATURES
#define FEATURES 40 /* of a frame */
#endif
enum { FRAMES = WAKE_WORD_INPUT_0_ELEMENTS / FEATURES, WORD = 0 };

static const float AVERAGED_RUNS = 5.0f;

static bool next_frames(void) {
    wake_word_input_0_t *to = wake_word_input(0);
    for (uint32_t frame = 0; frame < FRAMES; frame++) {
        float features[FEATURES];
        if (!microphone_features(features, FEATURES)) {
            return false;
        }
        for (uint32_t i = 0; i < FEATURES; i++) {
            *to++ = (wake_word_input_0_t)wake_word_quantised(0, features[i]);
        }
    }
    return true;
}

int main(void) {
    float average = 0.0f;
    wake_word_init();
    while (next_frames()) {
        wake_word_run();
        average += (wake_word_value(0, WORD) - average) / AVERAGED_RUNS;
        decided(WORD, wake_word_label(0, WORD), average);
    }
    return 0;
}
