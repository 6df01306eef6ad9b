#!/bin/bash
# must_fail.sh FILE COMPILER FLAG...: passes if FILE does not compile and the compiler's message
# (an error or a note, not the source it quotes) holds the text of the line `// expect: TEXT`.
set -u
file=$1
shift
expected=$(sed -n '1s|^// expect: ||p' "$file")
if [[ -z $expected ]]; then
  echo "$file: the first line is not '// expect: TEXT'"
  exit 1
fi
if output=$("$@" -I. -fsyntax-only "$file" 2>&1); then
  echo "$file: compiled, and must not"
  exit 1
fi
echo "$output"
if ! grep -oE '(error|note): .*' <<<"$output" | grep -qF -- "$expected"; then
  echo "$file: did not compile, but no message says '$expected'"
  exit 1
fi
