/* SPDX-License-Identifier: Apache-2.0 */
/* What a board says of itself apart from any inference: what it is, how it fares, why it started. */
#ifndef ARENITE_HEALTH_H
#define ARENITE_HEALTH_H

#include <stdbool.h>
#include <stdint.h>

#include "app.h"
#include "command.h"

/* Forgets everything since the last start. */
void health_start(void);

/* An answer that was not APP_OK. */
void health_refused(uint8_t command, app_status_t status);

/* Inferences that ended, and the deepest stack they took. */
void health_ran(uint32_t inferences, uint32_t stack_peak_bytes);

/* Parameters, as `parameter` sets them. */
bool health_marker_is_on(void);
bool health_may_sleep(void);

app_status_t health_about(const app_request_t *request, app_reply_t *reply, uint16_t layers);
app_status_t health_heartbeat(const app_request_t *request, app_reply_t *reply, uint32_t damaged_frames);
app_status_t health_reset_cause(const app_request_t *request, app_reply_t *reply);
app_status_t health_parameter(const app_request_t *request, app_reply_t *reply);

#endif
