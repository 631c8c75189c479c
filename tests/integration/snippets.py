"""The examples of README.md's part "Use it", each run against a real daemon."""
import re

BLOCK = re.compile(r"^### (\w+)\n.*?^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples(readme, languages):
    """Title, language and code of each that is in one of these languages."""
    text = readme.read_text().split("## Use it", 1)[1].split("\n## ", 1)[0]
    return [block for block in BLOCK.findall(text) if block[1] in languages]


def check(language, code, folder, port):
    """language: a function that runs code in a folder."""
    folder.mkdir()
    result = language(code.replace("5625", str(port)), folder)
    if result.returncode != 0 or not re.search(r"fencing token \d{10}", result.stdout):
        raise AssertionError(result.stdout)
