#!/bin/sh
# Shows sin, cos and tan of OpenCL vectors in PoCL on the CPU: of one small
# element beside another element.
#
# Hypothesis before the run: the functions are right by the specification of
# OpenCL, those of vectors, too. It demands an error of at most 4 units in the
# last place (5 for tan).
#
# Result, PoCL 3.1 (Debian 12, x86-64): sin, cos and tan of float2 to float16
# are wrong for small elements if another element of the vector is 2^23 or more,
# or infinite. sin of 0.001 is 0.008 beside 1e10, and 0.001 beside 1. The error
# of sin is up to 0.015, for numbers between 0 and 2^-7 = 0.0078. Elements
# beside a NaN, scalars and double2 to double16 are right.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
dpkg -s pocl-opencl-icd 2>/dev/null | grep '^Version: 3\.1-' ||
  { echo "needs Debian's package pocl-opencl-icd 3.1" >&2; exit 1; }
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install --disable-pip-version-check \
  pyopencl==2026.1.4 numpy==2.4.6
cat >"$work/run.py" <<'EOF'
import numpy as np
import pyopencl as cl

platform = [p for p in cl.get_platforms()
            if p.name == "Portable Computing Language"][0]
context = cl.Context(platform.get_devices()[:1])
queue = cl.CommandQueue(context)
TYPES = {"float": np.float32, "double": np.float64}


def run(function, kind, x):
    """Returns the function of the rows of x, one vector each."""
    vector = kind + (str(x.shape[1]) if x.shape[1] > 1 else "")
    program = cl.Program(context, f"""kernel void f(
        global const {vector} *x, global {vector} *y) {{
            size_t i = get_global_id(0);
            y[i] = {function}(x[i]);
        }}""").build()
    x = np.ascontiguousarray(x, TYPES[kind])
    flags = cl.mem_flags
    source = cl.Buffer(context, flags.COPY_HOST_PTR, hostbuf=x)
    to = cl.Buffer(context, flags.WRITE_ONLY, x.nbytes)
    program.f(queue, x.shape[:1], None, source, to)
    y = np.empty_like(x)
    cl.enqueue_copy(queue, y, to)
    return y


small = np.array([1e-40, 1e-30, 1e-6, 0.001, 0.0077, 0.0079])
print("%-15s" % "sin of", *("%9.3g" % v for v in small))
for beside in (1, 8388607, 8388608, 1e10, np.inf, np.nan):
    x = np.stack([small, np.full_like(small, beside)], 1)
    print("%-15s" % f"beside {beside:.7g}",
          *("%9.3g" % v for v in run("sin", "float", x)[:, 0]))

# The largest error, of numbers up to 1, beside 1e10.
many = 2.0 ** np.linspace(-100, 0, 1001)
for kind in TYPES:
    rounded = many.astype(TYPES[kind])
    for width in (1, 2, 4, 8, 16):
        x = np.full((len(many), width), 1e10)
        x[:, 0] = rounded
        print("%-8s" % (kind + str(width if width > 1 else "")), "error of", *(
            "  %s %.0e" % (f, np.abs(run(f, kind, x)[:, 0] - getattr(np, f)(
                rounded.astype(np.longdouble))).max().astype(float))
            for f in ("sin", "cos", "tan")))
EOF
PYOPENCL_NO_CACHE=1 POCL_CACHE_DIR=$work/cache \
  "$work/venv/bin/python" -W ignore "$work/run.py" >"$work/seen"
cat "$work/seen"
cat >"$work/want" <<'EOF'
sin of              1e-40     1e-30     1e-06     0.001    0.0077    0.0079
beside 1            1e-40     1e-30     1e-06     0.001    0.0077    0.0079
beside 8388607      1e-40     1e-30     1e-06     0.001    0.0077    0.0079
beside 8388608    0.00788    0.0099   0.00819     0.008    0.0154    0.0079
beside 1e+10      0.00788    0.0099   0.00819     0.008    0.0154    0.0079
beside inf        0.00788    0.0099   0.00819     0.008    0.0154    0.0079
beside nan          1e-40     1e-30     1e-06     0.001    0.0077    0.0079
float    error of   sin 3e-08   cos 4e-08   tan 1e-07
float2   error of   sin 1e-02   cos 1e-04   tan 1e-02
float4   error of   sin 1e-02   cos 1e-04   tan 1e-02
float8   error of   sin 1e-02   cos 1e-04   tan 1e-02
float16  error of   sin 1e-02   cos 1e-04   tan 1e-02
double   error of   sin 1e-16   cos 6e-17   tan 4e-16
double2  error of   sin 1e-16   cos 6e-17   tan 4e-16
double4  error of   sin 1e-16   cos 6e-17   tan 4e-16
double8  error of   sin 1e-16   cos 6e-17   tan 4e-16
double16 error of   sin 1e-16   cos 6e-17   tan 4e-16
EOF
diff "$work/want" "$work/seen"
# SPDX-License-Identifier: MIT
