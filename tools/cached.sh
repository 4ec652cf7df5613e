#!/bin/sh
# cached.sh COMPILER ARGUMENT...: compiles one file, or takes the object that an
# earlier build made from the same input. tools/web.mk lists in CUTE_INPUTS the
# inputs of all objects (compiler, headers). Objects are in the folder
# cutelua/objects of the user's caches; those unused for a month are deleted.
cache=${XDG_CACHE_HOME:-$HOME/.cache}/cutelua/objects
source='' object='' last=
for word; do
  case $last in -c) source=$word ;; -o) object=$word ;; esac
  last=$word
done
case $cache:$source:$CUTE_INPUTS in
  /*:?*:?*) ;;
  *) exec "$@" ;;
esac
key=$({
  echo "$CUTE_INPUTS $*"
  cat "$source"
} | sha256sum | cut -d' ' -f1)
kept=$cache/$key
# The list of headers is copied last, so that every kept object has one.
if [ -f "$kept.d" ] && cp "$kept.o" "$object" 2>/dev/null; then
  cp "$kept.d" "${object%.o}.d"
  touch "$kept.o" "$kept.d" 2>/dev/null
  exit 0
fi
"$@" || exit
umask 077
mkdir -p "$cache" 2>/dev/null || exit 0
find "$cache" -type f -mtime +30 -delete 2>/dev/null
[ -f "${object%.o}.d" ] || : >"${object%.o}.d"
for end in o d; do
  cp "${object%.o}.$end" "$kept.$$" 2>/dev/null &&
    mv "$kept.$$" "$kept.$end" || rm -f "$kept.$$"
done
exit 0
# SPDX-License-Identifier: MIT
