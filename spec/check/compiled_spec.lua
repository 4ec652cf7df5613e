-- Tests the search in SASS for tensor-core descriptors with an unwritten 32-bit
-- half. The texts have the form of nvdisasm's output. Also tests the note that
-- `check` prints about such a descriptor.
local asm = require "cutelua.text.asm"
local check = require "cutelua.check"
local compiled = require "cutelua.check.compiled"
local core = require "cute.core"
local cute = require "cute"
local descriptors = require "cutelua.text.descriptors"
local kernel = require "cute.lang.kernel"

-- Returns a list of a text's unwritten registers: {"UR5 of line 3", ...}.
local function unwritten(text)
  local lines, list = {}, {}
  for line in text:gmatch "[^\n]+" do lines[#lines + 1] = line end
  for _, d in ipairs(descriptors.unwritten(lines)) do
    list[#list + 1] = ("UR%d of line %d"):format(d.register, d.index)
  end
  return list
end

describe("a descriptor in SASS", function()
  it("is whole after a write of 64 bits, or of both halves", function()
    assert.same({}, unwritten [[
         LDC R1, c[0x0][0x37c]
         LDCU.64 UR4, c[0x0][0x358]
         LDG.E R2, desc[UR4][R2.64]
         EXIT]])
    assert.same({}, unwritten [[
         R2UR UR6, R8
         UMOV UR7, 0x4000
         UIADD3.64 UR10, UPT, UPT, UR6, UR8, URZ
         UTCHMMA gdesc[UR6], gdesc[UR10], tmem[UR4], tmem[UR12], UPT]])
    assert.same({}, unwritten [[
         UIMAD.WIDE.U32 UR4, UR8, UR9, URZ
         @P0 STG.E desc[UR4][R2.64], R5]])
  end)

  it("lacks a half that no instruction writes", function()
    assert.same({"UR5 of line 3", "UR5 of line 4"}, unwritten [[
         LDC R1, c[0x0][0x37c]
         LDCU UR4, c[0x0][0x358]
         LDG.E R2, desc[UR4][R2.64]
         STG.E desc[UR4][R4.64], R2
         EXIT]])
    assert.same({"UR6 of line 3", "UR9 of line 3"}, unwritten [[
         UMOV UR7, 0x40004040
         UMOV UR8, 0x10
         UTCHMMA gdesc[UR6], gdesc[UR8], tmem[UR4], tmem[UR12], UPT]])
  end)

  it("is followed through branches, loops and calls", function()
    -- the write comes later in the text, but earlier in a loop
    assert.same({}, unwritten [[
.L_x_0:
         @P0 BRA `(.L_x_1)
         UMOV UR5, 0x1
         UMOV UR4, 0x2
         BRA `(.L_x_0)
.L_x_1:
         LDG.E R2, desc[UR4][R2.64]
         EXIT]])
    -- the only write is on a path that does not lead to the use
    assert.same({"UR5 of line 6"}, unwritten [[
         UMOV UR4, 0x2
         @!P0 BRA `(.L_x_1)
         UMOV UR5, 0x1
         EXIT
.L_x_1:
         LDG.E R2, desc[UR4][R2.64]
         EXIT]])
    assert.same({}, unwritten [[
         UMOV UR4, 0x2
         CALL.REL.NOINC `(.L_x_9)
         EXIT
.L_x_9:
         UMOV UR5, 0x1
         LDG.E R2, desc[UR4][R2.64]
         RET.REL.NODEC R20 0x0]])
    -- the targets of an indirect branch are not known
    assert.same({}, unwritten [[
         LDG.E R2, desc[UR4][R2.64]
         BRX R4 -0x10]])
  end)
end)

describe("a check for sm_100a", function()
  local listing = {text = {"  LDCU UR4, c[0x0][0x358] ",
                           "  STG.E desc[UR4][R2.64], R5 "}, at = {4, 7}}

  it("says in which line the descriptor is used", function()
    assert.same({"k.lua:3: NVRTC 13.0 made code that reads UR5, half of a "
      .. "descriptor, which no instruction writes: STG.E desc[UR4][R2.64], R5; "
      .. "compile with NVRTC 13.2 or newer"},
      compiled.sentences(listing, {[7] = "k.lua:3"}, "13.0"))
  end)

  it("has the sentence among its notes", function()
    if not cute.jit.version() then return pending "needs NVRTC" end
    local before <const> = {asm.of_cubin, asm.disassembler, core.nvrtc_version}
    asm.of_cubin = function() return listing end
    asm.disassembler = function() return "nvdisasm" end
    local version = "13.0"
    core.nvrtc_version = function() return version end
    local function notes(arch)
      local x, found = cute.zeros({32}, cute.f32), nil
      kernel.runner = {run = function(program, launch)
        found = check.launch(program, launch, {gpu = false})
        return core.sim_run(program.fn, launch)
      end}
      cute.kernel("k", function(X)
        X[cute.arch.thread_idx()] = 1
      end)(x):launch {grid = 1, block = 32, device = "sim:" .. arch}
      kernel.runner = nil
      return found.notes
    end
    local blackwell, hopper = notes "sm_100a", notes "sm_90a"
    version = "13.2"
    local newer = notes "sm_100a"
    asm.of_cubin, asm.disassembler, core.nvrtc_version = table.unpack(before)
    assert.equal(1, #blackwell)
    assert.matches("NVRTC 13.0 made code that reads UR5", blackwell[1], 1, true)
    assert.same({}, hopper)
    assert.same({}, newer)
  end)
end)
-- SPDX-License-Identifier: MIT
