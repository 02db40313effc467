"""``python -m resourcesync``."""

from resourcesync.cli.main import main

if __name__ == "__main__":
    main()
