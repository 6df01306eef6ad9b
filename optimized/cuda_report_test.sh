#!/bin/bash
# The table of cuda_report.sh and its budget, on logs as ptxas writes them.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failures=0

# entry MANGLED ARCH STACK STORES LOADS REGISTERS REST: what ptxas -v says about one kernel.
entry() {
  cat <<TEXT
ptxas info    : Compiling entry function '$1' for '$2'
ptxas info    : Function properties for $1
    $3 bytes stack frame, $4 bytes spill stores, $5 bytes spill loads
ptxas info    : Used $6 registers, used 1 barriers$7
ptxas info    : Compile time = 12.3 ms
ptxas info    : Function properties for _ZN4attn6calledEv
    0 bytes stack frame, 100 bytes spill stores, 100 bytes spill loads
TEXT
}
# expect STATUS TEXT [BUDGET-LINE...]: runs the report on $dir/log.
expect() {
  local status=$1 text=$2 got
  shift 2
  printf '%s\n' "$@" >"$dir/budget"
  ./cuda_report.sh "$dir/budget" "$dir/log" >"$dir/out" 2>&1
  got=$?
  if ((got != status)) || ! tr -s ' ' <"$dir/out" | grep -qE -- "$text"; then
    echo "FAILED: status $got, expected $status and '$text'"
    sed 's/^/    /' "$dir/out"
    ((++failures))
  fi
}

plain=_ZN4attn4cuda5plainINS_4halfEEEvPT_  # void attn::cuda::plain<attn::half>(attn::half*)
mod=_ZN4attn4cuda3runINS_10ProgramModEEEvT_

entry $plain sm_80 0 0 0 40 ', 32 bytes smem, 400 bytes cmem[0]' >"$dir/log"
expect 0 '^sm_80 40 0 0 0 32 plain<half>$'
expect 0 '1 kernels, at most 40 registers on sm_80; 0 over'

# A spill fails, stores and loads each; so it does where another pattern or a smaller limit stands.
entry $plain sm_90a 16 8 0 255 '' >"$dir/log"
expect 1 '^sm_90a 255 8 0 16 0 plain<half> OVER BUDGET$'
expect 1 '1 over' '4 plain # why'
expect 1 '1 over' 'any other'
expect 0 '^sm_90a 255 8 8 16 0 plain<half>$' '# a comment' '8 plain # why'
expect 1 '1 over' '0 plain' 'any .'  # the first that matches decides
entry $plain sm_90a 16 0 8 255 '' >"$dir/log"
expect 1 '1 over' '4 plain'

# The interpreter is printed and not judged; what a kernel calls is not the kernel.
entry $mod sm_80 208 96 96 255 '' >"$dir/log"
expect 0 '^sm_80 255 192 any 208 0 run<ProgramMod>$' 'any ProgramMod'
expect 1 '1 over'

# Two architectures are two rows, each with its own figures; the same kernel of two units is one.
for arch in sm_80 sm_90a sm_80; do
  entry $plain $arch 0 0 0 $([[ $arch == sm_80 ]] && echo 40 || echo 48) ''
done >"$dir/log"
expect 0 '2 kernels.* 40 registers on sm_80'
expect 0 ' 48 registers on sm_90a'

# The budget that ships judges everything but the interpreter.
entry $plain sm_80 8 4 4 255 '' >"$dir/log"
expect 1 '1 over' "$(<cuda_budget.txt)"
entry $mod sm_80 8 4 4 255 '' >"$dir/log"
expect 0 '0 over' "$(<cuda_budget.txt)"

# A tile without known shared memory shows that; the symbols of the object beside the log name it.
tiled=_ZN4attn4cuda1kINS0_9FlashTileILi1EEENS_4halfEEEvPT0_  # k<FlashTile<1>, half>
entry $tiled sm_80 0 0 0 40 ', 32 bytes smem' >"$dir/log"
expect 0 '^sm_80 40 0 0 0 \? k<FlashTile<1>, half>$'
cat >"$dir/symbols.cc" <<'TEXT'
namespace attn::cuda {
template <int> struct FlashTile {};
template <class Tile, int bytes> void shared_bytes_of_k() {}
template <class Tile, int bytes> void shared_bytes_of_other() {}
template void shared_bytes_of_other<FlashTile<1>, 7>();
template void shared_bytes_of_k<FlashTile<1>, 1000>();
}  // namespace attn::cuda
TEXT
g++ -c "$dir/symbols.cc" -o "$dir/log.o" && mv "$dir/log" "$dir/log.o.ptxas"
./cuda_report.sh "$dir/budget" "$dir/log.o.ptxas" | tr -s ' ' >"$dir/out"
if ! grep -qE '^sm_80 40 0 0 0 1032 k<FlashTile<1>, half>$' "$dir/out"; then
  echo 'FAILED: dynamic shared memory'
  cat "$dir/out"
  ((++failures))
fi

# No log, or one without a kernel, is not a pass.
echo 'ptxas info    : 24 bytes gmem' >"$dir/log"
expect 3 'name no kernel'
if ./cuda_report.sh "$dir/budget" >"$dir/out" 2>&1; then
  echo 'FAILED: no logs, and the report passed'
  ((++failures))
fi

# The launcher keeps what ptxas says beside the object, shows the rest, and passes the status on.
cat >"$dir/compiler" <<'TEXT'
#!/bin/sh
echo "ptxas info    : Used 1 registers" >&2
echo "x.cu(1): warning: something" >&2
exit "$1"
TEXT
chmod +x "$dir/compiler"
for status in 0 7; do
  ./ptxas_log.sh "$dir/compiler" $status -o "$dir/x.o" 2>"$dir/err"
  got=$?
  if ((got != status)) || ! grep -q warning "$dir/err" || ! grep -q Used "$dir/x.o.ptxas" ||
    { ((status == 0)) && grep -q Used "$dir/err"; }; then
    echo "FAILED: the launcher, status $got, expected $status"
    ((++failures))
  fi
done

((failures == 0)) && echo 'the report says what ptxas said'
exit $((failures > 0))
