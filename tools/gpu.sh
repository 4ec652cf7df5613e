#!/bin/sh
# gpu.sh BUILD: runs every spec through BUILD/cutelua, including those that need
# a GPU. If busted is not installed (or CUTE_KIT is set) it uses BUILD/kit,
# which `make gpu-kit` fills; the machine then only needs a shell, the driver
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
# SPDX-License-Identifier: MIT
