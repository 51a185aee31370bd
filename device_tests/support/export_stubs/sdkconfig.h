/* SPDX-License-Identifier: Apache-2.0 */
/* ESP-IDF's configuration: the tests give it on the command line. */
