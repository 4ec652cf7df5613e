#!/bin/sh
# gpu.sh BUILD: every spec through BUILD/cutelua, those that need a GPU too.
# Where busted is not installed (or CUTE_KIT is set) it takes BUILD/kit, which
# `make gpu-kit` fills: then the machine needs nothing but a shell, the driver
# and NVRTC.
build=${1:-build}
kit=$PWD/$build/kit
if [ -n "$CUTE_KIT" ] || ! command -v busted >/dev/null; then
  [ -d "$kit" ] || {
    echo "gpu: neither busted nor $build/kit is here" >&2
    exit 1
  }
  CUTELUA=$PWD/$build/cutelua
  PATH=$kit/bin:$PATH
  LUA_PATH="$kit/?.lua;$kit/?/init.lua;;"
  LUA_CPATH="$kit/?.so;;"
  export CUTELUA PATH LUA_PATH LUA_CPATH
fi
exec sh tools/suite.sh "$build" gpu sanitizer
