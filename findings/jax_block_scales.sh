#!/bin/sh
# Shows what JAX's reductions and comparisons make of float8_e8m0fnu, the type
# of the scale factors of MX blocks.
#
# Hypothesis before the run: max, min, argmax and the cumulative maximum of
# scale factors are those of the same numbers in float32.
#
# Result, jax 0.10.2 (CPU), four factors 1, 4, 0.25, 2 without a NaN: max, min,
# cummax and segment_max are NaN, and argmax and argmin are 0. The type has
# neither infinities, 0 nor negative numbers. Apparently the reduction starts
# with -inf, which becomes NaN.
#  top_k, sort, maximum  are right: jnp.sort(x)[-1] is the maximum.
#  nextafter             of 1 and 0.25 toward 4 goes down.
#  zeros_like            is NaN.
# The largest factor of a block, taken by max from stored factors, is lost.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import jax
import jax.numpy as jnp
from jax import lax

scale = jnp.float8_e8m0fnu
x = jnp.asarray([1, 4, 0.25, 2], jnp.float32)


def show(name, f):
    """Prints f of the numbers as scale factors, and as float32."""
    results = [" ".join("%g" % v for v in jnp.ravel(f(a).astype(jnp.float32)))
               for a in (x.astype(scale), x)]
    print("%-14s %-16s %s" % (name, *results))


show("max", jnp.max)
show("min", jnp.min)
show("argmax", jnp.argmax)
show("argmin", jnp.argmin)
show("cummax", lax.cummax)
show("segment_max", lambda a: jax.ops.segment_max(
    a, jnp.array([0, 0, 1, 1]), 2))
show("top_k", lambda a: lax.top_k(a, 2)[0])
show("sort", jnp.sort)
show("maximum", lambda a: jnp.maximum(a, a[::-1]))
show("nextafter < 4", lambda a: jnp.nextafter(a, jnp.full_like(a, 4)) < a)
show("zeros_like", jnp.zeros_like)
EOF
JAX_PLATFORMS=cpu "$work/venv/bin/python" -W ignore "$work/run.py" \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
max            nan              4
min            nan              0.25
argmax         0                1
argmin         0                2
cummax         nan nan nan nan  1 4 4 4
segment_max    nan nan          4 2
top_k          4 2              4 2
sort           0.25 1 2 4       0.25 1 2 4
maximum        2 4 4 2          2 4 4 2
nextafter < 4  1 0 1 0          0 0 0 0
zeros_like     nan nan nan nan  0 0 0 0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
