-- Writes the PTX that NVRTC makes of CUDA C: cutelua nvrtc.lua SOURCE PTX ARCH
-- [options of NVRTC].
local core = require "cute.core"

local source <close> = assert(io.open(arg[1]))
local name = ('#line 1 "%s"\n'):format(arg[1])
local made = assert(core.jit_compile(name .. source:read "a", arg[3],
  table.move(arg, 4, #arg, 2, {"-lineinfo"})))
local out <close> = assert(io.open(arg[2], "w"))
assert(out:write(made.ptx or made.cubin))
-- SPDX-License-Identifier: MIT
