#!/bin/sh
# spec.sh INTERPRETER TAGS SPEC: one spec file under busted; called by
# suite.sh. A process that dies counts as one failure.
lua=$1 tags=$2 spec=$3
out=$CUTE_OUT/$(basename "$spec").$$
CUTE_SUMMARY=$out.counts
case $lua in
  /* | lua*) CUTELUA_LUA=$lua ;;
  *) CUTELUA_LUA=$PWD/$lua ;;
esac
export CUTE_SUMMARY CUTELUA_LUA
exe=$(command -v busted)
run() {
  rm -f "$out.counts"
  timeout "${SPEC_SECONDS:-900}" "$lua" "$exe" \
    --lpath='lua/?.lua;lua/?/init.lua;./?.lua' --cpath="$CUTE_BUILD/?.so" \
    --exclude-tags="$tags" --helper=spec/quick.lua -o tools/summary.lua \
    -Xoutput "$spec" "$spec" >"$out" 2>&1
}
run
code=$?
# Now and then the leak checker dies itself, at the end of a process.
if grep -q "LeakSanitizer has encountered a fatal error" "$out"; then
  run
  code=$?
fi
if [ -s "$out.counts" ]; then
  cat "$out.counts" >>"$CUTE_COUNTS"
  read -r _ failed <"$out.counts"
  if [ "$code" != 0 ] && [ "$failed" = 0 ]; then
    echo "0 1" >>"$CUTE_COUNTS"
    echo "FAILED  $spec: exit code $code" >>"$out"
  fi
else
  echo "0 1" >>"$CUTE_COUNTS"
  echo "FAILED  $spec: exit code $code, no result" >>"$out"
fi
cat "$out"
exit 0
