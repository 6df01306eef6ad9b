#!/usr/bin/env python3
"""Checks the site that Doxygen made: every link, anchor and image of every page is there, and Doxygen
had nothing to say but that a member of a documented class has no text of its own.

    check_site.py SITE      the folder with html/ and warnings.txt

Not asked for: text for each member of a class (the class says what its members are where names do
not), and for names that users do not meet: those below, and those of `detail` and of sources."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# The tool; the kernels, read by those who work on them, beside their code; helpers of tests. What users
# include of optimized/ is asked for.
PUBLIC = r"(attention\w*|default_configuration|implementations|numerics|planted_faults|simt/(simt|launch|memory|fault|types|lane))\.h"
INTERNAL = re.compile(r"/fuzz/|/optimized/(?!" + PUBLIC + r":)"
                      r"|/(fixtures|\w+_fixtures|tape|\w+_samples)\.h:|\.cc:|\bdetail\b")
MEMBER = re.compile(r"Member .* of (class|struct|union) .* is not documented")
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


def warning_faults(text):
    for line in text.splitlines():
        if UNDOCUMENTED.search(line) and (MEMBER.search(line) or INTERNAL.search(line)):
            continue
        if line.strip():
            yield line


def main():
    site = pathlib.Path(sys.argv[1])
    pages = list((site / "html").rglob("*.html"))
    faults = list(link_faults(site / "html")) + list(warning_faults((site / "warnings.txt").read_text()))
    for fault in faults:
        print(fault)
    print(f"check_site: {len(pages)} pages, {len(faults)} faults")
    sys.exit(bool(faults) or not pages)


if __name__ == "__main__":
    main()
