#!/usr/bin/env python3
"""rock.py FOLDER NAME: writes FOLDER/NAME-1.src.rock from FOLDER/NAME.tar.gz
and NAME-1.rockspec. `luarocks pack` would write the time of day."""
import sys
import zipfile

folder, name = sys.argv[1:3]
archive, rockspec = name + ".tar.gz", name + "-1.rockspec"
with open(rockspec, encoding="utf-8") as f:
    text = f.read()
here = 'source = {url = "."}'
if text.count(here) != 1:
    sys.exit("rock: %s must contain one line %s" % (rockspec, here))
text = text.replace(here, 'source = {url = "file://%s", dir = "%s"}' % (
    archive, name))
with open("%s/%s" % (folder, archive), "rb") as f:
    data = f.read()
with zipfile.ZipFile("%s/%s-1.src.rock" % (folder, name), "w") as rock:
    for entry, content in ((rockspec, text.encode()), (archive, data)):
        info = zipfile.ZipInfo(entry, (1980, 1, 1, 0, 0, 0))
        info.external_attr = 0o100644 << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        rock.writestr(info, content)
# SPDX-License-Identifier: MIT
