#!/bin/sh
# deb.sh BUILD: builds BUILD/cutelua_VERSION_ARCH.deb from the files that `make
# install` installs. Their times become SOURCE_DATE_EPOCH if that is set.
set -e
umask 022
build=$1
top=$(pwd)
work=$build/deb
rm -rf "$work"
mkdir -p "$work/debian" "$work/root/DEBIAN"
${MAKE:-make} -s install BUILD="$build" PREFIX=/usr DESTDIR="$top/$work/root"
root=$work/root
gzip -9n "$root/usr/share/man/man1/cutelua.1"
mv "$root/usr/share/doc/cutelua/LICENSE" \
  "$root/usr/share/doc/cutelua/copyright"
version=$(cat VERSION)
arch=$(dpkg --print-architecture)
# dpkg-shlibdeps reads the control file of a source package
printf 'Source: cutelua\n\nPackage: cutelua\nArchitecture: any\n' \
  >"$work/debian/control"
needs=$(cd "$work" && dpkg-shlibdeps -O root/usr/bin/cutelua 2>/dev/null |
  sed -n 's/^shlibs:Depends=//p')
size=$(find "$root/usr" -type f -printf '%s\n' |
  awk '{ n += int(($1 + 1023) / 1024) } END { print n }')
cat >"$root/DEBIAN/control" <<END
Package: cutelua
Version: $version
Architecture: $arch
Maintainer: cutelua maintainers <maintainers@cutelua.invalid>
Installed-Size: $size
Depends: $needs
Section: devel
Priority: optional
Description: CuTe layouts, tensors and GPU kernels in Lua
 Layouts, tensors, copy and MMA atoms and tiled operations as Lua values; GPU
 kernels are Lua functions that are traced, emitted as CUDA C, compiled with
 NVRTC and launched, or simulated on the CPU with all checks. CUDA's libraries
 are looked for when first used, and not needed to simulate.
END
deb=$build/cutelua_${version}_$arch.deb
[ -z "$SOURCE_DATE_EPOCH" ] ||
  find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" '{}' +
# With several threads, the compressed bytes depend on their number.
DPKG_DEB_THREADS_MAX=1 dpkg-deb --root-owner-group --build "$root" "$deb" \
  >/dev/null
echo "$deb: $(($(wc -c <"$deb") / 1024)) KiB, needs $needs"
# SPDX-License-Identifier: MIT
