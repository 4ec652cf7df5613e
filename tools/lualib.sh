#!/bin/sh
# lualib.sh FOLDER CFLAGS...: builds FOLDER/liblua.a with Lua's own assertions
# and the checks of its C API, from the source of the Debian package of the
# installed liblua5.4-dev (source.sh).
set -e
dir=$1
shift
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
flags="$* -DLUA_USE_LINUX -DLUA_COMPAT_5_3 -DLUAI_ASSERT -DLUA_USE_APICHECK"
version=$(dpkg-query -W -f '${source:Version}' liblua5.4-dev)
stamp="$version $flags"
[ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

sh "$(dirname "$0")/source.sh" "$dir" lua5.4 liblua5.4-dev
cd "$dir"
rm -f ./*.o liblua.a
printf '%s\n' lua5.4-*/src/*.c | grep -v '/luac*\.c$' |
  xargs -n 4 -P "$(getconf _NPROCESSORS_ONLN)" \
    ${CC:-cc} $flags -std=gnu99 -fPIC -c
ar rcs liblua.a ./*.o
echo "$stamp" >stamp
# SPDX-License-Identifier: MIT
