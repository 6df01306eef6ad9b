#!/usr/bin/env python3
"""Checks the Markdown pages as they lie in the repository: every relative link leads to a file, every
anchor to a heading, and every block of code that says where it comes from is what stands there:

    <!-- snippet: FILE TAG -->     before a fenced block: the lines between two `//! [TAG]` of FILE,
                                   or two `#! [TAG]` of a script, less the indentation that all have

    check_pages.py [ROOT]"""

import pathlib
import re
import sys
import textwrap

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
SNIPPET = re.compile(r"^<!-- snippet: (\S+) (\S[^>]*?) -->\n```\w*\n(.*?)^```$", re.M | re.S)


def pages(root):
    hidden_or_built = re.compile(r"(^|/)(\.|build)")
    return [p for p in sorted(root.rglob("*.md"))
            if not hidden_or_built.search(str(p.relative_to(root)))]


def without_code(text):
    """The text without fenced and indented blocks and without inline code."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(?: {4}|\t).*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "`code`", text)


def anchors(page):
    """The anchors that GitHub makes of headings."""
    found = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", page.read_text(),
                                                   flags=re.M | re.S), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").strip().lower()
        found.add(re.sub(r"[^\w\- ]", "", heading).replace(" ", "-"))
    return found


def link_faults(root, page):
    for target in LINK.findall(without_code(page.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page.resolve()
        if not file.exists() or root.resolve() not in [file, *file.parents]:
            yield f"{page}: leads nowhere: {target}"
        elif anchor and anchor not in anchors(file):
            yield f"{page}: no such heading: {target}"


def snippet(file, tag):
    parts = re.split(rf"^ *(?://|#)! \[{re.escape(tag)}\]\n", file.read_text(), flags=re.M)
    return textwrap.dedent(parts[1]) if len(parts) == 3 else None


def snippet_faults(root, page):
    for name, tag, shown in SNIPPET.findall(page.read_text()):
        file = root / name
        code = snippet(file, tag) if file.exists() else None
        if code is None:
            yield f"{page}: {name} has no part between two `//! [{tag}]`"
        elif code != shown:
            yield f"{page}: is not what stands in {name} [{tag}]:\n{shown}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    all_pages = pages(root)
    faults = [f for page in all_pages
              for f in [*link_faults(root, page), *snippet_faults(root, page)]]
    snippets = sum(len(SNIPPET.findall(p.read_text())) for p in all_pages)
    marked = sum(p.read_text().count("<!-- snippet:") for p in all_pages)
    if marked != snippets:
        faults.append(f"{marked} snippets are marked, {snippets} have a fenced block after them")
    for fault in faults:
        print(fault)
    print(f"check_pages: {len(all_pages)} pages, {snippets} snippets, {len(faults)} faults")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
