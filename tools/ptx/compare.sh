#!/bin/sh
# Runs tools/NAME/compare.py in a virtual environment with pinned packages:
#   sh tools/ptx/compare.sh BUILD NAME [arguments of compare.py]
set -eu
build=$1
name=$2
shift 2
case $name in
  triton) packages="triton==3.9.0" ;;
  dsl) packages="nvidia-cutlass-dsl==4.8.1" ;;
  compilers) packages="numba-cuda==0.30.4 numba==0.68.1 tilelang==0.1.15" ;;
esac
venv=$build/$name
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  # shellcheck disable=SC2086
  "$venv/bin/pip" -q install --disable-pip-version-check $packages numpy==2.4.6
fi
export TRITON_CACHE_DIR="$venv/cache" CUTELUA="$build/cutelua"
exec "$venv/bin/python" "tools/$name/compare.py" --cutelua "$build/cutelua" "$@"
