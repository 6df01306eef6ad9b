#!/bin/bash
# cuda_report.sh BUDGET LOG...: a table of what each kernel needs on each architecture, from the
# logs of ptxas_log.sh, and exit status 1 if one spills more than the budget allows.
#
#   regs       registers a thread
#   spill      bytes stored to and loaded from local memory for want of registers
#   stack      bytes of local memory a thread, spills and arrays that are addressed by a variable
#   shared     bytes of shared memory a block: static, and the dynamic ones of its tile, where
#              optimized/shared_bytes.h says them; `?`: a tile that it does not list
set -euo pipefail
budget=${1:?usage: cuda_report.sh BUDGET LOG...}
shift
(($#)) || { echo "cuda_report: no logs: was a kernel compiled?" >&2; exit 3; }

# readable: mangled names on stdin, short ones on stdout.
readable() {
  c++filt | sed -E '
    s/\(anonymous namespace\):://g
    s/^void //
    s/\(int\)|\(bool\)//g
    s/attn::|cuda::|conformance::|simt:://g
    s/_kernel</</
    s/\(.*$//
    s/unsigned long/u64/g; s/unsigned int/u32/g; s/unsigned short/u16/g; s/unsigned char/u8/g
    s/ProgramMod, ProgramMask/ProgramMod+ProgramMask/g
    s/ >/>/g'
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One line a kernel and architecture: name, arch, registers, stores, loads, stack, static shared.
awk '
  function flush() {
    if (kernel != "") print kernel, arch, regs, stores, loads, stack, smem
    kernel = ""
  }
  /Compiling entry function/ {
    flush()
    split($0, part, "\047")
    kernel = part[2]; arch = part[4]; regs = stores = loads = stack = smem = 0
    mine = 0
  }
  /Function properties for/ { mine = ($NF == kernel) }
  /bytes spill stores/ && mine { stack = $1; stores = $5; loads = $9 }
  /: Used [0-9]+ registers/ {
    for (i = 1; i < NF; ++i) {
      if ($(i + 1) ~ /^registers/) regs = $i
      if ($i == "bytes" && $(i + 1) ~ /^smem/) smem = $(i - 1)
    }
  }
  END { flush() }' "$@" >"$work/raw"
[[ -s $work/raw ]] || { echo "cuda_report: the logs name no kernel" >&2; exit 3; }

cut -d' ' -f1 "$work/raw" | readable >"$work/names"

# Dynamic shared memory: KERNEL, TILE and bytes, from the names of symbols in the objects.
for log in "$@"; do
  nm "${log%.ptxas}" 2>/dev/null || true
done | awk '/shared_bytes_of_/ { print $NF }' | sort -u | c++filt |
  sed -nE 's/^.*shared_bytes_of_([a-z0-9_]+)<(.*), ([0-9]+)>\(\)$/\1\t\2\t\3/p' |
  sed -E 's/\(int\)|attn::|cuda:://g' >"$work/dynamic"

paste -d'\t' "$work/names" <(tr ' ' '\t' <"$work/raw") | sort -u | awk -F'\t' '
  FILENAME == budget {
    line = $0
    sub(/#.*/, "", line)
    if (split(line, word, " ") >= 2) { limit[++rules] = word[1]; pattern[rules] = word[2] }
    next
  }
  FILENAME == dynamic { prefix[++tiles] = $1; tile[tiles] = $2; bytes[tiles] = $3; next }
  function allowed(name,    i) {
    for (i = 1; i <= rules; ++i) if (name ~ pattern[i]) return limit[i]
    return 0
  }
  function shared(name, fixed,    i) {
    for (i = 1; i <= tiles; ++i)
      if (index(name, prefix[i]) == 1 && index(name, tile[i])) return fixed + bytes[i]
    return index(name, "Tile<") ? "?" : fixed
  }
  BEGIN {
    printf "%-7s %5s %6s %6s %6s %7s  %s\n", "arch", "regs", "spill", "budget", "stack", "shared",
           "kernel"
  }
  {
    spill = $5 + $6; may = allowed($1)
    over = may != "any" && spill > may + 0
    bad += over
    worst[$3] = worst[$3] > $4 ? worst[$3] : $4
    printf "%-7s %5d %6d %6s %6d %7s  %s%s\n", $3, $4, spill, may, $7, shared($1, $8), $1,
           over ? "   OVER BUDGET" : ""
    ++kernels
  }
  END {
    printf "%d kernels", kernels
    for (arch in worst) printf ", at most %d registers on %s", worst[arch], arch
    printf "; %d over the budget of %s\n", bad, budget
    exit bad > 0
  }' budget="$budget" dynamic="$work/dynamic" "$budget" "$work/dynamic" -
