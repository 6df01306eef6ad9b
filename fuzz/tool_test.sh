#!/bin/sh
# The command line of attnproof: exit statuses (0 clean, 1 a discrepancy, 2 bad usage, 3 it could not
# do what was asked), one clear line for each misuse, and the keys of its JSON.
#
#   fuzz/tool_test.sh PATH_OF_ATTNPROOF
set -u
tool=$1
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
failures=0

fail() {
  echo "FAILED: $1"
  sed 's/^/    /' "$dir/out" "$dir/err"
  failures=$((failures + 1))
}

# expect STATUS TEXT ARGUMENT...: runs the tool; TEXT must be in its output.
expect() {
  status=$1 text=$2
  shift 2
  "$tool" "$@" >"$dir/out" 2>"$dir/err"
  got=$?
  [ "$got" -eq "$status" ] || fail "exit status $got, expected $status: attnproof $*"
  grep -qF -- "$text" "$dir/out" "$dir/err" || fail "no '$text': attnproof $*"
}

# misuse TEXT ARGUMENT...: status 2, nothing on standard output, and a message that begins with the
# name of the tool.
misuse() {
  text=$1
  shift
  expect 2 "$text" "$@"
  [ -s "$dir/out" ] && fail "a result beside the message: attnproof $*"
  grep -v '^corpus: ' "$dir/err" | head -n 1 | grep -q '^attnproof: ' ||
    fail "the message does not begin with 'attnproof: ': attnproof $*"
}

line='v1 B1 Hq1 Hkv1 Sq1 Skv33 D8 Dv8 bf16; mod: score; mask: true; fill: gaussian; seed: 7'

# ---- help ------------------------------------------------------------------------------------------
expect 0 'replay' --help
expect 0 '--mask' fuzz --help

# ---- misuse ----------------------------------------------------------------------------------------
misuse 'subcommand'
misuse '--frobnicate' fuzz --frobnicate
misuse "'frobnicate', expected one of fuzz" frobnicate
misuse '--cases' fuzz --cases 0
misuse '--jobs' fuzz --jobs 0
misuse "'cuda', expected warp or thread" fuzz --cases 1 --engine cuda
misuse "'fp8', expected one of" fuzz --cases 1 --dtype fp8
misuse "'slow', expected one of flash_forward" fuzz --cases 1 --impl slow
misuse 'column 8' fuzz --cases 1 --mod 'score +'
misuse 'column 1' fuzz --cases 1 --mask 'score > 0'
misuse '--table' fuzz --cases 1 --mod 'score + slope[h]'
misuse 'NAME[DIM,...]=SOURCE' fuzz --cases 1 --table slope
misuse "no_such_file" fuzz --cases 1 --mod 'score + t[h]' --table 't[Hq]=no_such_file'
misuse "'Sq'" fuzz --cases 1 --shape 'Sq'
misuse 'Hq a multiple of Hkv' fuzz --cases 1 --shape 'Hq3 Hkv2'
misuse 'doc' fuzz --cases 4 --mask 'doc[q]==doc[kv]' --table 'doc[10]=documents(3)' --shape 'Sq64 Skv64'
misuse '129' fuzz --cases 1 --shape 'D129'
misuse "expected 'v1'" replay 'v0 B1'
misuse 'Hq: 3, expected a multiple of Hkv = 2' replay 'v1 B1 Hq3 Hkv2 Sq1 Skv1 D8 Dv8 bf16'
misuse "'M99'" replay --planted M99 "$line"
expect 2 'cannot be written' impls --json "$dir/no/such/folder"

# ---- replay ----------------------------------------------------------------------------------------
expect 0 'pass         flash_forward (warp)' replay "$line"
expect 0 'pass         flash_forward (thread)' replay --engine thread "$line"
expect 1 'discrepancy  flash_forward (warp_planted)' replay --planted M21 "$line"
expect 1 'replay       attnproof replay' replay --planted M21 "$line"

# ---- a mod that yields NaN: which score, where, and how to run it again ------------------------------
expect 1 'finding      flash_forward (warp)' fuzz --cases 200 --jobs 2 --mod 'log(score)'
for text in 'score -' 'b=0 h=' ' q=' ' kv=' "replay       attnproof replay 'v1 "; do
  grep -qF -- "$text" "$dir/out" || fail "no '$text' in the report of a NaN"
done
again=$(sed -n "s/^replay       attnproof replay '\(.*\)'$/\1/p" "$dir/out")
expect 1 'finding' replay "$again"

# ---- JSON --------------------------------------------------------------------------------------------
# has FILE KEY...
has() {
  file=$1
  shift
  for key in "$@"; do
    grep -q "\"$key\":" "$file" || fail "no key '$key' in $file"
  done
}
expect 0 'no discrepancy' fuzz --cases 40 --jobs 2 --seed 3 --json "$dir/fuzz.json"
has "$dir/fuzz.json" cases failed mistrusted refused cases_per_second seconds seed implementations \
  coverage name engine device
grep -q '"cases": 40' "$dir/fuzz.json" || fail 'cases are not 40'
grep -q '"failed": 0' "$dir/fuzz.json" || fail 'failed is not 0'
expect 0 'flash_forward' impls --json "$dir/impls.json"
has "$dir/impls.json" implementations name tiles dtypes deterministic engines devices
expect 1 'finding' fuzz --cases 200 --jobs 2 --mod 'log(score)' --json "$dir/failure.json"
has "$dir/failure.json" failure outcome replay original report
expect 1 'SURVIVED' faults --cases 1 --jobs 1 --json "$dir/faults.json"
has "$dir/faults.json" planted found survivors seconds faults

[ "$failures" -eq 0 ] && echo 'the tool behaves as documented'
exit "$failures"
