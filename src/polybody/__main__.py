"""`python -m polybody` is the `polybody` command."""

from polybody.cli import main

if __name__ == "__main__":
    main()
