#!/usr/bin/env python3
"""Checks the site that Doxygen made: every link, anchor and image of every page is there, and Doxygen
had nothing to say but that a member of a documented class has no text of its own.

    check_site.py SITE      the folder with html/ and warnings.txt

Not asked for: text for each member of a class outside of fuzz/ (the class says what its members are
where names do not), and for names that users do not meet: those below, and those of `detail` and of
sources. Text beside `int a, b;` is of both, though Doxygen gives it to one of them alone; and a
function that overrides another has that one's, and one that is `= default` needs none."""

import html.parser
import pathlib
import re
import sys
import urllib.parse

# The kernels, read by those who work on them, beside their code; helpers of tests. What users include
# of optimized/ is asked for.
PUBLIC = r"(attention\w*|default_configuration|implementations|numerics|planted_faults|simt/(simt|launch|memory|fault|types|lane))\.h"
INTERNAL = re.compile(r"/optimized/(?!" + PUBLIC + r":)|/(fixtures|\w+_fixtures|tape|\w+_samples)\.h:|\.cc:|\bdetail\b")
MEMBER = re.compile(r"/(mods|masks|reference|optimized|docs)/.* Member .* of (class|struct|union) ")
OVERRIDES = re.compile(r"( override| =default) \(function\) of (class|struct) ")
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
    """Whether the line that the warning names has a comment of Doxygen's, above or at its end."""
    file, number = re.match(r"(.*?):(\d+):", warning).groups()
    above, line = ([""] + pathlib.Path(file).read_text().split("\n"))[int(number) - 1:int(number) + 1]
    return "///<" in line or above.strip().startswith("/// ")


def warning_faults(text):
    for line in text.splitlines():
        excused = MEMBER.search(line) or INTERNAL.search(line) or OVERRIDES.search(line)
        if UNDOCUMENTED.search(line) and (excused or has_text_beside(line)):
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
