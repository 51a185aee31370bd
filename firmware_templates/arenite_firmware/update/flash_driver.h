/* SPDX-License-Identifier: Apache-2.0 */
/* What a board's flash driver provides: the functions of update_flash_t, without a context. */
#ifndef ARENITE_FLASH_DRIVER_H
#define ARENITE_FLASH_DRIVER_H

#include <stdbool.h>
#include <stdint.h>

bool flash_read(void *context, uint32_t address, uint8_t *to, uint32_t bytes);
bool flash_erase(void *context, uint32_t address);
bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes);

#endif
