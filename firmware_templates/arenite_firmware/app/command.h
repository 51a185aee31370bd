/* SPDX-License-Identifier: Apache-2.0 */
/* A request and its reply, as the functions that answer commands see them. */
#ifndef ARENITE_COMMAND_H
#define ARENITE_COMMAND_H

#include <stdint.h>

typedef struct {
    const uint8_t *payload;
    uint32_t bytes;
    uint8_t sequence;
} app_request_t;

/* Replies overwrite the request, which lies in the same buffer: read the request first. */
typedef struct {
    uint8_t *data;
    uint32_t bytes; /* 0 with every status but APP_OK and APP_DAMAGED */
} app_reply_t;

#endif
