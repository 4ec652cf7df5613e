#!/bin/sh
# Shows conversions to f16 (_Float16) in programs that Zig's C compiler builds:
# from long double, which has 80 bits on x86-64, and from other types.
#
# Hypothesis before the run: all conversions round once, to nearest even. After
# the first run, of one midpoint: only the last bit of subnormal results is
# wrong.
#
# Result, Zig 0.17.1 (x86-64 Linux): every nonzero subnormal f16 number is wrong
# if it is converted from long double. All 1023 of them change on their way to
# long double and back: 100 * 2^-24 becomes 72 * 2^-24. 1e-5 becomes 4.77e-6.
# Larger numbers are right. The conversions from float, double and __float128
# and of constants are right. Programs that GCC builds are right for all types.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check ziglang==0.17.1
cat >"$work/k.c" <<'EOF'
#include <stdio.h>

// Volatile, so that the program converts the numbers when it runs.
static volatile float f = 1e-5f;
static volatile double d = 1e-5;
static volatile __float128 q = 1e-5;
static volatile long double l = 1e-5L, a = 100 * 0x1p-24L, b = 12.34L;

// Prints how many f16 numbers change on their way to long double and back.
static void count(int first, int last) {
  int n = 0;
  for (int i = first; i <= last; i++) {
    union { unsigned short bits; _Float16 h; } x = {i}, y;
    volatile long double wide = x.h;
    y.h = (_Float16)wide;
    n += x.bits != y.bits;
  }
  printf("codes 0x%04x to 0x%04x: %d change\n", first, last, n);
}

int main(void) {
  printf("1e-5, float        %.3g\n", (double)(_Float16)f);
  printf("1e-5, double       %.3g\n", (double)(_Float16)d);
  printf("1e-5, __float128   %.3g\n", (double)(_Float16)q);
  printf("1e-5, constant     %.3g\n", (double)(_Float16)1e-5L);
  printf("1e-5, long double  %.3g\n", (double)(_Float16)l);
  printf("100 * 2^-24        %g * 2^-24\n", (double)(_Float16)a * 0x1p24);
  printf("12.34              %g\n", (double)(_Float16)b);
  count(0x0001, 0x03ff);
  count(0x0400, 0x7bff);
  return 0;
}
EOF
export ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache"
{
  echo "zig cc $("$work/venv/bin/python" -m ziglang version)"
  "$work/venv/bin/python" -m ziglang cc -O2 -o "$work/zig" "$work/k.c"
  "$work/zig"
  echo gcc
  gcc -O2 -o "$work/gcc" "$work/k.c"
  "$work/gcc"
} >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
zig cc 0.17.1
1e-5, float        1e-05
1e-5, double       1e-05
1e-5, __float128   1e-05
1e-5, constant     1e-05
1e-5, long double  4.77e-06
100 * 2^-24        72 * 2^-24
12.34              12.3438
codes 0x0001 to 0x03ff: 1023 change
codes 0x0400 to 0x7bff: 0 change
gcc
1e-5, float        1e-05
1e-5, double       1e-05
1e-5, __float128   1e-05
1e-5, constant     1e-05
1e-5, long double  1e-05
100 * 2^-24        100 * 2^-24
12.34              12.3438
codes 0x0001 to 0x03ff: 0 change
codes 0x0400 to 0x7bff: 0 change
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
