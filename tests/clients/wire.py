"""The test's own view of a server: a Wire whose errors are strings that begin with `-`."""
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "support"))

import resp  # noqa: E402 pylint: disable=wrong-import-position


class Wire(resp.Wire):
    """One connection."""

    def reply(self):
        value = self.receive()
        return f"-{value}" if isinstance(value, resp.Error) else value
