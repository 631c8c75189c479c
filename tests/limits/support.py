"""Where the modules are that suites share."""
import pathlib
import sys

TESTS = pathlib.Path(__file__).resolve().parent.parent
sys.path.append(str(TESTS / "support"))
