#!/usr/bin/env python3
"""Runs the commands that the pages show, as a reader would type them, in a clean copy of the repository.

    commands_test.py TOOL           `./run attnproof` and `./run fuzz` use TOOL, a built attnproof; other
                                    commands of ./run are not run
    commands_test.py --slow         everything is built and run from nothing, what is marked slow, too

A fenced block is run if the line before it is <!-- run --> (every command ends with status 0),
<!-- run: fails --> (with status 1: a fault was found), or <!-- run: slow --> (as the first, in --slow
only). A block after it with <!-- prints --> before it is what its last command prints, with `...` for
anything. In any other block of README.md, the lines that begin with `./run attnproof` are run. Where
TOOL is used, `--seconds N` becomes `--seconds 1`. A backslash at the end of a line continues it."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from break_it import pattern_of

BLOCK = re.compile(r"(?:^<!-- run(?P<mark>: \w+)? -->\n)?^```[^\n]*\n(?P<text>.*?)^```$"
                   r"(?:\s+^<!-- prints -->\n^```[^\n]*\n(?P<printed>.*?)^```$)?", re.M | re.S)

SHIM = """#!/bin/bash
# ./run of the test: the tool that is built already.
command=$1
shift
case $command in
  attnproof) exec {tool} "$@" ;;
  fuzz) exec {tool} fuzz "$@" ;;
  *) echo "commands_test: not run here: ./run $command" ;;
esac
"""


def commands_of(page):
    """(kind, command, what it prints or None) for each command of the page that is to be run."""
    for match in BLOCK.finditer(page.read_text()):
        marked = match[0].startswith("<!--")
        if not marked and page.name != "README.md":
            continue
        lines = [line.strip() if marked else line.split("#")[0].strip()
                 for line in match["text"].replace("\\\n", " ").splitlines()]
        commands = [line for line in lines if line and (marked or line.startswith("./run attnproof"))]
        for command in commands:
            printed = match["printed"] if command is commands[-1] else None
            yield (match["mark"] or ": passes")[2:], command, printed


def copy_of(root, folder):
    shutil.copytree(root, folder, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns(".git", "build*", "__pycache__"))


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: commands_test.py TOOL, or commands_test.py --slow")
    slow = sys.argv[1] == "--slow"
    root, faults, count = pathlib.Path(".").resolve(), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        copy_of(root, folder)
        if not slow:
            tool = pathlib.Path(sys.argv[1]).resolve()
            (folder / "run").write_text(SHIM.format(tool=f"'{tool}'"))
        for page in sorted([folder / "README.md", *(folder / "docs").rglob("*.md")]):
            for kind, command, printed in commands_of(page):
                if kind == "slow" and not slow:
                    continue
                if not slow:
                    command = re.sub(r"--seconds [\d.]+", "--seconds 1", command)
                run = subprocess.run(["bash", "-c", command], cwd=folder, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                count += 1
                print(f"{page.relative_to(folder)}: {command}")
                wrong = run.returncode != (1 if kind == "fails" else 0)
                if wrong or (printed and not pattern_of(printed).search(run.stdout)):
                    faults += 1
                    print(f"  ended with status {run.returncode}, as a block that {kind}, and printed"
                          f"\n{run.stdout}\nexpected was\n{printed or 'anything'}")
    print(f"commands_test: {count} commands, {faults} faults")
    sys.exit(faults > 0 or count == 0)


if __name__ == "__main__":
    main()
