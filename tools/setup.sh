#!/bin/sh
# setup.sh build|test|fuzz|check...: installs the Debian packages that are
# missing for that purpose, and changes nothing if all are there.
cc=${CC:-cc}
missing=
wished=

need() {  # PACKAGE COMMAND...: the package is missing if the command fails
  package=$1
  shift
  case "$missing " in *" $package "*) return ;; esac
  "$@" >/dev/null 2>&1 || missing="$missing $package"
}
wish() {  # PACKAGE COMMAND...: the same for an optional package
  package=$1
  shift
  "$@" >/dev/null 2>&1 || wished="$wished $package"
}
have() { command -v "$1"; }
there() { [ -e "$1" ]; }  # not `test`, which is a purpose below
header() { printf '#include <%s>\n' "$1" | $cc $2 -E -x c -; }
archive() { path=$($cc -print-file-name="$1") && [ "$path" != "$1" ]; }
browser() { have chromium || have chromium-browser || have google-chrome; }
module() { lua5.4 -e "require '$1'"; }

build() {
  need gcc have "$cc"
  need libc6-dev header stdio.h
  need lua5.4 have lua5.4
  need liblua5.4-dev header lua.h -I/usr/include/lua5.4
  need liblua5.4-dev archive liblua5.4.a
  need libedit-dev header histedit.h
  need libedit-dev archive libedit.a
  need libbsd-dev archive libbsd.a
  need libmd-dev archive libmd.a
  need libncurses-dev archive libtinfo.a
  need gzip have gzip
  need zlib1g-dev header zlib.h
  need zlib1g-dev archive libz.a
}
wheel() {
  need python3 have python3
  need binutils have objdump
}
test() {
  need lua-busted module busted.runner
  need lua-dkjson module dkjson
  need python3 have python3
  # emitted kernels are compiled for the host and compared with the simulator
  need g++ have "${CXX:-c++}"
  wish chromium browser  # opens the generated pages
}
asan() {
  need dpkg-dev have dpkg-source
  need patch have patch
}
fuzz() {
  need clang have clang
}
rules() {
  need lua5.4 have lua5.4
  need lua-check have luacheck
}
# Emscripten with its clang and node: 110 MB to download, 870 MB installed; the
# page's editor: 0.8 MB, 5 MB; Lua and zlib from source.sh: 10 MB.
web() {
  need emscripten have emcc
  need node-acorn there /usr/share/nodejs/acorn
  need libjs-codemirror there /usr/share/javascript/codemirror
  need dpkg-dev have dpkg-source
}
webtest() {
  web
  need chromium browser
}
deb() {
  need dpkg-dev have dpkg-shlibdeps
  need debootstrap have debootstrap
}
check() {
  fuzz
  rules
  need luarocks have luarocks
  need dpkg-dev have dpkg-shlibdeps
}

# PACKAGE...: prints the size of the download and of the installation: (to
# fetch: 110 MB; installed: 870 MB). Prints nothing if apt's lists are missing.
size() {
  LC_ALL=C $apt install --no-install-recommends --assume-no "$@" 2>/dev/null |
    sed -n 's/^Need to get \(.*\) of archives\.$/ (to fetch: \1;/p
            s/^After this operation, \(.*\) of additional.*$/ installed: \1)/p' |
    tr -d '\n'
}
install() {  # PACKAGE...: installs packages by apt.
  $apt install -y --no-install-recommends "$@" >/dev/null 2>&1 || {
    $apt update >/dev/null &&
    $apt install -y --no-install-recommends "$@"
  }
}

for purpose; do "$purpose"; done
sudo=
[ "$(id -u)" = 0 ] || sudo=sudo
apt="$sudo env DEBIAN_FRONTEND=noninteractive apt-get"
if [ -n "$missing" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "setup: missing, and no apt-get here:$missing" >&2
    exit 1
  fi
  [ -z "$sudo" ] || command -v sudo >/dev/null || {
    echo "setup: needs root or sudo to install:$missing" >&2
    exit 1
  }
  # shellcheck disable=SC2086  # a list of words
  echo "setup: installing$missing$(size $missing)"
  # shellcheck disable=SC2086
  install $missing || exit 1
fi
[ -n "$wished" ] || exit 0
# Never asks for a password, and does not wait for a network.
apt="${sudo:+sudo -n} env DEBIAN_FRONTEND=noninteractive timeout 300 apt-get \
  -o Acquire::Retries=0 -o Acquire::http::Timeout=10"
# shellcheck disable=SC2086
echo "setup: installing$wished$(size $wished)"
# shellcheck disable=SC2086
install $wished >/dev/null 2>&1 || echo "setup: goes on without$wished"
exit 0
# SPDX-License-Identifier: MIT
