/* SPDX-License-Identifier: Apache-2.0 */
/* What your board gives these examples: write these functions. A sensor's returns false once there is nothing more to come;
 * on a board that is never. */
#ifndef SENSORS_H
#define SENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The next row of the camera's frames, top first, as the driver delivers it. */
bool camera_row(uint8_t *row, size_t bytes);
/* What the front end makes of the next stretch of sound, for instance the logarithms of 40 bands every 10 ms. */
bool microphone_features(float *features, size_t count);
/* One sample of the accelerometer: x, y and z in g. */
bool imu_sample(float axes[3]);

/* What the model says: a class, its label or NULL, and its real value. */
void decided(uint32_t best, const char *label, float value);

#endif
