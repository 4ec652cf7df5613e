--- Loads spec/hardware/units.c, which runs the functions of core/hardware/
-- without a kernel. `make all` builds it in the folder $CUTE_BUILD, by default
-- build.
local path = (os.getenv "CUTE_BUILD" or "build") .. "/spec/hardware.so"
return assert(package.loadlib(path, "luaopen_units"))()
-- SPDX-License-Identifier: MIT
