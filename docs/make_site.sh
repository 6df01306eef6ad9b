#!/bin/bash
# make_site.sh PYTHON TOOL DOXYGEN DOXYFILE SITE: writes the site to SITE/html and checks it. Run in the
# root of the repository.
set -euo pipefail
python=$1 tool=$2 doxygen=$3 doxyfile=$4 site=$5
rm -rf "$site"
"$python" docs/gallery.py "$tool" "$site/gallery"
"$doxygen" "$doxyfile"
"$python" docs/check_site.py "$site"
