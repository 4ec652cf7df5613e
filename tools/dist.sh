#!/bin/sh
# dist.sh BUILD: writes the files of a release to BUILD/dist: the source
# archive, the Debian package, the source rock, the wheel, and SHA256SUMS. Equal
# commits give equal bytes. Times in the files are SOURCE_DATE_EPOCH, or the
# time of the commit.
set -e
umask 022
build=$1
out=$build/dist
name=cutelua-$(cat VERSION)

fail() {
  echo "dist: $1" >&2
  exit 1
}

missing=
for tool in git tar gzip sha256sum dpkg-deb dpkg-shlibdeps luarocks python3 \
  objdump strip; do
  command -v "$tool" >/dev/null || missing="$missing${missing:+, }$tool"
done
[ -z "$missing" ] ||
  fail "$missing must be installed to make a release"
[ "$(git rev-parse --show-prefix 2>/dev/null)x" = x ] &&
  git rev-parse -q --verify HEAD >/dev/null 2>&1 ||
  fail "a release is made from a commit, and this folder is no git checkout"
changed=$(git status --porcelain | sed 's/^...//' | paste -s -d , |
  sed 's/,/, /g')
[ -z "$changed" ] || fail \
  "a release contains only committed files; commit or remove: $changed"

SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
rm -rf "$out"
mkdir -p "$out"

${MAKE:-make} -s -j "$(getconf _NPROCESSORS_ONLN)" BUILD="$build" all
git ls-files -z | LC_ALL=C sort -z |
  tar -c --null --no-recursion -T - --format=ustar --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX --mtime="@$SOURCE_DATE_EPOCH" \
    --transform "s,^,$name/," | gzip -9n >"$out/$name.tar.gz"
# Without the workshop, which needs Emscripten.
WEB_FILES='' sh tools/deb.sh "$build" >/dev/null
mv "$build"/cutelua_"$(cat VERSION)"_*.deb "$out"
python3 tools/wheel.py "$build" "$(cat VERSION)" >/dev/null
mv "$build/wheel/$name"-*.whl "$out"
python3 tools/rock.py "$out" "$name"
luarocks --lua-version=5.4 lint "$name-1.rockspec" >/dev/null
(cd "$out" && LC_ALL=C sha256sum cutelua* >SHA256SUMS && cat SHA256SUMS)
# SPDX-License-Identifier: MIT
