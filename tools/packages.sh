#!/bin/sh
# packages.sh BUILD: installs the Debian package, then the rock, in a root made
# by debootstrap, and runs commands of a user there. Must run as root.
set -e
build=$(cd "$1" && pwd)
deb=$(ls "$build"/cutelua_*.deb)
rock=$(ls "$build"/cutelua-*.rock)
root=$build/packages/root
mkdir -p "$build/packages"
. /etc/os-release
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
  HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"; }
try() {
  printf '%-52s' "$1"
  shift
  if inside "$@" >"$build/packages/out" 2>&1; then echo ok
  else
    echo FAILED
    tail -20 "$build/packages/out"
    exit 1
  fi
}

rm -rf "$root"
debootstrap --variant=minbase "$VERSION_CODENAME" "$root" \
  >"$build/packages/log" 2>&1 || { tail "$build/packages/log"; exit 1; }
cp "$deb" "$root/tmp/cutelua.deb"
try "apt installs the package" apt-get install -y /tmp/cutelua.deb
try "it runs" cutelua --version
try "a script of its own, without CUDA" \
  cutelua /usr/share/cutelua/scripts/gemm3stage.lua --m 256 --n 256 --k 128
try "its documents" sh -c 'zcat /usr/share/man/man1/cutelua.1.gz | grep -q COMMANDS
  ls /usr/share/doc/cutelua/README.md /usr/share/doc/cutelua/copyright'
try "its completion" bash -c '. /usr/share/bash-completion/completions/cutelua
  COMP_WORDS=(cutelua che) COMP_CWORD=1
  _cutelua cutelua
  [ "${COMPREPLY[*]}" = check ] || exit 1
  COMP_WORDS=(cutelua check --sur) COMP_CWORD=2
  _cutelua cutelua
  [ "${COMPREPLY[*]}" = --surgeon ]'
try "apt removes it" apt-get remove -y cutelua
try "nothing stays" sh -c '! ls -d /usr/share/cutelua /usr/bin/cutelua'

try "apt installs stock Lua and luarocks" \
  apt-get install -y --no-install-recommends lua5.4 luarocks unzip
cp "$rock" "$root/tmp"
try "luarocks installs the rock" luarocks --lua-version=5.4 install \
  --deps-mode=none "/tmp/$(basename "$rock")"
try "stock Lua uses it" lua5.4 -e 'local cute = require "cute"
  assert(tostring(cute.make_layout({4, 8}, {8, 1})) == "(4,8):(8,1)")
  local k = cute.kernel("k", function(a) a[cute.arch.thread_idx()] = 1 end)
  local a = cute.zeros({32}, cute.f32)
  k(a):launch {grid = {1}, block = {32}, device = "sim"}
  assert(a[31] == 1)'
rm -rf "$build/packages"
# SPDX-License-Identifier: MIT
