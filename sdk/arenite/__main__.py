# SPDX-License-Identifier: Apache-2.0
"""`python -m arenite` is the command `arenite`."""

import sys

from arenite.cli import main

sys.exit(main())
