#!/bin/sh
# Runs compare.py in a virtual environment with pinned packages:
#   sh tools/dsl/run.sh BUILD [arguments of compare.py]
set -eu
build=$1
shift
venv=${DSL_VENV:-$build/dsl}
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" -q install --disable-pip-version-check \
    nvidia-cutlass-dsl==4.8.1 numpy==2.4.6
fi
exec "$venv/bin/python" tools/dsl/compare.py --cutelua "$build/cutelua" "$@"
