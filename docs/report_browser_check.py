#!/usr/bin/env python3
"""Makes the page of a run that fails (attnproof replay --html) and of tensors that are wrong (attnproof
check --html), opens each in headless Chromium, in a window as narrow as a phone's, and expects that the
heat maps are drawn, each with its worst cell outlined, and that nothing is wider than the window.

    report_browser_check.py TOOL [FOLDER]     FOLDER: where to leave screenshots

Ends with 77, which is a skipped test, where there is no Chromium."""

import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

from browser_check import chromium, run

WIDTH, HEIGHT = 390, 1800
REPLAY = ["replay", "--planted", "M21", "v1 B1 Hq1 Hkv1 Sq1 Skv33 D8 Dv8 bf16"]

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


def write_dumped(path):
    """Two queries, three keys, all scores 0 and V = 1: O is 1, and 2 is written for the second query."""
    tensors = {"q": [0, 0], "k": [0, 0, 0], "v": [1, 1, 1], "o": [1, 2]}
    header, data = {}, b""
    for name, values in tensors.items():
        stored = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [1, 1, len(values), 1],
                        "data_offsets": [len(data), len(data) + len(stored)]}
        data += stored
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def is_right(browser, folder, command, expected_maps, screenshot):
    status = subprocess.run([*command, "--html", str(folder / "page.html")],
                            stdout=subprocess.DEVNULL).returncode
    frame = folder / "frame.html"
    frame.write_text(FRAME.replace("WIDTH", str(WIDTH)).replace("HEIGHT", str(HEIGHT)))
    printed = run(browser, "--dump-dom", frame.as_uri())
    if screenshot:
        run(browser, f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={screenshot}", frame.as_uri())
    found = re.search(r"<title>measured (\d+) (\d+) (\d+) (\d+)</title>", printed)
    width, maps, worst, outside = map(int, found.groups()) if found else (0, 0, 0, 0)
    right = status == 1 and found and width <= WIDTH and maps == worst == expected_maps and outside > 0
    print(f"report_browser_check: {command[1]}: exit status {status}, {width} wide in {WIDTH}, {maps} heat "
          f"maps, {worst} worst cells outlined, {outside} with cells outside" + ("" if right else " <- wrong"))
    return right


def main():
    browser = chromium()
    if not browser:
        print("report_browser_check: NOT TESTED: no page was opened, as there is no Chromium here")
        sys.exit(77)
    tool, screenshots = sys.argv[1], sys.argv[2:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_dumped(folder / "dumped.safetensors")
        pages = ([tool, *REPLAY], 3), ([tool, "check", str(folder / "dumped.safetensors")], 2)
        right = [is_right(browser, folder, command, maps,
                          f"{screenshots[0]}/{command[1]}.png" if screenshots else None)
                 for command, maps in pages]
    sys.exit(not all(right))


if __name__ == "__main__":
    main()
