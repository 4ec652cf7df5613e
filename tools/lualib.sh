#!/bin/sh
# lualib.sh FOLDER CFLAGS...: builds FOLDER/liblua.a, with Lua's own assertions
# and the checks of its C API, from the source of the Debian package that the
# installed liblua5.4-dev was made of. Lists and downloads stay in FOLDER: the
# system's apt settings are read, not changed. Fails where the source cannot be
# had (no apt, no network).
set -e
dir=$1
shift
mkdir -p "$dir/apt/lists/partial" "$dir/apt/archives/partial"
dir=$(cd "$dir" && pwd)
flags="$* -DLUA_USE_LINUX -DLUA_COMPAT_5_3 -DLUAI_ASSERT -DLUA_USE_APICHECK"
version=$(dpkg-query -W -f '${source:Version}' liblua5.4-dev)
stamp="$version $flags"
[ "$(cat "$dir/stamp" 2>/dev/null)" != "$stamp" ] || exit 0

. /etc/os-release
echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" \
  >"$dir/apt/sources.list"
apt() {
  apt-get -q -o Dir::Etc::SourceList="$dir/apt/sources.list" \
    -o Dir::Etc::SourceParts=- -o Dir::State::lists="$dir/apt/lists" \
    -o Dir::Cache="$dir/apt" -o APT::Sandbox::User="$(id -un)" \
    -o Acquire::http::Timeout=20 -o Acquire::Retries=1 "$@"
}
apt update
cd "$dir"
rm -rf lua5.4-*
apt source "lua5.4=$version"
rm -f ./*.o liblua.a
for file in lua5.4-*/src/*.c; do
  case $file in */lua.c | */luac.c) ;;
    *) ${CC:-cc} $flags -std=gnu99 -fPIC -c "$file" ;;
  esac
done
ar rcs liblua.a ./*.o
echo "$stamp" >stamp
