"""`python -m fedkt`: the command line."""

from fedkt.cli import main

main()
