#!/bin/bash
# ptxas_log.sh NVCC ARGUMENT... -o OBJECT ...: compiles, and keeps what `-Xptxas -v` said about each
# kernel in OBJECT.ptxas, where cuda_report.sh reads it. Everything else goes on to stderr.
set -u
object=
previous=
for argument in "$@"; do
  [[ $previous == -o ]] && object=$argument
  previous=$argument
done
if [[ -z $object ]]; then exec "$@"; fi
"$@" 2>"$object.ptxas"
status=$?
if ((status)); then
  cat "$object.ptxas" >&2
else
  grep -vE '^ptxas info|^ +[0-9]+ bytes stack frame|^$' "$object.ptxas" >&2
fi
exit "$status"
