/* SPDX-License-Identifier: Apache-2.0 */
/* A camera's rows into a row-fed model: no frame is stored, neither the camera's nor the model's.
 *
 *     arenite bundle person.tflite --board BOARD --row-fed --camera 320x240:RGB565 --export single-file -o firmware */
#include "person.h"

#include "sensors.h"

enum { BYTES_PER_PIXEL = 2 }; /* RGB565 */

static bool next_frame(void) {
    static uint8_t row[PERSON_CAMERA_WIDTH * BYTES_PER_PIXEL];
    person_camera_begin();
    for (uint32_t y = 0; y < PERSON_CAMERA_HEIGHT; y++) {
        if (!camera_row(row, sizeof row)) {
            return false;
        }
        person_camera_row(row, NULL);
    }
    return true;
}

int main(void) {
    person_init();
    while (next_frame()) {
        const uint32_t best = person_best(0);
        decided(best, person_label(0, best), person_value(0, best));
    }
    return 0;
}
