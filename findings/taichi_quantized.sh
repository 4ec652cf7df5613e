#!/bin/sh
# Shows how Taichi stores numbers in fields of quantized types, ti.types.quant,
# on the CPU.
#
# Hypotheses before the run: numbers are rounded to nearest; numbers outside the
# range of a type saturate or wrap. max_value, the documented maximum value of a
# fixed-point type, saturates. A float that rounds up to a power of two has the
# next exponent. Floats with a shared exponent are rounded to a multiple of the
# largest number's step.
#
# Result, Taichi 1.7.4: numbers of fixed-point types wrap inside the range, too.
# With 8 bits and max_value=1, 1 and 0.999 become -1; unsigned, they become 0.
# With max_value=10, 9.97 becomes -10. A NaN becomes 0. Floats wrap, too: in the
# type with 5 bits for the exponent and 10 for the fraction, 1e6 becomes 2.3e-4,
# infinity 1.01, and a NaN 1.51. Numbers below 6.1e-5 become 0. The unsigned
# type drops the sign of -2.5. Floats of a group with a shared exponent wrap all
# together: beside 1e6, 1.5 becomes 9.5e-7.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  taichi==1.7.4 numpy==2.4.6
cat >"$work/run.py" <<'EOF_PY'
import numpy as np
import taichi as ti

ti.init(arch=ti.cpu, log_level=ti.ERROR, offline_cache=False)
QUANT = ti.types.quant
print("Taichi", ".".join(map(str, ti.__version__)))


def show(name, kind, numbers, shared=False):
    """Prints the numbers and the contents of fields of the type."""
    count = len(numbers)
    source = ti.field(ti.f32, count)
    result = ti.field(ti.f32, count)
    fields = [ti.field(kind) for _ in range(count)]
    for group in [fields] if shared else [[f] for f in fields]:
        bits = ti.BitpackedFields(max_num_bits=32)
        bits.place(*group, shared_exponent=shared)
        ti.root.dense(ti.i, 1).place(bits)

    @ti.kernel
    def store():
        for i in range(1):
            for j in ti.static(range(count)):
                fields[j][i] = source[j]

    @ti.kernel
    def load():
        for i in range(1):
            for j in ti.static(range(count)):
                result[j] = fields[j][i]

    source.from_numpy(np.array(numbers, np.float32))
    store()
    load()
    print(name)
    print("  stored", *("%7.3g" % v for v in source.to_numpy()))
    print("  loaded", *("%7.3g" % v for v in result.to_numpy()))


nan, inf = float("nan"), float("inf")
show("fixed, 8 bits, max_value=1", QUANT.fixed(8, max_value=1.0),
     [0.5, 0.99, 0.999, 1, -1, 1.25, nan])
show("fixed, 8 bits, unsigned, max_value=1",
     QUANT.fixed(8, signed=False, max_value=1.0), [0.5, 0.99, 0.999, 1, -0.1])
show("fixed, 8 bits, max_value=10", QUANT.fixed(8, max_value=10.0),
     [9.9, 9.97, 10, -10])
show("float, exp=5, frac=10", QUANT.float(5, 10),
     [65504, 131000, 1e6, inf, nan, 6.2e-5, 6e-5])
show("float, exp=5, frac=10, unsigned", QUANT.float(5, 10, signed=False),
     [2.5, -2.5])
show("float, exp=5, frac=9, shared exponent", QUANT.float(5, 9),
     [9, 1000, 0.1], shared=True)
show("float, exp=5, frac=9, shared exponent", QUANT.float(5, 9),
     [1.5, 1e6, 0.1], shared=True)
EOF_PY
"$work/venv/bin/python" "$work/run.py" | grep -v '^\[Taichi\]' >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
Taichi 1.7.4
fixed, 8 bits, max_value=1
  stored     0.5    0.99   0.999       1      -1    1.25     nan
  loaded     0.5   0.992      -1      -1      -1   -0.75       0
fixed, 8 bits, unsigned, max_value=1
  stored     0.5    0.99   0.999       1    -0.1
  loaded     0.5   0.988       0       0   0.996
fixed, 8 bits, max_value=10
  stored     9.9    9.97      10     -10
  loaded    9.92     -10     -10     -10
float, exp=5, frac=10
  stored 6.55e+04 1.31e+05   1e+06     inf     nan 6.2e-05   6e-05
  loaded 6.55e+04 1.31e+05 0.000233    1.01    1.51 6.2e-05       0
float, exp=5, frac=10, unsigned
  stored     2.5    -2.5
  loaded     2.5     2.5
float, exp=5, frac=9, shared exponent
  stored       9   1e+03     0.1
  loaded       8   1e+03       0
float, exp=5, frac=9, shared exponent
  stored     1.5   1e+06     0.1
  loaded 9.54e-07 0.000233       0
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
