#!/bin/bash
# What docs/other_programs.md says of its scripts: JAX, on the CPU, solves emitted cases and `check` finds
# nothing; with `faults`, which takes minutes, also that with faults planted in it `check` finds each and
# names it. Exit status 77: JAX is not here and could not be installed.
#
#   docs/scripts/scripts_test.sh PATH_OF_ATTNPROOF FOLDER_FOR_A_VIRTUAL_ENVIRONMENT [faults]
set -u
tool=$1 environment=$2
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
export PYTHONPYCACHEPREFIX=$dir/cache JAX_PLATFORMS=cpu
failures=0

fail() {
  echo "FAILED: $1"
  sed 's/^/    /' "$dir/out"
  ((++failures))
}

# expect STATUS TEXT COMMAND...: TEXT must be in what it prints.
expect() {
  local status=$1 text=$2 got
  shift 2
  "$@" >"$dir/out" 2>&1
  got=$?
  ((got == status)) || fail "exit status $got, expected $status: $*"
  grep -qF -- "$text" "$dir/out" || fail "no '$text': $*"
}

for script in "$scripts"/*.py; do
  python3 -m py_compile "$script" || fail "$script is no Python"
done

python=$environment/bin/python3
if ! "$python" -c 'import jax, safetensors' 2>/dev/null; then
  if ! { python3 -m venv "$environment" && "$python" -m pip install -q jax safetensors; } \
    >"$dir/out" 2>&1; then
    echo 'NOT TESTED: the scripts of docs/other_programs.md, as JAX cannot be installed here'
    tail -n 3 "$dir/out"
    ((failures == 0)) && exit 77
    exit 1
  fi
fi

expect 0 '20 cases' "$tool" emit --cases 20 --seed 5 "$dir/cases"
expect 1 'missing      case_00000' "$tool" check "$dir/cases"
expect 0 '20 cases solved' "$python" "$scripts/attnproof_jax.py" "$dir/cases"
expect 0 'no discrepancy' "$tool" check "$dir/cases"
expect 0 'no discrepancy' "$tool" check --rounds fp32 "$dir/cases"

# faulty WHAT TEXT OLD NEW: the script with OLD replaced by NEW; the check says TEXT.
faulty() {
  local text=$1 old=$2 new=$3
  grep -qF -- "$old" "$scripts/attnproof_jax.py" || fail "no '$old' in the script"
  OLD=$old NEW=$new python3 -c 'import os, sys
print(sys.stdin.read().replace(os.environ["OLD"], os.environ["NEW"]))' \
    <"$scripts/attnproof_jax.py" >"$dir/faulty.py"
  expect 0 '20 cases solved' "$python" "$dir/faulty.py" "$dir/cases"
  expect 1 "$text" "$tool" check "$dir/cases"
}
if [[ ${3:-} != faults ]]; then
  ((failures == 0)) && echo 'JAX solves the cases'
  exit $((failures > 0))
fi
faulty 'the bias is added before the scale' 'scores + bias' 'scores + scale * bias'
faulty 'in base 2 (M55)' 'return o, lse[..., 0]' 'return o, lse[..., 0] / jnp.log(2.0)'
faulty 'the KV head is h % Hkv' 'jnp.repeat(k, group, axis=1), jnp.repeat(v, group, axis=1)' \
  'jnp.tile(k, (1, group, 1, 1)), jnp.tile(v, (1, group, 1, 1))'

((failures == 0)) && echo 'JAX solves the cases, and faults in it are found and named'
exit $((failures > 0))
