"""`python -m jaxdenoc.cli`, where the program itself is not on the path."""

from . import main

if __name__ == "__main__":
    raise SystemExit(main())
