/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ARENITE_LIMITS_H
#define ARENITE_LIMITS_H

#define ARENITE_MAX_POINTERS 2
#define ARENITE_MOST_LAYERS 3

#endif
