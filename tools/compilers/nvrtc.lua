-- Compiles CUDA C by NVRTC, and writes the resulting PTX: cutelua nvrtc.lua
-- SOURCE PTX ARCH [options of NVRTC].
local core = require "cute.core"

local source <close> = assert(io.open(arg[1]))
local name = ('#line 1 "%s"\n'):format(arg[1])
local made = assert(core.jit_compile(name .. source:read "a", arg[3],
  table.move(arg, 4, #arg, 2, {"-lineinfo"})))
local out <close> = assert(io.open(arg[2], "w"))
assert(out:write(made.ptx or made.cubin))
-- SPDX-License-Identifier: MIT
