#!/bin/sh
# Runs compare.py in a virtual environment with pinned packages:
#   sh tools/triton/run.sh BUILD [arguments of compare.py]
set -eu
build=$1
shift
venv=$build/triton
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" -q install --disable-pip-version-check \
    triton==3.9.0 numpy==2.4.6
fi
TRITON_CACHE_DIR=$venv/cache exec "$venv/bin/python" tools/triton/compare.py \
  --cutelua "$build/cutelua" "$@"
