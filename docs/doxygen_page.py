#!/usr/bin/env python3
"""Doxygen's filter for Markdown: doxygen_page.py FILE prints the page as Doxygen needs it. A relative
link to a source becomes a reference to its page; one to a file that is not on the site becomes plain
text. Links between pages are left to Doxygen."""

import pathlib
import re
import sys

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s#]+)(#[^)\s]+)?\)")
ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCES = {".h", ".cc"}
NOT_ON_SITE = re.compile(r"_(test|bench|unit|fails)\.cc$|^fuzz/.*\.cc$|^docs/consumer/")  # as in the Doxyfile


def link(page, match):
    text, target, anchor = match[1], match[2], match[3] or ""
    if re.match(r"[a-z]+:|@ref", target):
        return match[0]
    file = (page.parent / target).resolve()
    if file.is_dir() and (file / "README.md").exists():
        file = file / "README.md"
    if not file.is_relative_to(ROOT):
        return text
    name = file.relative_to(ROOT).as_posix()
    if file.suffix == ".md":
        return f"[{text.replace('`', '')}]({file}{anchor})"  # from the root of the machine: Doxygen looks there
    if file.suffix in SOURCES and not NOT_ON_SITE.search(name):
        return f"[{text.replace('`', '')}](@ref {name})"  # Doxygen would show the quotes
    return text


def main():
    page = pathlib.Path(sys.argv[1]).resolve()
    fenced = False
    for line in page.read_text().splitlines():
        fenced ^= line.startswith("```")
        if not fenced and not re.match(r" {4}|\t", line):
            line = LINK.sub(lambda match: link(page, match), line)
        print(line)


if __name__ == "__main__":
    main()
