"""`python -m paperlib.reproduction.execute CHAPTER PROFILE [NAME=VALUE ...]`: one chapter in a process of its own."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

from paperlib.reproduction import ReproductionError
from paperlib.reproduction.runner import execute_chapter

if __name__ == "__main__":
    chapter, profile, *settings = sys.argv[1:]
    parameters = {
        name: ast.literal_eval(value)
        for name, _, value in (item.partition("=") for item in settings)
    }
    try:
        execute_chapter(Path(chapter), profile, parameters)
    except (ReproductionError, ValueError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)
