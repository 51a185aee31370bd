/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's name for variables in PSRAM, as it is with CONFIG_SPIRAM_ALLOW_BSS_SEG_EXTERNAL_MEMORY. */
#ifndef ESP_ATTR_H
#define ESP_ATTR_H
#define EXT_RAM_BSS_ATTR __attribute__((section(".ext_ram.bss")))
#endif
