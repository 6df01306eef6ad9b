#!/usr/bin/env python3
"""Keeps the "Break it" of a lesson's page true: makes the change that the page describes in a copy
of the file, compiles and runs the lesson's test on it, and expects what the page says is printed.

    break_it.py PAGE -- COMPILER FLAG...

After the words "Break it" the page links the file to change and shows three fenced blocks: the line
to change, the line in its place, what is printed. In the last, `...` stands for anything, a line of
its own for any lines. Run in the root of the repository."""

import pathlib
import re
import subprocess
import sys
import tempfile


def fail(message):
    sys.exit(f"break_it: {message}")


def parse(page):
    """The file to change, and the texts of the three blocks."""
    text = page.read_text()
    if text.count("**Break it.**") != 1:
        fail(f"{page}: expected one paragraph that begins with **Break it.**")
    text = text.split("**Break it.**")[1]
    link = re.search(r"\]\(([^)#]+)\)", text)
    blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.M | re.S)
    if not link or len(blocks) < 3:
        fail(f"{page}: expected a link to the file and three fenced blocks after **Break it.**")
    return page.parent / link[1], blocks[0], blocks[1], blocks[2]


def change(source, old, new):
    text = source.read_text()
    if text.count(old) != 1:
        fail(f"{source}: holds {text.count(old)} times, expected once:\n{old}")
    return text.replace(old, new)


def pattern_of(printed):
    """`printed` as a regular expression that finds its lines one after another."""
    lines = [line for line in printed.splitlines() if line.strip() != ""]
    parts = [r"(?:.*\n)*?" if line.strip() == "..." else
             r".*?".join(map(re.escape, line.split("..."))) + r"\n" for line in lines]
    return re.compile("".join(parts))


def main():
    arguments = sys.argv[1:]
    if len(arguments) < 3 or arguments[1] != "--":
        fail("usage: break_it.py PAGE -- COMPILER FLAG...")
    page, command = pathlib.Path(arguments[0]), arguments[2:]
    source, old, new, printed = parse(page)
    tests = sorted(page.parent.glob(page.stem + "*_test.cc"))
    if len(tests) != 1:
        fail(f"{page}: has {len(tests)} tests beside it, expected one")
    with tempfile.TemporaryDirectory() as folder:
        changed = pathlib.Path(folder) / source
        changed.parent.mkdir(parents=True)
        changed.write_text(change(source, old, new))
        program = pathlib.Path(folder) / "program"
        # the changed file is found first, everything else where it is
        subprocess.run([command[0], f"-I{folder}", "-I.", str(tests[0]), *command[1:],
                        "-o", str(program)], check=True)
        run = subprocess.run([str(program)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace")
    if run.returncode == 0:
        fail(f"{page}: the change was made and no test fails")
    if not pattern_of(printed).search(run.stdout):
        fail(f"{page}: is not what is printed:\n{printed}\nprinted was:\n{run.stdout}")
    print(f"{page}: as it says")


if __name__ == "__main__":
    main()
