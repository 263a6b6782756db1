"""`python -m dada.cli` is the `dada` command."""

import sys

from dada.cli import main

sys.exit(main())
