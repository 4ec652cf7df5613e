-- Tests files of CUDA C. Reports and compiler messages must name the user's
-- file. An edited header must be read anew. Elements in LAUNCH files must have
-- their documented order.
local core = require "cute.core"
local support = require "spec.support"

local RACE = [[
#include "shift.h"
extern "C" __global__ void shift(const int *x, int *y) {
  __shared__ int s[64];
  s[threadIdx.x] = x[threadIdx.x];
  y[threadIdx.x] = s[(threadIdx.x + SHIFT) % 64];
}
]]

local LAUNCH = [[{"block": 64, "args": ["x", "y"],
 "memory": {"x": {"dtype": "i32", "shape": 64, "fill": 5},
            "y": {"dtype": "i32", "shape": 64}}}]]

describe("a file of CUDA C", function()
  local module, why = core.jit_compile("", "compute_80")
  if not module and tostring(why):find "no%-nvrtc" then
    pending "needs NVRTC"
    return
  end
  local folder

  setup(function() folder = support.folder() end)
  teardown(function() support.remove(folder) end)

  -- Runs a command on race.cu, whose header defines SHIFT as `shift`.
  local function with(command, shift, text)
    support.write(folder .. "/shift.h", "#define SHIFT " .. shift .. "\n")
    support.write(folder .. "/race.cu", text or RACE)
    support.write(folder .. "/l.json", LAUNCH)
    return support.exec {support.program, command, folder .. "/race.cu",
                         "--launch", folder .. "/l.json"}
  end

  it("is named by reports, with its line", function()
    local out = with("check", 40)
    assert.matches("\n  race%.cu:5: read of a byte that another warp writes",
                   out)
    assert.matches("first access: race%.cu:4,", out)
    assert.matches("race%.cu:4 +st%.shared", (with("profile", 0)))
  end)

  it("finds headers in its folder, and reads them anew", function()
    assert.matches("shift: ok", (with("check", 0)))
    assert.matches("shift: bug", (with("check", 40)))
    assert.matches("shift: ok", (with("check", 0)))
  end)

  it("is named by the compiler's messages", function()
    local _, err, code = with("run", 0, "\n__global__ void k() { x = 1; }\n")
    assert.matches("race%.cu%(2%): error", err)
    assert.equal(1, code)
  end)

  it("is not named where a line of PTX is meant", function()
    local _, _, _ = with("check", 40)
    local out = support.exec {support.program, "check", folder .. "/race.cu",
      "--launch", folder .. "/l.json", "--ptx-lines"}
    assert.matches("\n  ptx:%d+: read of a byte", out)
    assert.falsy(out:find("race.cu", 1, true))
  end)
end)

-- Stores nothing.
local EMPTY = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x) { ret; }
]]

describe("the elements that a LAUNCH file expects", function()
  local folder

  setup(function()
    folder = support.folder()
    support.write(folder .. "/k.ptx", EMPTY)
  end)
  teardown(function() support.remove(folder) end)

  -- Runs a launch with x = {shape, values ...}, whose result must be `want`.
  local function expect(x, want)
    support.write(folder .. "/l.json", ([[{"block": 1, "args": ["x"],
      "memory": {"x": {"dtype": "i32", %s}}, "expect": {"x": %s}}]]):format(
      x, want))
    return support.exec {support.program, folder .. "/k.ptx", "--launch",
                         folder .. "/l.json"}
  end

  -- Writes the file x.npy: a 2 x 3 array in C or Fortran order. Its elements
  -- are 1 to 6 in the order of the file.
  local function array(order)
    local header = ("{'descr': '<i4', 'fortran_order': %s, 'shape': (2, 3), }")
      :format(order == "F" and "True" or "False")
    header = header .. (" "):rep(117 - #header) .. "\n"
    support.write(folder .. "/x.npy", "\x93NUMPY\1\0" ..
      ("<s2"):pack(header) .. ("<i4i4i4i4i4i4"):pack(1, 2, 3, 4, 5, 6))
    return ('{"npy": "%s/x.npy"}'):format(folder)
  end

  local SIX = '"values": [1, 2, 3, 4, 5, 6]'

  it("are in the order of memory, as the values of a tensor", function()
    for _, layout in ipairs {'"shape": [2, 3]', '"shape": [3, 2, 1]',
                             '"shape": [2, 3], "strides": [1, 2]'} do
      assert.equal("x: as expected\n",
                   (expect(layout .. ", " .. SIX, "{" .. SIX .. "}")))
    end
    local gap = '"values": [1, 2, 3, 9, 4, 5, 6]'
    assert.equal("x: as expected\n", (expect(
      '"shape": [2, 3], "strides": [4, 1], ' .. gap, "{" .. gap .. "}")))
    assert.equal("x: 1 of 6 elements differ; element 1 is 2, not 7\n", (expect(
      '"shape": [2, 3], ' .. SIX, '{"values": [1, 7, 3, 4, 5, 6]}')))
  end)

  it("have the coordinates of a file's elements", function()
    assert.equal("x: as expected\n",
                 (expect('"shape": [2, 3], ' .. SIX, array "C")))
    assert.equal("x: as expected\n", (expect(
      '"shape": [2, 3], "strides": [1, 2], ' .. SIX, array "F")))
    assert.equal("x: 4 of 6 elements differ; element (0, 1) is 2, not 3\n",
                 (expect('"shape": [2, 3], ' .. SIX, array "F")))
    -- With another shape, elements keep their C order, as in NumPy's reshape.
    assert.equal("x: as expected\n",
                 (expect('"shape": [6], ' .. SIX, array "C")))
    assert.equal("x: as expected\n",
                 (expect('"shape": [3, 2], ' .. SIX, array "C")))
  end)

  it("may follow the mark of UTF-8, as editors write it", function()
    support.write(folder .. "/l.json", "\xEF\xBB\xBF"
      .. '{"block": 1, "args": [{"tensor": {"shape": 1}}]}')
    assert.same({"", "", 0}, {support.exec {support.program,
      folder .. "/k.ptx", "--launch", folder .. "/l.json"}})
  end)

  it("may be made by Lua's libraries that touch no files", function()
    local words = {support.program, folder .. "/k.ptx", "--launch",
                   folder .. "/l.lua"}
    support.write(folder .. "/l.lua", [[
      local x, y = {}, {}
      for i = 1, 5 do table.insert(x, i * i) y[i] = math.tointeger(i ^ 2) end
      return {block = 1, args = {"x"}, memory = {x = {shape = 5, values = x}},
              expect = {x = {values = y}}}]])
    assert.same({"x: as expected\n", "", 0}, {support.exec(words)})
    support.write(folder .. "/l.lua", "return {entry = io.read()}")
    local _, err, code = support.exec(words)
    assert.matches("nil value %(global 'io'%)", err)
    assert.equal(1, code)
  end)

  it("name a file that cannot be read once", function()
    local _, err, code = expect('"shape": 2', '{"npy": "none/x.npy"}')
    assert.equal("cutelua: expect.x: cannot open none/x.npy: No such file or "
      .. "directory [bad-launch]\n", err)
    assert.equal(1, code)
  end)
end)
-- SPDX-License-Identifier: MIT
