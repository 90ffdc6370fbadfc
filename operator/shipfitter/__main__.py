"""`python -m shipfitter`."""

from shipfitter.cli import main

if __name__ == "__main__":
    main()
