#!/usr/bin/env python3
"""The workflow that docs/ci_gate.md shows is one: it parses, its jobs have steps that run something,
it installs the packages that `./run` installs, and the options it sets exist.

    check_workflow.py      in the root of the repository; status 77 without python3-yaml"""

import pathlib
import re
import sys

try:
    import yaml
except ImportError:
    print("NOT TESTED: the workflow of docs/ci_gate.md: there is no python3-yaml here")
    sys.exit(77)


def packages_of_run():
    text = pathlib.Path("run").read_text()
    lists = [re.search(rf"^{name}=\((.*?)\)", text, re.M | re.S)[1] for name in ("toolchain", "tool")]
    return set(" ".join(lists).split())


def faults(workflow):
    if set(workflow[True]) != {"push", "pull_request"}:  # YAML reads the key `on` as true
        yield "is not run at a push and a pull request"
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    yield from (f"a step runs nothing: {s}" for s in steps if ("run" in s) == ("uses" in s))
    commands = " ".join(step.get("run", "") for step in steps)
    install = re.search(r"apt-get install -y --no-install-recommends ([\w+. -]+)", commands)
    if not install or set(install[1].split()) != packages_of_run():
        yield f"installs other packages than ./run: {sorted(packages_of_run())}"
    options = pathlib.Path("CMakeLists.txt").read_text()
    yield from (f"no such option: {name}" for name in re.findall(r"-D (ATTN_\w+)", commands)
                if not re.search(rf"\b{name}\b", options))
    if "ctest --test-dir build" not in commands:
        yield "runs no tests"


found = list(faults(yaml.safe_load(pathlib.Path("docs/ci_gate/attnproof.yml").read_text())))
print("\n".join(found) or "check_workflow: no faults")
sys.exit(bool(found))
