#!/bin/sh
# Shows what JAX's compiler makes of the same function of a constant and of an
# argument, and what StableHLO's reference interpreter makes of it.
#
# Hypothesis before the run: the three agree, apart from the last bits of
# transcendental functions. A conversion rounds once, and E2M1, which has no
# infinity, saturates.
#
# Result, jax 0.10.2 (CPU): they disagree. Each of the three is wrong somewhere.
#  clz           of a constant is -32 for the int32 -1, and -56 for an int8.
#  E8M0          constants: a NaN is read as infinity, -0.5 becomes 1.7e38 and
#                -2.5 becomes 2, as the interpreter does. Arguments become NaN.
#  E2M1          constants: infinity becomes 0. An argument becomes 6.
#  round, E3M4   constants: every number becomes NaN. The interpreter's floor of
#                E3M4 is NaN, too.
#  int32 > bf16  arguments: rounded to float32 first, so that 2^30 + 2^22 + 1
#                becomes 2^30.
#  reduce_precision to no mantissa bits makes a constant NaN infinite.
#  cbrt          of 1e-40 is negative, of arguments and constants.
# A value that becomes known to the compiler thus changes the result.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  jax==0.10.2 jaxlib==0.10.2 ml_dtypes==0.6.0 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo


def show(name, x, f):
    """Prints f(x) by the interpreter, and by XLA of a constant and of an
    argument."""
    constant = jax.jit(lambda: f(jnp.asarray(x)).astype(jnp.float32))
    module = constant.lower().compiler_ir("stablehlo")
    with module.context:
        text = stablehlo.eval_module(module, [])[0]
        results = [np.array(ir.DenseElementsAttr(text)), constant(),
                   jax.jit(lambda x: f(x).astype(jnp.float32))(x)]
    print(name)
    for kind, result in zip(("interpreter", "constant", "argument"), results):
        print("  %-11s" % kind, *("%10.4g" % v for v in np.asarray(result)))


def numbers(*x):
    return np.array(x, np.float32)


def inside(dtype, f):
    return lambda x: f(x.astype(dtype))


nan, inf = float("nan"), float("inf")
show("clz of int32 -1, -128, 1", np.array([-1, -128, 1], np.int32), lax.clz)
show("clz of int8 -1, -128, 1", np.array([-1, -128, 1], np.int8), lax.clz)
show("e8m0 of 4, -0.5, -2.5, nan", numbers(4, -0.5, -2.5, nan),
     inside(jnp.float8_e8m0fnu, lambda x: x))
show("e2m1 of 7, inf, -inf", numbers(7, inf, -inf),
     inside(jnp.float4_e2m1fn, lambda x: x))
show("round in e3m4 of 0.25, 1.75, -3.25", numbers(0.25, 1.75, -3.25),
     inside(jnp.float8_e3m4, lax.round))
show("floor in e3m4 of 0.25, 1.75, -3.25", numbers(0.25, 1.75, -3.25),
     inside(jnp.float8_e3m4, lax.floor))
show("bfloat16 of int32 2^30 + 2^22 + 1, in units of 2^22",
     np.array([(1 << 30) + (1 << 22) + 1], np.int32),
     lambda x: x.astype(jnp.bfloat16) * 2 ** -22)
show("reduce_precision(8, 0) of 1.75, nan", numbers(1.75, nan),
     lambda x: lax.reduce_precision(x, 8, 0))
show("cbrt of 1e-40", numbers(1e-40), lax.cbrt)
EOF
TF_CPP_MIN_LOG_LEVEL=3 "$work/venv/bin/python" -W ignore "$work/run.py" \
  >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
clz of int32 -1, -128, 1
  interpreter          0          0         31
  constant           -32        -32         31
  argument             0          0         31
clz of int8 -1, -128, 1
  interpreter          0          0          7
  constant           -56        -56          7
  argument             0          0          7
e8m0 of 4, -0.5, -2.5, nan
  interpreter          4  1.701e+38          2        inf
  constant             4  1.701e+38          2        inf
  argument             4        nan        nan        nan
e2m1 of 7, inf, -inf
  interpreter          6          0         -0
  constant             6          0         -0
  argument             6          6         -6
round in e3m4 of 0.25, 1.75, -3.25
  interpreter        nan        nan        nan
  constant           nan        nan        nan
  argument             0          2         -3
floor in e3m4 of 0.25, 1.75, -3.25
  interpreter        nan        nan        nan
  constant             0          1         -4
  argument             0          1         -4
bfloat16 of int32 2^30 + 2^22 + 1, in units of 2^22
  interpreter        258
  constant           258
  argument           256
reduce_precision(8, 0) of 1.75, nan
  interpreter          2        inf
  constant             2        inf
  argument             2        nan
cbrt of 1e-40
  interpreter  4.642e-14
  constant    -5.595e-16
  argument    -5.595e-16
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
