#!/bin/sh
# Runs tools/NAME/compare.py in a virtual environment with a pinned package:
#   sh tools/ptx/compare.sh BUILD NAME PACKAGE [arguments of compare.py]
set -eu
build=$1
name=$2
package=$3
shift 3
venv=$build/$name
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" -q install --disable-pip-version-check \
    "$package" numpy==2.4.6
fi
TRITON_CACHE_DIR=$venv/cache exec "$venv/bin/python" "tools/$name/compare.py" \
  --cutelua "$build/cutelua" "$@"
