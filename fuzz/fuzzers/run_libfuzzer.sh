#!/bin/sh
# Runs a libFuzzer target from a fixed seed: 0 if nothing is found, 77 if there is no such target here.
#
#   fuzz/fuzzers/run_libfuzzer.sh FUZZER SEEDS DICTIONARY RUNS
set -u
fuzzer=$1 seeds=$2 dictionary=$3 runs=$4
if [ ! -x "$fuzzer" ]; then
  echo "NOT TESTED: there is no clang with libFuzzer here (Debian: clang and libclang-rt-14-dev)"
  exit 77
fi
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/found"
"$fuzzer" -error_exitcode=1 -seed=1 -runs="$runs" -max_len=2048 -timeout=20 -rss_limit_mb=2048 \
  -dict="$dictionary" -artifact_prefix="$dir/" -print_final_stats=1 "$dir/found" "$seeds" >"$dir/log" 2>&1
status=$?
if [ $status -eq 0 ]; then
  grep -e '#[0-9]*	DONE' -e '^Done' -e '^stat::' "$dir/log"
else
  tail -n 60 "$dir/log"
fi
[ $status -eq 0 ] || exit 1  # never 77, which libFuzzer itself likes
