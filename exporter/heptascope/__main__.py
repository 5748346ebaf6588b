"""`python -m heptascope`."""

from heptascope.cli import main

if __name__ == "__main__":
    main()
