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

# ---- examination ---------------------------------------------------------------------------------
expect 0 'decide every block' examine --mask 'kv <= q' --json "$dir/examined.json"
grep -q '"intervals_decide": true' "$dir/examined.json" || fail 'no intervals_decide in the JSON'
grep -q '"clean": true' "$dir/examined.json" || fail 'an examination that finds nothing is not clean'
expect 1 'not a number to attend with' examine --mod 'score - log(kv)'
expect 1 'told above' fuzz --cases 8 --mod 'score + (q * Skv + kv) % 3'

# ---- misuse ----------------------------------------------------------------------------------------
misuse 'subcommand'
misuse '--frobnicate' fuzz --frobnicate
misuse "'frobnicate', expected one of fuzz" frobnicate
misuse '--cases' fuzz --cases 0
misuse '--jobs' fuzz --jobs 0
for shard in 0/2 3/2 1/0 2 a/b -1/2 1/2/3; do
  misuse "'$shard', expected i/n" fuzz --cases 1 --shard "$shard"
done
printf '# mine\nv0 B1\n' >"$dir/wrong.case"
misuse "$dir/wrong.case:2: " fuzz --cases 1 --corpus "$dir"
rm "$dir/wrong.case"
misuse "'cuda', expected warp or thread" fuzz --cases 1 --engine cuda
misuse "'fp8', expected one of" fuzz --cases 1 --dtype fp8
misuse "'slow', expected one of flash_forward" fuzz --cases 1 --impl slow
misuse "fp32, expected fp16 or bf16" fuzz --cases 1 --impl flash_forward --dtype fp32
misuse "'slow', expected one of flash_forward" fuzz --cases 1 --impl flash_forward,slow
misuse 'column 8' fuzz --cases 1 --mod 'score +'
misuse 'column 1' fuzz --cases 1 --mask 'score > 0'
misuse '--table' fuzz --cases 1 --mod 'score + slope[h]'
misuse 'nothing, expected --mod' examine
misuse 'expected both' fuzz --cases 1 --mod-file fuzz/random.h
misuse 'expected a header' fuzz --cases 1 --mod-file no_such_file.h --type my::Mod
misuse 'expected the name of a type' fuzz --cases 1 --mod-file fuzz/random.h --type 'my::Mod;'
echo '#include "no_such_file.h"' >"$dir/wrong.h"
expect 2 'operator is a template on the number types: template <class Score, class Index> Score' \
  fuzz --cases 1 --mod-file "$dir/wrong.h" --type my::Mod --cache "$dir/cache"
misuse 'my::Mod is not built into' replay \
  'v1 B1 Hq1 Hkv1 Sq1 Skv1 D8 Dv8 bf16; modtype: my::Mod; mask: true; fill: gaussian; seed: 1'
misuse 'NAME[DIM,...]=SOURCE' fuzz --cases 1 --table slope
misuse "no_such_file" fuzz --cases 1 --mod 'score + t[h]' --table 't[Hq]=no_such_file'
misuse "'Sq'" fuzz --cases 1 --shape 'Sq'
misuse 'a divisor of the 3 heads of q' fuzz --cases 1 --shape 'Hq3 Hkv2'
misuse 'doc' fuzz --cases 4 --impl flash_forward --mask 'doc[q]==doc[kv]' --table 'doc[10]=documents(3)' --shape 'Sq64 Skv64'
misuse '1000' fuzz --cases 1 --shape 'D1000'
misuse "expected 'v1'" replay 'v0 B1'
misuse 'a divisor of the 3 heads of q' replay 'v1 B1 Hq3 Hkv2 Sq1 Skv1 D8 Dv8 bf16'
misuse 'page: given for flash_forward, expected only for a paged cache' replay "$line; page: 16"
misuse 'blocks: none, expected' replay "$line; impl: block_sparse_forward"
misuse 'kvlens: 2 lengths, expected one a sequence, B = 1' replay "$line; kvlens: 1,2; impl: decode"
misuse "'M99'" replay --planted M99 "$line"
expect 2 'cannot be written' impls --json "$dir/no/such/folder"

# ---- replay ----------------------------------------------------------------------------------------
expect 0 'pass         flash_forward (warp)' replay "$line"
expect 0 'pass         flash_forward (warp)' replay --repeat "$line"
expect 0 'pass         flash_forward (thread)' replay --engine thread "$line"
expect 0 'pass         flash_backward (warp)' replay "$line; impl: flash_backward"
expect 0 'pass         decode_paged (warp)' replay "$line; kvlens: 20; page: 16; impl: decode_paged"
expect 0 'pass         block_sparse_forward (warp)' replay \
  "$line; blocks: 64x48; impl: block_sparse_forward"
expect 1 'discrepancy  flash_forward (warp_planted)' replay --planted M21 "$line"
expect 1 'replay       attnproof replay' replay --planted M21 "$line"
expect 0 'pass' replay "$line" --html "$dir/pass.html"
grep -qF 'class="heatmap"' "$dir/pass.html" || fail 'no heat map of a replay that passes'
misuse 'cannot be written' fuzz --cases 1 --html "$dir/no/such/folder"
misuse 'expected none beside --relation' replay "$line" --relation repeated --html "$dir/pass.html"

# ---- a mod that yields NaN: which score, where, and how to run it again ------------------------------
expect 1 'finding      flash_forward (warp)' fuzz --cases 200 --jobs 2 --impl flash_forward \
  --mod 'log(score)' --html "$dir/failure.html"
grep -qF '<h2>Shrunk from</h2>' "$dir/failure.html" || fail 'no page of a failure'
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
expect 0 'no discrepancy' fuzz --cases 40 --jobs 2 --seed 3 --impl all --json "$dir/fuzz.json"
has "$dir/fuzz.json" cases failed mistrusted refused cases_per_second seconds seed implementations \
  coverage name engine device
grep -q '"cases": 40' "$dir/fuzz.json" || fail 'cases are not 40'
grep -q '"failed": 0' "$dir/fuzz.json" || fail 'failed is not 0'
expect 0 'no discrepancy' fuzz --cases 10 --jobs 2 --impl decode,packed_forward --json "$dir/two.json"
grep -q '"name": "decode"' "$dir/two.json" || fail 'the two implementations are not told apart'
grep -q '"name": "flash_forward"' "$dir/two.json" && fail 'more than the two implementations ran'
expect 0 'flash_forward' impls --json "$dir/impls.json"
has "$dir/impls.json" implementations name pass tiles dtypes deterministic engines devices
expect 1 'finding' fuzz --cases 200 --jobs 2 --mod 'log(score)' --json "$dir/failure.json"
has "$dir/failure.json" failure outcome replay original report
expect 1 'SURVIVED' faults --cases 1 --jobs 1 --json "$dir/faults.json" --junit "$dir/faults.xml"
survivors=$(grep -c SURVIVED "$dir/out")
has "$dir/faults.json" planted found survivors seconds faults

# ---- jobs of CI: shards, JUnit XML, a corpus of one's own -------------------------------------------
# junit FILE TESTS FAILURES: FILE is XML with so many of each.
junit() {
  python3 - "$@" >"$dir/out" 2>"$dir/err" <<'END' || fail "$1: not the JUnit XML that was expected"
import sys
import xml.etree.ElementTree
suites = xml.etree.ElementTree.parse(sys.argv[1]).getroot()
assert suites.tag == "testsuites", suites.tag
tests = suites.findall("testsuite/testcase")
failures = suites.findall("testsuite/testcase/failure")
print(len(tests), len(failures), [f.get("message") for f in failures])
for suite in suites:
    assert int(suite.get("tests")) == len(suite.findall("testcase"))
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure"))
assert sys.argv[2] in ("any", str(len(tests))) and str(len(failures)) == sys.argv[3]
END
}
expect 0 '13 cases in' fuzz --cases 40 --jobs 2 --seed 3 --impl decode,flash_forward --shard 2/3 \
  --json "$dir/shard.json" --junit "$dir/shard.xml"
junit "$dir/shard.xml" any 0
grep -q 'name="shard" value="2/3"' "$dir/shard.xml" || fail 'the XML does not say the shard'
python3 -c 'import json, sys; assert json.load(open(sys.argv[1]))["shard"] == {"index": 2, "count": 3}' \
  "$dir/shard.json" || fail 'the JSON does not say the shard'
expect 0 '0 cases in' fuzz --cases 1 --impl decode --shard 2/2

expect 1 'added ' fuzz --cases 200 --jobs 2 --mod 'log(score)' --corpus "$dir/own/cases" \
  --junit "$dir/found.xml"
junit "$dir/found.xml" any 2  # the case, and the examination of the mod
expect 1 'corpus ' fuzz --cases 1 --corpus "$dir/own/cases" --junit "$dir/again.xml" \
  --json "$dir/again.json"
junit "$dir/again.xml" any 1
has "$dir/again.json" clean reasons report
grep -q '"clean": false' "$dir/again.json" || fail 'a corpus that fails is called clean'
[ "$(ls "$dir/own/cases" | wc -l)" -eq 1 ] || fail 'not one file in the corpus'

# A run that ends by an error or a signal leaves files that say so, whatever the command.
# reason FILE TEXT: the JSON is not clean, for the one reason TEXT.
reason() {
  python3 -c 'import json, sys
j = json.load(open(sys.argv[1]))
assert not j["clean"] and len(j["reasons"]) == 1 and sys.argv[2] in j["reasons"][0]["report"], j' \
    "$@" >"$dir/out" 2>"$dir/err" || fail "$1 does not say '$2'"
}
printf 'old' >"$dir/refused.json"
misuse '1000' fuzz --cases 1 --shape 'D1000' --json "$dir/refused.json" --junit "$dir/refused.xml"
junit "$dir/refused.xml" any 1
reason "$dir/refused.json" 'ended by an error: '
misuse "'cuda', expected warp or thread" fuzz --cases 1 --engine cuda --json "$dir/engine.json"
reason "$dir/engine.json" "'cuda', expected warp or thread"
misuse 'column 8' examine --mod 'score +' --json "$dir/examine.json" --junit "$dir/examine.xml"
reason "$dir/examine.json" 'column 8'
junit "$dir/examine.xml" 1 1
misuse 'expected a header' fuzz --mod-file no_such_file.h --type my::Mod --json "$dir/type.json"
reason "$dir/type.json" 'expected a header'
misuse 'is no file' check "$dir/none.safetensors" --json "$dir/none.json" --html "$dir/none.html"
reason "$dir/none.json" 'is no file'
grep -q 'is no file' "$dir/none.html" || fail 'the page does not say why the check ended'
python3 - "$tool" "$dir" >"$dir/out" 2>"$dir/err" <<'END' || fail 'a run that is stopped does not say so'
import json, os, signal, subprocess, sys, time
tool, folder = sys.argv[1:]
for command in ["fuzz", "--seconds", "60", "--jobs", "1"], ["faults", "--jobs", "1"]:
    for number in signal.SIGINT, signal.SIGTERM:
        path = os.path.join(folder, f"stopped_{command[0]}_{number}.json")
        run = subprocess.Popen([tool, *command, "--json", path], stdout=subprocess.DEVNULL)
        while run.poll() is None and not (os.path.exists(path) and os.path.getsize(path)):
            time.sleep(0.01)
        time.sleep(0.1)
        run.send_signal(number)
        assert run.wait() == -number, (command, run.returncode)
        result = json.load(open(path))
        assert result["reasons"] == [{"name": "run", "report": "not finished"}], result["reasons"]
        assert not result["clean"]
END
expect 2 'cannot be written' fuzz --cases 1 --junit "$dir/no/such/folder"
junit "$dir/faults.xml" any "$survivors"

# ---- relations -------------------------------------------------------------------------------------
misuse "'slow', expected one of flash_forward" relations --impl slow
misuse "'M99'" relations --planted M99
misuse "'Sq'" relations --shape Sq
misuse 'cannot be written' relations --json "$dir/no/such/folder"
misuse "relation: 'sums', expected one of head_copies" replay "$line" --relation sums
misuse 'relation dv_sum: does not apply to this case' replay "$line" --relation dv_sum
expect 0 'held in' relations --seconds 1 --shape 'Sq64 Skv65 D16 Dv16' --json "$dir/relations.json"
has "$dir/relations.json" clean reasons engine seed relations name says held refused
grep -q '"clean": true' "$dir/relations.json" || fail 'relations that hold are not called clean'
# 64 and more rows are not needed: the line is that of the smallest case
expect 1 "B1 Hq4 Hkv2 Sq1 Skv1 D1 Dv1 fp16; mod: score; mask: true" relations --impl flash_forward --planted M26 --shape 'Hq4 Hkv2 Sq64 Skv65' \
  --json "$dir/relations.json" --junit "$dir/relations.xml"
has "$dir/relations.json" failure relation outcome replay original report
grep -q '"clean": false' "$dir/relations.json" || fail 'a relation that is broken is called clean'
again=$(sed -n "s/^replay       attnproof replay '\(.*\)' --relation .*$/\1/p" "$dir/out")
relation=$(sed -n 's/^replay .* --relation //p' "$dir/out")
junit "$dir/relations.xml" 20 1
expect 1 'discrepancy' replay "$again" --relation "$relation" --planted M26
expect 0 'pass' replay "$again" --relation "$relation"
# a corpus may hold such a case
echo "$again --relation $relation" >"$dir/own/cases/related.case"
expect 1 'corpus: 2 cases' fuzz --cases 1 --corpus "$dir/own/cases"
grep -q 'related.case' "$dir/out" && fail 'a relation that holds failed in a corpus'

# ---- emit and check: problems for other programs -----------------------------------------------------
misuse 'folder' emit
misuse '--cases' emit --cases 0 "$dir/cases"
misuse "'decode', expected one of plain tensors" emit --impl decode "$dir/cases"
misuse "'slow', expected one of flash_forward" emit --impl slow "$dir/cases"
misuse "'fp8'" emit --dtype fp8 "$dir/cases"
misuse 'expected an empty folder' emit --cases 1 "$dir"
expect 0 '4 cases in' emit --cases 4 --seed 3 --impl flash_forward --impl flash_backward "$dir/cases"
has "$dir/cases/manifest.json" attnproof seed cases inputs outputs required optional case pass scale mod mask
misuse 'expected an empty folder' emit --cases 1 "$dir/cases"
expect 1 'missing      case_00000   no file' check "$dir/cases" --json "$dir/check.json" \
  --junit "$dir/check.xml" --html "$dir/check.html"
has "$dir/check.json" clean reasons checked failed mistrusted rounds results name outcome
junit "$dir/check.xml" 5 4  # the cases, and the power of their bounds
grep -qF 'missing      case_00003' "$dir/check.html" || fail 'the page does not list the failures'
expect 1 'missing      case_00002   no file' check "$dir/cases/case_00002.safetensors" \
  --junit "$dir/check.xml"
junit "$dir/check.xml" 2 1
misuse 'cannot be written' check "$dir/cases" --junit "$dir/no/such/folder"
: >"$dir/cases/case_00000.out.safetensors"
expect 1 'unreadable   case_00000' check "$dir/cases"
misuse 'no file *.safetensors' check "$dir"
misuse 'is no file' check "$dir/none.safetensors"
misuse "'loose', expected flash, fp32, tf32 or eager" check --rounds loose "$dir/cases"
misuse 'of dumped tensors only' check --mask causal "$dir/cases"
printf 'not one' >"$dir/bad.safetensors"
misuse '7 bytes, expected a safetensors file' check "$dir/bad.safetensors"
printf '\377\377\377\377\377\377\377\177{}' >"$dir/bad.safetensors"
misuse 'expected at most 16777216' check "$dir/bad.safetensors"
printf '\002\0\0\0\0\0\0\0{}' >"$dir/bad.safetensors"
misuse "no tensor 'q'" check --mask causal "$dir/bad.safetensors"

# ---- gpu-check: this tool has no kernels for GPUs ----------------------------------------------------
misuse '--seconds' gpu-check --seconds 0
misuse "expected 'v1'" gpu-check --replay 'v0 B1' --json "$dir/gpu.json"
misuse 'cannot be written' gpu-check --json "$dir/no/such/folder"
expect 3 'no GPU: this attnproof was built without CUDA' gpu-check --json "$dir/gpu.json"
has "$dir/gpu.json" tool status reason
grep -q '"status": "no GPU"' "$dir/gpu.json" || fail 'the status is not "no GPU"'

[ "$failures" -eq 0 ] && echo 'the tool behaves as documented'
exit "$failures"
