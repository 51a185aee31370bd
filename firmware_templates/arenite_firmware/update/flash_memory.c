/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is written like any other, as if it were flash: for emulated boards. */
#include <string.h>

#include "flash_driver.h"
#include "update_config.h"

bool flash_erase(void *context, uint32_t address) {
    (void)context;
    memset((uint8_t *)(uintptr_t)address, 0xFF, UPDATE_SECTOR_BYTES);
    return true;
}

bool flash_write(void *context, uint32_t address, const uint8_t *from, uint32_t bytes) {
    (void)context;
    volatile uint8_t *to = (volatile uint8_t *)(uintptr_t)address;
    for (uint32_t i = 0; i < bytes; i++) {
        to[i] &= from[i]; /* writing clears bits and sets none */
    }
    return true;
}
