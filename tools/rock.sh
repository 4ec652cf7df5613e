#!/bin/sh
# rock.sh FOLDER [ROCKS]: runs `luarocks make` into a tree in FOLDER and tests
# the installation with stock lua5.4. Needs no network. Leaves a binary rock in
# ROCKS.
set -e
tree=$1
rocks=$2
rm -rf "$tree"
mkdir -p "$tree"
top=$(pwd)
tree=$(cd "$tree" && pwd)
# the rock is built in a copy, as on a new machine
copy=$tree/source
mkdir -p "$copy"
cp -r core lua kernels tools Makefile VERSION ./*.rockspec "$copy"
cd "$copy"
level=-O0
[ -z "$rocks" ] || level=-O2
set -- luarocks --lua-version=5.4 --tree="$tree"
"$@" make --deps-mode=none CFLAGS="$level -fPIC -std=c11" LUA_INCDIR="${LUA_INC:-/usr/include/lua5.4}" \
  "cutelua-$(cat VERSION)-1.rockspec"
cd /
LUA_PATH="$tree/share/lua/5.4/?.lua;$tree/share/lua/5.4/?/init.lua" \
LUA_CPATH="$tree/lib/lua/5.4/?.so" lua5.4 -e '
  local cute = require "cute"
  local l = cute.make_layout({4, 8}, {8, 1})
  assert(tostring(l) == "(4,8):(8,1)", tostring(l))
  for _, name in ipairs {"cutelua.program.cli", "cute.npy", "cute.lang.report"} do
    require(name)
  end
  print(package.searchpath("cute.core", package.cpath))'
cd "$top"
if [ -n "$rocks" ]; then
  (cd "$rocks" && "$@" pack cutelua >/dev/null)
  ls "$rocks"/cutelua-*.rock
fi
rm -rf "$tree"
# SPDX-License-Identifier: MIT
