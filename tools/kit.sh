#!/bin/sh
# kit.sh BUILD: copies busted and its dependencies into BUILD/kit, so that the
# specs run inside BUILD/cutelua on a machine that has neither busted nor Lua.
# Only this folder and the sources have to be taken there. (C modules of Lua
# take Lua's API from the program that loads them.)
kit=$1/kit
rm -rf "$kit"
mkdir -p "$kit/bin"
folders=$(lua5.4 -e '
  for f in (package.path .. ";" .. package.cpath):gmatch "(/[^;]*)/%?%.%l+" do
    print(f)
  end')
for name in busted cliargs luassert mediator pl say system term lfs dkjson; do
  for folder in $folders; do
    for file in "$folder/$name" "$folder/$name.lua" "$folder/$name.so"; do
      [ ! -e "$file" ] || cp -rLn "$file" "$kit/"
    done
  done
  [ -e "$kit/$name" ] || [ -e "$kit/$name.lua" ] || [ -e "$kit/$name.so" ] || {
    echo "kit: no Lua module '$name' here" >&2
    exit 1
  }
done
echo 'require "busted.runner" {standalone = false}' >"$kit/bin/busted"
# The specs call lua5.4, which is the program here.
printf '#!/bin/sh\nexec "$CUTELUA" "$@"\n' >"$kit/bin/lua5.4"
chmod +x "$kit"/bin/*
# SPDX-License-Identifier: MIT
