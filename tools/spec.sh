#!/bin/sh
# spec.sh INTERPRETER TAGS SPEC: runs one spec file under busted; suite.sh calls
# it. A process that dies counts as one failure. The spec's standard error is
# shown if it fails.
lua=$1 tags=$2 spec=$3
out=$CUTE_OUT/${spec##*/}.$$
CUTE_SUMMARY=$out.counts
case $lua in
  /* | lua*) CUTELUA_LUA=$lua ;;
  *) CUTELUA_LUA=$PWD/$lua ;;
esac
export CUTE_SUMMARY CUTELUA_LUA
exe=$(command -v busted)
run() {
  timeout "${SPEC_SECONDS:-900}" "$lua" "$exe" \
    --lpath='lua/?.lua;lua/?/init.lua;./?.lua' --cpath="$CUTE_BUILD/?.so" \
    --exclude-tags="$tags" --helper=spec/quick.lua -o tools/summary.lua \
    -Xoutput "$tags" "$spec" >"$out" 2>"$out.err"
}
run
code=$?
# Sometimes the leak checker itself dies at the end of a process.
if [ "$code" != 0 ] &&
  grep -q "LeakSanitizer has encountered a fatal error" "$out.err"; then
  rm -f "$out.counts"
  run
  code=$?
fi
passed=0 failed=1 pending=0 why="exit code $code, no result"
if [ -s "$out.counts" ]; then
  read -r passed failed pending <"$out.counts"
  why=
  if [ "$code" != 0 ] && [ "$failed" = 0 ]; then
    failed=1 why="exit code $code"
  fi
  [ "$pending" = 0 ] || sed -n '2,$p' "$out.counts" >>"$CUTE_OUT/pending"
fi
echo "$passed $failed" >>"$CUTE_COUNTS"
# Seconds of CPU, including child processes: the cost of the file, whatever else
# the machine does.
times >"$out.times"
seconds=$(awk 'NR == 2 {
  split($1 "m" $2, t, /[ms]+/)
  printf "%.1f", t[1] * 60 + t[2] + t[3] * 60 + t[4] }' "$out.times")
echo "$seconds $spec" >>"$CUTE_OUT/seconds"
# Writes the report at once, so that the reports of two files do not mix.
{
  cat "$out"
  [ "$failed" = 0 ] || cat "$out.err"
  line="$spec: $passed passed, $failed failed"
  [ "$pending" = 0 ] || line="$line, $pending pending"
  line="$line, $seconds s${why:+ ($why)}"
  [ "$failed" = 0 ] && echo "ok      $line" || echo "FAILED  $line"
} >"$out.all"
cat "$out.all"
exit 0
# SPDX-License-Identifier: MIT
