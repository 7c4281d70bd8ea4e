"""`python -m koboshi` is the `koboshi` command."""

from koboshi.cli.main import main

if __name__ == "__main__":
    main()
