/* SPDX-License-Identifier: Apache-2.0 */
/* Zephyr's name for variables in tightly coupled memory. */
#ifndef ZEPHYR_LINKER_SECTION_TAGS_H
#define ZEPHYR_LINKER_SECTION_TAGS_H
#define __dtcm_bss_section __attribute__((section(".dtcm_bss")))
#endif
