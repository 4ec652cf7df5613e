#!/usr/bin/env python3
"""wheel.py BUILD VERSION: writes BUILD/wheel/cutelua-VERSION-...whl from
python/, BUILD/libcutelua.so and BUILD/libcutecapture.so, with Python's standard
library alone. The platform tag follows from the versions of glibc's symbols
that objdump lists."""
import base64
import hashlib
import os
import re
import stat
import subprocess
import sys
import zipfile

MOST_BYTES = 6 << 20
OLDEST, NEWEST = (2, 28), (2, 34)   # platform tags manylinux_2_28 to 2_34

build, version = sys.argv[1:3]


def fail(text):
    sys.exit("wheel: " + text)


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def glibc(path):
    """Returns the newest version of glibc that a library needs."""
    found = re.findall(r"GLIBC_(\d+)\.(\d+)", run("objdump", "-T", path))
    return max((int(a), int(b)) for a, b in found)


def needed(path):
    return re.findall(r"NEEDED\s+(\S+)", run("objdump", "-p", path))


def metadata():
    with open("python/README.md", encoding="utf-8") as f:
        text = f.read()
    return "\n".join([
        "Metadata-Version: 2.1", "Name: cutelua", "Version: " + version,
        "Summary: CuTe-style GPU kernels in Lua, for Python's tensors",
        "License: MIT", "Requires-Python: >=3.9",
        "Classifier: License :: OSI Approved :: MIT License",
        "Classifier: Operating System :: POSIX :: Linux",
        "Classifier: Programming Language :: Python :: 3",
        "Description-Content-Type: text/markdown", "", text])


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED,
                                   compresslevel=9)
        self.record = []

    def add(self, name, data, mode=0o644):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
        info.external_attr = (stat.S_IFREG | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
        self.record.append("%s,sha256=%s,%d" % (
            name, digest.rstrip(b"=").decode(), len(data)))

    def close(self, folder):
        name = folder + "/RECORD"
        self.record.append(name + ",,")
        self.add(name, ("\n".join(self.record) + "\n").encode())
        self.zip.close()


def version_of(library):
    """Returns the glibc that a library needs, which must be old enough."""
    need = glibc(library)
    if need > NEWEST:
        fail("%s needs glibc %d.%d; at most %d.%d is allowed" % (
            (library,) + need + NEWEST))
    strange = [n for n in needed(library)
               if not re.match(r"(libc|libm|libdl|libpthread|ld-linux-x86-64)"
                               r"\.so\.\d+$", n)]
    if strange:
        fail("%s needs %s" % (library, ", ".join(strange)))
    return need


def main():
    libraries = "libcutelua.so", "libcutecapture.so"
    need = max(version_of("%s/%s" % (build, name)) for name in libraries)
    tag = "py3-none-manylinux_%d_%d_x86_64" % max(need, OLDEST)
    out = "%s/wheel" % build
    os.makedirs(out, exist_ok=True)
    for old in os.listdir(out):
        if old.endswith(".whl"):
            os.remove(os.path.join(out, old))
    path = "%s/cutelua-%s-%s.whl" % (out, version, tag)
    wheel = Wheel(path)
    for folder, folders, names in os.walk("python/cutelua"):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            if name.endswith((".py", ".pyi", "py.typed")):
                with open(os.path.join(folder, name), "rb") as f:
                    wheel.add(os.path.join(folder, name)[len("python/"):],
                              f.read())
    for name in libraries:
        stripped = "%s/%s" % (out, name)
        run("strip", "--strip-unneeded", "-o", stripped,
            "%s/%s" % (build, name))
        with open(stripped, "rb") as f:
            wheel.add("cutelua/" + name, f.read(), 0o755)
        os.remove(stripped)
    info = "cutelua-%s.dist-info" % version
    with open("LICENSE", "rb") as f:
        wheel.add(info + "/LICENSE", f.read())
    wheel.add(info + "/METADATA", metadata().encode())
    wheel.add(info + "/WHEEL", (
        "Wheel-Version: 1.0\nGenerator: cutelua\nRoot-Is-Purelib: false\n"
        "Tag: %s\n" % tag).encode())
    wheel.add(info + "/entry_points.txt",
              b"[pytest11]\ncutelua = cutelua.pytest_plugin\n")
    wheel.close(info)
    size = os.path.getsize(path)
    if size > MOST_BYTES:
        fail("%s has %d bytes; at most %d are allowed" % (path, size,
                                                          MOST_BYTES))
    print("%s: %.2f MB, glibc %d.%d" % ((path, size / 1e6) + need))


main()
# SPDX-License-Identifier: MIT
