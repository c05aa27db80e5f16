"""Writes every oracle file of this directory. See README.md."""

import importlib
import sys

from common import META


def main():
    print(", ".join(f"{k} {v}" for k, v in META.items()), flush=True)
    for name in sys.argv[1:] or ["operators", "special", "models", "half", "optimizers", "language_models"]:
        print(f"{name}: {importlib.import_module(name).write()}", flush=True)


if __name__ == "__main__":
    main()
