#!/bin/bash
# What of compare_pytorch.py can be told without a GPU: it is valid Python, it refuses bad usage
# with a line, it exits 3 where there is no PyTorch or no GPU, and its table is right.
set -u
script=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/compare_pytorch.py
command -v python3 >/dev/null || { echo 'SKIPPED: there is no python3'; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export PYTHONPYCACHEPREFIX=$dir/cache
failures=0

# expect STATUS TEXT ARGUMENT...: runs the script; its only line of stderr holds TEXT.
expect() {
  local status=$1 text=$2 got
  shift 2
  python3 "$script" "$@" >"$dir/out" 2>"$dir/err"
  got=$?
  if ((got != status)) || ! grep -qF -- "$text" "$dir/out" "$dir/err"; then
    echo "FAILED: status $got, expected $status and '$text': $*"
    sed 's/^/    /' "$dir/out" "$dir/err"
    ((++failures))
  fi
}

python3 -m py_compile "$script" || ((++failures))
cat >"$dir/result.json" <<'TEXT'
{"bench": [{"name": "a", "variant": "full", "pass": "forward", "flops": 4e9,
            "ms": {"mean": 2.0}, "tflops": 2.0},
           {"name": "b", "variant": "window", "skipped": "out of time"}]}
TEXT
echo '{"status": "no GPU"}' >"$dir/none.json"

expect 0 'usage:' --help
expect 2 'usage:'
expect 2 'not a result of attnproof gpu-check' "$dir/missing.json"
expect 2 'not a result of attnproof gpu-check' "$dir/none.json"
expect 2 "--backends: 'slow'" "$dir/result.json" --backends slow
expect 2 '--filter' "$dir/result.json" --filter '('

# Neither PyTorch (one that cannot be imported stands in its place) nor a GPU.
mkdir "$dir/none" "$dir/cpu"
echo 'raise ImportError' >"$dir/none/torch.py"
printf 'class cuda:\n  is_available = staticmethod(lambda: False)\n' >"$dir/cpu/torch.py"
PYTHONPATH=$dir/none expect 3 'there is no PyTorch here' "$dir/result.json"
PYTHONPATH=$dir/cpu expect 3 'there is no GPU here' "$dir/result.json"
(($(wc -l <"$dir/err") == 1)) || { echo 'FAILED: more than a line'; ((++failures)); }

# The table: TFLOPS, and a ratio above 1 where attnproof is faster.
PYTHONPATH=$(dirname "$script") python3 - "$dir/result.json" <<'TEXT' || ((++failures))
import sys
import compare_pytorch as c

rows = c.read_rows(sys.argv[1])
rows[0]["pytorch"] = {"flash": c.summary([3.0, 5.0], 4e9, 7), "math": {"skipped": "out of memory"}}
flash = rows[0]["pytorch"]["flash"]
assert flash["ms"] == {"mean": 4.0, "std": 1.0, "min": 3.0, "max": 5.0, "runs": 2}, flash
assert flash["tflops"] == 1.0 and flash["peak_bytes"] == 7, flash
assert c.ratio(rows[0], "flash") == 2.0 and c.ratio(rows[0], "math") is None
assert c.ratio(rows[1], "flex") is None
assert c.backends_for(rows[0]) == c.BACKENDS and c.backends_for(rows[1]) == ("flex",)
lines = c.table(rows).splitlines()
assert lines[2] == "| a | 2.0 | 1.0 (2.00x) | - | - | out of memory | - |", lines[2]
assert lines[3] == "| b | out of time | - | - | - | - | - |", lines[3]
assert len({line.count("|") for line in lines}) == 1, lines
TEXT

((failures == 0)) && echo 'the script does what can be told without a GPU'
exit $((failures > 0))
