#!/bin/sh
# source.sh FOLDER SOURCE PACKAGE: fetches FOLDER/SOURCE-VERSION, the source of
# the Debian package that the installed PACKAGE was built from. Lists and
# downloads stay in FOLDER: the system's apt settings are read, not changed.
# Fails if the source is not available (no apt, no network).
set -e
mkdir -p "$1/apt/lists/partial" "$1/apt/archives/partial"
dir=$(cd "$1" && pwd)
version=$(dpkg-query -W -f '${source:Version}' "$3")
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
rm -rf "$2"-*
apt source "$2=$version"
# SPDX-License-Identifier: MIT
