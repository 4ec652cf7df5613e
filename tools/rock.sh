#!/bin/sh
# rock.sh FOLDER: `luarocks make` into a tree there, then stock lua5.4 uses
# what was installed. Needs no network.
set -e
tree=$1
rm -rf "$tree"
mkdir -p "$tree"
top=$(pwd)
tree=$(cd "$tree" && pwd)
# the build happens in a copy, as the first one of all
copy=$tree/source
mkdir -p "$copy"
cp -r core lua kernels tools Makefile cutelua-scm-1.rockspec "$copy"
cd "$copy"
set -- luarocks --lua-version=5.4 --tree="$tree" make --deps-mode=none
"$@" CFLAGS="-O1 -fPIC -std=c11" LUA_INCDIR="${LUA_INC:-/usr/include/lua5.4}" \
  cutelua-scm-1.rockspec
cd /
LUA_PATH="$tree/share/lua/5.4/?.lua;$tree/share/lua/5.4/?/init.lua" \
LUA_CPATH="$tree/lib/lua/5.4/?.so" lua5.4 -e '
  local cute = require "cute"
  local l = cute.make_layout({4, 8}, {8, 1})
  assert(tostring(l) == "(4,8):(8,1)", tostring(l))
  for _, name in ipairs {"cute.program.cli", "cute.npy", "cute.lang.report"} do
    require(name)
  end
  print(package.searchpath("cute.core", package.cpath))'
cd "$top"
rm -rf "$tree"
