#!/usr/bin/env python3
"""A page with a picture of every registered mask and mod, drawn by the tool.

    gallery.py TOOL FOLDER         writes FOLDER/gallery.md and the pictures beside it
    gallery.py --check TOOL NAMES  writes them to a temporary folder and compares them with what the
                                   program NAMES prints: "mask NAME" or "mod NAME", a line each
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

INTRODUCTION = """# Gallery: every mask and mod {#gallery}

Drawn by `attnproof show` from the code that kernels run, with the parameters and example tables of
the registry, for 64 queries (downwards) and 64 keys (to the right).

Masks: the blocks of 16 x 16 that are full (green), empty (grey) and partial; in partial ones, the pairs
that attend are orange. Mods: what each does to a score, as a heat map.
"""


def draw(tool, kind, name, picture):
    blocks = ["--block", "16"] if kind == "mask" else []
    subprocess.run([tool, "show", kind, name, "--svg", str(picture), *blocks],
                   check=True, stdout=subprocess.DEVNULL)


def escaped(text):
    """Markdown shows `text` as it is."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", text)


def section(kind, entry):
    name = entry["name"]
    home = f", [{entry['header']}](@ref {entry['header']})" if entry["header"] else ""
    lines = [f"### {escaped(name)} {{#{kind}_{name}}}", "", escaped(entry["line"]) + home, "",
             f"    {entry['expression']}", "", f"![{kind} {name}]({kind}_{name}.svg)", ""]
    return "\n".join(lines)


def write(tool, folder):
    folder.mkdir(parents=True, exist_ok=True)
    names = folder / "names.json"
    subprocess.run([tool, "show", "list", "--json", str(names)], check=True,
                   stdout=subprocess.DEVNULL)
    catalogue = json.loads(names.read_text())
    page = [INTRODUCTION]
    for kind, title in (("mask", "Masks"), ("mod", "Mods")):
        page.append(f"## {title} {{#gallery_{kind}s}}\n")
        for entry in catalogue[kind + "s"]:
            draw(tool, kind, entry["name"], folder / f"{kind}_{entry['name']}.svg")
            page.append(section(kind, entry))
    (folder / "gallery.md").write_text("\n".join(page))


def check(tool, names):
    expected = subprocess.run([names], check=True, stdout=subprocess.PIPE, text=True).stdout.split("\n")
    expected = sorted(line for line in expected if line)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write(tool, folder)
        shown = sorted(re.findall(r"^!\[(.*?)\]", (folder / "gallery.md").read_text(), re.M))
        missing = set(expected) ^ set(shown)
        if missing or len(expected) != len(shown):
            sys.exit(f"gallery: {len(shown)} pictures of {len(expected)}; not in both: "
                     + ", ".join(sorted(missing)))
        for line in expected:
            picture = folder / (line.replace(" ", "_") + ".svg")
            shapes = len(list(xml.etree.ElementTree.parse(picture).getroot().iter()))
            if shapes < 10:
                sys.exit(f"gallery: the picture of {line} has {shapes} shapes")
    print(f"gallery: {len(expected)} masks and mods, each with a picture")


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] == "--check":
        check(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        write(sys.argv[1], pathlib.Path(sys.argv[2]))
    else:
        sys.exit("usage: gallery.py TOOL FOLDER, or gallery.py --check TOOL NAMES")
