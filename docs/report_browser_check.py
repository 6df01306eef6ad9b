#!/usr/bin/env python3
"""Makes the page of a run that fails (attnproof replay --html), opens it in headless Chromium, in a
window as narrow as a phone's, and expects that the heat map of O is drawn, with its worst cell outlined,
and that nothing is wider than the window.

    report_browser_check.py TOOL [SCREENSHOT]

Ends with 77, which is a skipped test, where there is no Chromium."""

import pathlib
import re
import subprocess
import sys
import tempfile

from browser_check import chromium, run

WIDTH, HEIGHT = 390, 1800
REPLAY = ["replay", "--planted", "M21", "v1 B1 Hq1 Hkv1 Sq1 Skv33 D8 Dv8 bf16", "--html"]

# No window is that narrow, so that the page is in a frame; what was measured becomes the title.
FRAME = """<!DOCTYPE html><title>not measured</title><style>body { margin: 0 }</style>
<iframe src="page.html" width="WIDTH" height="HEIGHT" style="border: 0"></iframe>
<script>addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const shown = selector => [...page.querySelectorAll(selector)]
      .filter(e => e.getBoundingClientRect().width > 2 && e.getBoundingClientRect().height > 2).length;
  document.title = "measured " + [page.documentElement.scrollWidth, shown("figure.heatmap > svg"),
      shown("figure.heatmap .worst"), shown("figure.heatmap path.far, figure.heatmap path.out")].join(" ");
});</script>"""


def main():
    browser = chromium()
    if not browser:
        print("report_browser_check: NOT TESTED: the page was not opened, as there is no Chromium here")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        status = subprocess.run([sys.argv[1], *REPLAY, str(folder / "page.html")],
                                stdout=subprocess.DEVNULL).returncode
        frame = folder / "frame.html"
        frame.write_text(FRAME.replace("WIDTH", str(WIDTH)).replace("HEIGHT", str(HEIGHT)))
        printed = run(browser, "--dump-dom", frame.as_uri())
        if len(sys.argv) > 2:
            run(browser, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={sys.argv[2]}",
                frame.as_uri())
    found = re.search(r"<title>measured (\d+) (\d+) (\d+) (\d+)</title>", printed)
    width, maps, worst, outside = map(int, found.groups()) if found else (0, 0, 0, 0)
    wrong = status != 1 or not found or width > WIDTH or maps != 3 or worst != maps or outside == 0
    print(f"report_browser_check: exit status {status}, {width} wide in {WIDTH}, {maps} heat maps, "
          f"{worst} worst cells outlined, {outside} with cells outside" + (" <- wrong" if wrong else ""))
    sys.exit(wrong)


if __name__ == "__main__":
    main()
