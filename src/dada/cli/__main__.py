"""`python -m dada.cli` is the `dada` command."""

from dada.cli import main

main()
