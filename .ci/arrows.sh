#!/bin/bash
# arrows.sh [ROOT]: reads every #include under ROOT and fails if one points against the arrows
#   mods/lang -> mods, masks -> reference -> optimized -> fuzz
# arrows.sh --self-test: plants one wrong include of each kind and expects it to be found.
set -euo pipefail

# allowed FILE: a regular expression of what FILE may include by a root-relative name.
allowed() {
  case $1 in
    mods/lang/*) echo '^mods/lang/' ;;
    mods/* | masks/*) echo '^(mods|masks)/' ;;
    reference/*) echo '^(mods|masks|reference)/' ;;
    optimized/*_test.cc) echo '^(mods|masks|reference|optimized)/' ;;
    optimized/*) echo '^(mods|masks|optimized)/|^reference/(problem|sequences)\.h' ;;
    fuzz/*) echo '^(mods|masks|reference|optimized|fuzz)/' ;;
    docs/consumer/*) echo '^(mods|masks|reference|optimized)/|^[a-z_]+\.h$' ;;  # a user's project
    docs/*) echo '^(mods|masks|reference|optimized|docs)/' ;;
  esac
}

# check ROOT: prints each include that its file may not have; fails if there is one.
# An include in quotes is always root-relative; <attn/...> is how a user of the package writes it.
check() {
  local bad=0 file include
  while IFS=: read -r file include; do
    include=$(sed -E 's|^[[:space:]]*#[[:space:]]*include[[:space:]]*["<](attn/)?([^">]*)[">].*|\2|' \
              <<<"$include")
    if ! [[ $include =~ $(allowed "$file") ]]; then
      echo "$file must not include \"$include\""
      bad=1
    fi
  done < <(cd "$1" && find mods masks reference optimized fuzz docs -type f \
             \( -name '*.h' -o -name '*.cc' -o -name '*.cu' \) 2>/dev/null | sort |
           xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<attn/)')
  return $bad
}

# finds FILE INCLUDE: whether check reports that FILE includes INCLUDE.
finds() {
  local tree
  tree=$(mktemp -d)
  mkdir -p "$tree/$(dirname "$1")"
  echo "#include $2" >"$tree/$1"
  if check "$tree" >/dev/null; then rm -r "$tree"; return 1; fi
  rm -r "$tree"
}

self_test() {
  local bad=0 file include
  while read -r verdict file include; do
    if finds "$file" "$include"; then found=wrong; else found=right; fi
    if [[ $found != "$verdict" ]]; then
      echo "$include in $file: taken for $found, is $verdict"
      bad=1
    fi
  done <<'LIST'
right mods/lang/a.h "mods/lang/b.h"
wrong mods/lang/a.h "mods/b.h"
right masks/a.cc "mods/lang/b.h"
wrong mods/a.h "reference/b.h"
wrong masks/a_test.cc "reference/b.h"
right reference/a.cc "masks/b.h"
wrong reference/a.cc "optimized/b.h"
right optimized/a.h "reference/problem.h"
right optimized/a.cc "reference/sequences.h"
wrong optimized/a.h "reference/forward.h"
wrong optimized/a.h <attn/reference/forward.h>
wrong optimized/simt/a.cu "reference/backward.h"
right optimized/a_test.cc "reference/forward.h"
wrong optimized/a_test.cc "fuzz/b.h"
right fuzz/a_test.cc "fuzz/b.h"
wrong docs/a_test.cc "fuzz/b.h"
wrong mods/a.h "b.h"
wrong mods/a.h "../masks/b.h"
LIST
  return $bad
}

if [[ ${1:-} == --self-test ]]; then self_test; else check "${1:-.}"; fi
