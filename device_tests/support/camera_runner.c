/* SPDX-License-Identifier: Apache-2.0 */
/* Runs preprocessing on frames from standard input: for each, native uint32_t number of the case, stride, bytes; then the
 * frame. Writes the input that the model would see. Buffers have exactly the size that was asked for, so that sanitisers
 * see a byte too many. The same frame goes through row by row, each row in a buffer of its own, and must give the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "camera_cases.h"

static void *allocated(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        abort();
    }
    return memory;
}

static void demand(int holds, const char *what) {
    if (!holds) {
        fprintf(stderr, "%s\n", what);
        exit(3);
    }
}

static uint8_t *copied(const uint8_t *from, size_t bytes) {
    uint8_t *copy = allocated(bytes);
    memcpy(copy, from, bytes);
    return copy;
}

static void by_rows(const camera_case_t *it, const uint8_t *frame, uint32_t stride, uint8_t *input) {
    const arenite_camera_t *camera = it->camera;
    const size_t row_bytes = (size_t)camera->width * camera->pixels.step;
    uint8_t *memory = allocated(it->memory_bytes);
    arenite_picture_t picture;
    arenite_picture_begin(&picture, camera, memory);
    demand(!arenite_picture_give(&picture, NULL), "a row came before the frame did");
    for (uint32_t y = 0; y < camera->height; y++) {
        uint8_t *row = copied(frame + (size_t)y * stride, row_bytes), *chroma = NULL;
        if (camera->pixels.planes == 2) {
            chroma = copied(frame + (size_t)(camera->height + y / 2) * stride, row_bytes);
        }
        demand(arenite_picture_take(&picture, row, chroma), "a row was refused");
        free(row);
        free(chroma);
        arenite_picture_t ready = picture;
        while (arenite_picture_give(&picture, input)) {
            input += camera->row_step;
            demand(!arenite_picture_take(&ready, NULL, NULL), "a row was taken over one that is needed");
            ready = picture;
        }
    }
    demand(picture.given == camera->out_height, "rows of the input are missing");
    demand(!arenite_picture_take(&picture, NULL, NULL), "a row was taken behind the frame");
    free(memory);
}

int main(void) {
    uint32_t head[3];
    while (fread(head, sizeof head, 1, stdin) == 1) {
        const camera_case_t *it = &camera_cases[head[0]];
        uint8_t *frame = allocated(head[2]), *memory = allocated(it->memory_bytes);
        uint8_t *input = allocated(it->input_bytes), *again = allocated(it->input_bytes);
        demand(fread(frame, 1, head[2], stdin) == head[2], "the frame is cut off");
        arenite_picture_frame(it->camera, memory, frame, head[1], input);
        by_rows(it, frame, head[1], again);
        demand(memcmp(input, again, it->input_bytes) == 0, "row by row gives other bytes");
        fwrite(input, 1, it->input_bytes, stdout);
        free(frame);
        free(memory);
        free(input);
        free(again);
    }
    return 0;
}
