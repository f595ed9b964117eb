"""``python -m pipeline``: the same as ``kernelhouse``."""

from pipeline.cli import main

if __name__ == "__main__":
    main()
