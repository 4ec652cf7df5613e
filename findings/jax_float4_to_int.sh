#!/bin/sh
# Shows what JAX makes of the number 6, the largest float4_e2m1fn, in a
# conversion to an integer, and in isfinite and isinf.
#
# Hypothesis before the run: 6 becomes 6 in all integer types. float4_e2m1fn has
# no infinity, so isinf is false for all of its numbers.
#
# Result, jax 0.10.2 (CPU): 6 and -6 become the largest and the smallest integer
# of the target, with and without jit. The other 14 codes are right, and so is
# a conversion to float32, and from there to an integer. isinf and isfinite of 6
# are both true. The largest number of an NVFP4 block is scaled to 6, so almost
# every block has a number that is converted wrongly.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import jax
import jax.numpy as jnp

x = jnp.asarray([1, 4, 6, -6], jnp.float4_e2m1fn)


def show(name, values):
    print("%-22s" % name, *("%d" % v for v in values))


for name in ("int32", "uint32", "int8", "int4", "uint4"):
    dtype = getattr(jnp, name)
    numbers = x if name[0] == "i" else x[:3]
    show(name, numbers.astype(dtype))
    show(name + " with jit", jax.jit(lambda a: a.astype(dtype))(numbers))
    show(name + " from float32",
         numbers.astype(jnp.float32).astype(dtype))
show("isinf", jnp.isinf(x))
show("isfinite", jnp.isfinite(x))
codes = jnp.arange(16, dtype=jnp.uint8).astype(jnp.uint4)
every = jax.lax.bitcast_convert_type(codes, jnp.float4_e2m1fn)
show("codes that differ", [jnp.sum(
    every.astype(jnp.int32) != every.astype(jnp.float32).astype(jnp.int32))])
EOF
JAX_PLATFORMS=cpu "$work/venv/bin/python" -W ignore "$work/run.py" \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
int32                  1 4 2147483647 -2147483648
int32 with jit         1 4 2147483647 -2147483648
int32 from float32     1 4 6 -6
uint32                 1 4 4294967295
uint32 with jit        1 4 4294967295
uint32 from float32    1 4 6
int8                   1 4 127 -128
int8 with jit          1 4 127 -128
int8 from float32      1 4 6 -6
int4                   1 4 7 -8
int4 with jit          1 4 7 -8
int4 from float32      1 4 6 -6
uint4                  1 4 15
uint4 with jit         1 4 15
uint4 from float32     1 4 6
isinf                  0 0 1 1
isfinite               1 1 1 1
codes that differ      2
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
