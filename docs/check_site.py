#!/usr/bin/env python3
"""Checks the site that Doxygen made: every link, anchor and image of every page is there, and Doxygen
had nothing to say.

    check_site.py SITE      the folder with html/ and warnings.txt

Every name has text of its own, and every member of a type, but those that `excused` knows."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# What users include of optimized/. The other headers are the kernels and what runs them: their names
# are documented, and of members of their types those that say a shape or a unit.
PUBLIC = (r"(attention\w*|call_check|default_configuration|implementations|launch_support|numerics"
          r"|planted_faults|simt/(simt|launch|memory|fault|types|lane))\.h")
EXCUSED = [re.compile(pattern) for pattern in (
    r"(Compound|of \w+) (\w+::)+detail\b",
    r"/(fixtures|\w+_fixtures|tape|\w+_samples)\.h:",  # helpers of tests
    r"/optimized/(?!" + PUBLIC + r":).* of (class|struct|union) ",
    r"/simt/(warp|thread)_engine\.h:",  # optimized/simt/cuda_target.h documents the functions of all three
    # what a class says of itself: how it is made, and what operators and the functions of
    # mods/lang/number.h do on it
    r"Member (\w+)\(.*\) \(function\) of (class|struct) (\w+::)*\1(<.*>)? ",
    r"Member (operator|number_\w+\()",
    # what it overrides has text; = default needs none
    r"( override| ?=default) \(function\) of (class|struct) ",
    r"Member kv_blocks\(\)",  # the text above q_blocks() is of both: one line has no room for more
)]
# Doxygen asks nothing of what stands in a namespace that has no text, and makes no page of it.
NAMESPACES = ("attn", "attn::fuzz", "attn::reference", "attn::simt")
UNDOCUMENTED = re.compile(r"is not documented")
# what leads out of the site, and the one anchor that Doxygen itself forgets: that of the list of
# nested classes, where all of them are private
ELSEWHERE = re.compile(r"^(javascript:|https?:|mailto:|#$|#nested-classes$)")


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name in ("id", "name") and value:
                self.anchors.add(value)
            elif name in ("href", "src", "data") and value and not ELSEWHERE.match(value):
                self.links.append(value)


def link_faults(folder):
    pages = {p.name: Page(p.read_text(errors="replace")) for p in folder.glob("*.html")}
    pages |= {p.relative_to(folder).as_posix(): Page(p.read_text(errors="replace"))
              for p in folder.glob("*/**/*.html")}
    for name, page in sorted(pages.items()):
        for link in page.links:
            target, _, anchor = urllib.parse.unquote(link).partition("#")
            target = target.split("?")[0]
            file = (pathlib.PurePosixPath(name).parent / target).as_posix() if target else name
            file = re.sub(r"^(\./)+", "", re.sub(r"[^/]+/\.\./", "", file))
            if not (folder / file).exists():
                yield f"{name}: leads nowhere: {link}"
            elif anchor and file in pages and anchor not in pages[file].anchors:
                yield f"{name}: no such anchor: {link}"


def has_text_beside(warning):
    """Whether the line that the warning names has a comment of Doxygen's, above or at its end: in
    `int a, b;  ///< text` it is of both names, and Doxygen gives it to one."""
    file, number = re.match(r"(.*?):(\d+):", warning).groups()
    above, line = ([""] + pathlib.Path(file).read_text().split("\n"))[int(number) - 1:int(number) + 1]
    return "///<" in line or above.strip().startswith("/// ")


def excused(warning):
    return any(pattern.search(warning) for pattern in EXCUSED) or has_text_beside(warning)


def warning_faults(text):
    for line in text.splitlines():
        if UNDOCUMENTED.search(line) and excused(line):
            continue
        if line.strip():
            yield line


def namespace_faults(folder):
    for name in NAMESPACES:
        if not (folder / f"namespace{name.replace('::', '_1_1')}.html").exists():
            yield f"namespace {name}: has no text, so that none of its names was asked for any"


def main():
    site = pathlib.Path(sys.argv[1])
    pages = list((site / "html").rglob("*.html"))
    faults = [*link_faults(site / "html"), *namespace_faults(site / "html"),
              *warning_faults((site / "warnings.txt").read_text())]
    for fault in faults:
        print(fault)
    print(f"check_site: {len(pages)} pages, {len(faults)} faults")
    sys.exit(bool(faults) or not pages)


if __name__ == "__main__":
    main()
