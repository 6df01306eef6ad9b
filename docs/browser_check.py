#!/usr/bin/env python3
"""Opens pages of the site in headless Chromium, in a window as wide as a phone's, and expects that no
page is wider than the window and that every picture is shown.

    browser_check.py SITE [FOLDER]     FOLDER: where to leave screenshots

Ends with 77, which is a skipped test, where there is no Chromium."""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAGES = ["index.html", "gallery.html", "md_docs_contract.html", "md_docs_lessons_09_a_warps_view.html",
         "structattn_1_1Causal.html"]
WIDTH, HEIGHT = 412, 900

# The page in a frame, as no window is that narrow. The browser has no voice but the page that it prints:
# what was measured becomes its title.
FRAME = """<!DOCTYPE html><title>not measured</title><style>body { margin: 0 }</style>
<iframe src="PAGE" width="WIDTH" height="HEIGHT" style="border: 0"></iframe>
<script>addEventListener("load", () => {
  const page = document.querySelector("iframe").contentDocument;
  const pictures = [...page.images, ...page.querySelectorAll("object")];
  const shown = p => p.getBoundingClientRect().width > 0
      && (p.tagName === "OBJECT" ? p.contentDocument?.rootElement : p.naturalWidth > 0);
  const missing = pictures.filter(p => !shown(p));
  document.title = "measured " + page.documentElement.scrollWidth + " " + pictures.length + " "
      + missing.length;
});</script>"""


def chromium():
    for name in ("chromium", "chromium-browser", "google-chrome", "chrome"):
        if path := shutil.which(name):
            return path
    return None


def run(browser, *arguments):
    # no sandbox: containers and root have none to give; the pages are our own
    with tempfile.TemporaryDirectory() as profile:
        return subprocess.run(
            [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--allow-file-access-from-files", f"--user-data-dir={profile}",
             f"--window-size={WIDTH + 100},{HEIGHT}", "--virtual-time-budget=5000", *arguments],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=120).stdout


def main():
    browser = chromium()
    if not browser:
        print("browser_check: NOT TESTED: the site was not opened, as there is no Chromium here")
        sys.exit(77)
    html = pathlib.Path(sys.argv[1]).resolve() / "html"
    faults = 0
    for name in PAGES:
        page = html / name
        frame = html / ("framed_" + name)
        frame.write_text(FRAME.replace("PAGE", name).replace("WIDTH", str(WIDTH))
                         .replace("HEIGHT", str(HEIGHT)))
        printed = run(browser, "--dump-dom", frame.as_uri())
        if len(sys.argv) > 2:
            picture = pathlib.Path(sys.argv[2]) / (page.stem + ".png")
            run(browser, f"--screenshot={picture}", frame.as_uri())
        frame.unlink()
        found = re.search(r"<title>measured (\d+) (\d+) (\d+)</title>", printed)
        width, pictures, missing = map(int, found.groups()) if found else (0, 0, 0)
        wrong = not found or width > WIDTH or missing > 0
        faults += wrong
        print(f"{name}: {width} wide in {WIDTH}, {pictures} pictures, {missing} missing"
              + (" <- wrong" if wrong else ""))
    print(f"browser_check: {len(PAGES)} pages, {faults} faults")
    sys.exit(faults > 0)


if __name__ == "__main__":
    main()
