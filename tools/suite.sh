#!/bin/sh
# suite.sh BUILD PART...: runs parts of the test suite, ends with one line
# "N passed, N failed", and fails if anything failed.
#   quick    the spec files of `test` that take at most 0.5 s
#   test     the specs whose results may differ between machines: all but those
#            of tools in Lua alone and of documents, without tests of the tag
#            #long
#   specs    every spec, through stock lua5.4 and BUILD/cute/core.so
#   program  specs of modules of the program, through BUILD/cutelua itself
#   gpu      every spec with the GPU-only ones, through BUILD/cutelua
#   sanitizer  scripts on a GPU under the toolkit's compute-sanitizer
#   asan     the specs of the rooms whose subject is C, those of the program,
#            and one test of each tool (spec/program/smoke_spec.lua), without
#            the tag #long: through a program built with the sanitizers and a
#            Lua that checks how its C API is used
#   rules    the rules of the house that need no build: tools/check.lua,
#            luacheck, tools/annotations.lua
#   check    the rules, circles of files, -Werror under gcc and clang, the rock
#   web      the workshop: WebAssembly under node, its page in a Chromium
#   build_web  builds the workshop; `specs` then runs its specs among the others,
#            because they wait for node and Chromium half of the time
#   memerr   a script, with allocation 1, 2, 3, ... failing
# SPECS="spec/layout/swizzle_spec.lua ..." narrows all of them, and runs every
# test of these files.
build=$1
shift
work=$build/suite
rm -rf "$work"
mkdir -p "$work"
counts=$work/counts
: >"$counts"
: >"$work/pending"
jobs=$(getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
specs=${SPECS:-$(ls spec/*/*_spec.lua | grep -v ^spec/web/)}
# Specs that start the program, such as program/repl, are not listed: they start
# the same program from stock lua5.4.
program_specs="cute/npy lang/report program/cli"
# Rooms whose subject is C, and the kernel language, half of which is C.
asan_rooms="arch atoms base bind emit gpu ir lang layout library sim tensor"
# Rooms of tools that are Lua alone. One run of each tool represents them in
# `make test` (spec/program/smoke_spec.lua).
tool_rooms="bundle check ci debug draw findings lsp mcp page profile task tune"
tool_rooms="$tool_rooms workshop"
# Specs that check documents and rules of the house, the same on any machine.
house_specs="program/(annotations|docs|house|names|pages|programs)_spec"
house_specs="$house_specs|examples/pages_spec"
test_specs=${SPECS:-$(printf '%s\n' $specs |
  grep -Ev "^spec/(($(echo $tool_rooms | tr ' ' '|'))/|$house_specs)")}
make=${MAKE:-make}
web_specs=
long=
[ -n "$SPECS" ] || long=,long

# count NAME COMMAND...: runs the command, and counts it as one test. Its output
# goes to the file $out.
out=$work/out
count() {
  name=$1
  shift
  if "$@" >"$out" 2>&1; then
    echo "1 0" >>"$counts"
    echo "ok      $name"
  else
    echo "0 1" >>"$counts"
    echo "FAILED  $name"
    grep -v '^\(CC\|LD\|LUA\) ' "$out" | sed 's/^/    /' | head -60
  fi
}

# beside NAME COMMAND...: does the same in the background. `wait` waits for it.
beside() {
  (
    out=$(mktemp "$work/beside.XXXXXX")
    count "$@"
  ) &
}

# Numbers the spec files as they end; the argument is their total. On a
# terminal, the line of a passing file is replaced by the next.
progress() {
  total=$1 n=0 clear='' end='\n'
  [ ! -t 1 ] || clear='\033[K' end='\r'
  while IFS= read -r line; do
    case $line in
      "ok      spec/"* | "FAILED  spec/"*)
        n=$((n + 1))
        case $n:$line in "$total:"* | *:FAILED*) last='\n' ;; *) last=$end ;; esac
        printf "$clear[%*d/%d] %s$last" "${#total}" "$n" "$total" "$line"
        ;;
      *) printf "$clear%s\n" "$line" ;;
    esac
  done
}

# slowest BUILD TAGS: sorts the names on standard input, the slowest of the last
# run first, so that all processors finish together. Unknown files come first.
# spec/seconds_long.txt has the files that take longer with their #long tests.
slowest() {
  case $2 in *,long) long_times= ;; *) long_times=spec/seconds_long.txt ;; esac
  cat spec/seconds.txt "$1/seconds.txt" $long_times 2>/dev/null |
    awk 'NR == FNR { t[$2] = $1; next }
      { print ($1 in t ? t[$1] : 1e9), $1 }' - "$work/names" |
    sort -k1,1rn -k2 | cut -d' ' -f2
}

# busted BUILD INTERPRETER TAGS SPEC...: runs each spec file in its own process.
# One process more than there are processors runs, because some specs wait.
busted() {
  dir=$1 lua=$2 tags=$3
  shift 3
  CUTELUA=$PWD/$dir/cutelua
  CUTE_BUILD=$dir
  CUTE_COUNTS=$PWD/$counts
  CUTE_OUT=$PWD/$work
  export CUTELUA CUTE_BUILD CUTE_COUNTS CUTE_OUT
  printf '%s\n' "$@" >"$work/names"
  : >"$work/seconds"
  slowest "$dir" "$tags" |
    xargs -P "$((jobs + 1))" -I '{}' sh tools/spec.sh "$lua" "$tags" '{}' |
    progress $#
  cat "$work/seconds" >>"$dir/seconds.txt"
  awk '{ t[$2] = $1 } END { for (f in t) print t[f], f }' \
    "$dir/seconds.txt" | sort -k2 >"$work/seconds"
  mv "$work/seconds" "$dir/seconds.txt"
}

# clean_build FOLDER MAKE-ARGUMENT...: runs make with the build folder FOLDER.
clean_build() {
  dir=$1
  shift
  $make -s -j "$jobs" BUILD="$dir" "$@"
}

run_quick() {
  list=$test_specs
  [ -n "$SPECS" ] ||
    list=$(printf '%s\n' $list | awk 'NR == FNR { t[$2] = $1; next }
      t[$1] <= 0.5' spec/seconds.txt -)
  busted "$build" lua5.4 gpu$long $list
}
run_test() { busted "$build" lua5.4 gpu$long $test_specs; }
run_specs() { busted "$build" lua5.4 gpu $specs $web_specs; }
run_gpu() { busted "$build" "$build/cutelua" none $specs; }
run_build_web() {
  count "make web" $make BUILD="$build" web
  [ -n "$SPECS" ] || web_specs=$(ls spec/web/*_spec.lua)
}
run_web() {
  run_build_web
  busted "$build" lua5.4 gpu ${SPECS:-$web_specs}
}

# Omits racecheck, which crashes on cp.async; the simulator finds races.
run_sanitizer() {
  tool=$(command -v compute-sanitizer ||
    ls "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer" 2>/dev/null) || {
    echo "        compute-sanitizer is not here: scripts do not run under it"
    return
  }
  for check in memcheck initcheck synccheck; do
    for script in gemm_base gemm3stage copy_async transpose; do
      size="--m 256 --n 256"
      case $script in gemm*) size="$size --k 256" ;; esac
      # shellcheck disable=SC2086  # a list of words
      count "$script under $check" "$tool" --tool "$check" \
        --error-exitcode 99 "$build/cutelua" "scripts/$script.lua" \
        --device gpu --rounds 0 $size
    done
  done
}

run_program() {
  mine=
  for s in $program_specs; do
    case " $(echo $specs) " in
      *" spec/${s}_spec.lua "*) mine="$mine spec/${s}_spec.lua" ;;
    esac
  done
  [ -z "$mine" ] || busted "$build" "$build/cutelua" gpu $mine
}

run_asan() {
  # Lua itself is not under test: its assertions report our misuse of its API.
  # Stack traces need lines alone (-g1), which compile faster than -g.
  frames="-g1 -fno-omit-frame-pointer"
  flags="-O1 $frames -fsanitize=address"
  # Two checks are off in the code that sums MMA tiles, where they took a third
  # of the time: signed overflow, because the sums are bounded; and use after
  # scope, which keeps vectors in memory.
  tiles="-O2 -fno-sanitize=signed-integer-overflow,pointer-overflow"
  tiles="$tiles -fno-sanitize-address-use-after-scope"
  lua=$PWD/$build-asan/lua/liblua.a
  if sh tools/lualib.sh "$build-asan/lua" -O2 $frames >"$work/lualib" 2>&1; then
    echo "ok      Lua with its assertions and API checks"
  else
    echo "note    no source of Lua to be had: its C API goes unchecked"
    sed 's/^/    /' "$work/lualib" | tail -3
    lua=-l:liblua5.4.a
  fi
  rm -f "$build-asan/cutelua"  # it may have been linked with another Lua
  count "sanitized build" clean_build "$build-asan" STRIP= LUA_LIB="$lua" \
    TILES="$tiles" \
    CFLAGS="$flags,undefined -fno-sanitize-recover=undefined" \
    "$build-asan/cutelua" "$build-asan/spec/hardware.so" \
    "$build-asan/libcutelua.so"
  ASAN_OPTIONS=detect_leaks=1:exitcode=99:allocator_may_return_null=1
  ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=4:quarantine_size_mb=64
  UBSAN_OPTIONS=print_stacktrace=1
  CUTE_SANITIZED=1
  export ASAN_OPTIONS UBSAN_OPTIONS CUTE_SANITIZED
  list=$specs
  if [ -z "$SPECS" ]; then
    list=spec/program/smoke_spec.lua
    for s in $program_specs program/program program/repl; do
      list="$list spec/${s}_spec.lua"
    done
    for room in $asan_rooms; do list="$list $(ls spec/"$room"/*_spec.lua)"; done
    list=$(printf '%s\n' $list | sort -u)  # lang/report is in both lists
  fi
  busted "$build-asan" "$build-asan/cutelua" gpu,noasan$long $list
  unset ASAN_OPTIONS UBSAN_OPTIONS CUTE_SANITIZED
}

run_memerr() {
  count "memerr build" clean_build "$build-memerr" \
    DEFS=-DCUTE_MEMERR "$build-memerr/cutelua"
  for script in spec/memerr.lua spec/*/memerr.lua; do
    count "$script: every allocation fails once" lua5.4 tools/memerr.lua \
      "$build-memerr/cutelua" "$script"
  done
}

# Runs luacheck beside the other rules: each uses one processor.
run_rules() {
  beside "luacheck" luacheck -q --cache "$build/luacheck" \
    core lua kernels scripts spec tools examples
  lua5.4 tools/check.lua >"$work/check"
  grep -v '^counts' "$work/check"
  sed -n 's/^counts //p' "$work/check" >>"$counts"
  count "annotations and what editors would mark" lua5.4 tools/annotations.lua
  wait
}

run_check() {
  beside "names in documents" "$build/cutelua" tools/docs.lua
  beside "circles of files, exported names" lua5.4 tools/circles.lua "$build"
  run_rules
  beside "luarocks make" env MAKEFLAGS="-j$jobs" sh tools/rock.sh "$work/rock"
  [ -n "$BUILT_WERROR" ] ||  # $build has -Werror already
    count "gcc -Werror" clean_build "$build-gcc" CC=gcc WERROR=1 all
  count "clang -Werror" clean_build "$build-clang" CC=clang WERROR=1 \
    CFLAGS=-O0 all
  for fuzz in spec/*/fuzz.c; do
    count "$fuzz" cc -std=c11 -fsyntax-only -Icore -Wall -Wextra -Werror "$fuzz"
  done
  wait
}

for part; do
  echo "== $part"
  "run_$part"
done
sort "$work/pending" | uniq -c | sort -rn | awk '
  { n += $1; $1 = $1 " need"; list = list (NR > 1 ? ", " : "") $0 }
  END { if (n) print n " pending: " list }'
awk '{ p += $1; f += $2 } END {
  if (p + f == 0) f = 1
  printf "%d passed, %d failed\n", p, f
  exit f > 0 }' "$counts"
# SPDX-License-Identifier: MIT
