-- Tests faults planted in PTX, one at a time. The first report must have the
-- kind and the line that spec/ptx/planted.lua states. The unchanged kernels
-- must have no report.
local faults = require "spec.faults"
local list = require "spec.ptx.planted"
local plant = require "spec.ptx.plant"

local function has(words, word)
  return (" " .. words .. " "):find(" " .. word .. " ", 1, true) ~= nil
end

-- Says how the first report differs from the table's entry, or returns nil.
local function differs(f)
  local r = plant.run(f.kernel, f.change)
  local right = plant.right(r, f.lines)
  if has(f.kinds, r.kind) and right then return nil end
  local line = r.lines[1]
  return ("expected %s at %s, changed line %d; got %s at %s: %s\n%s"):format(
    f.kinds, f.lines, r.at, r.kind, line, r.source[line], r.text)
end

describe("faults planted in PTX", function()
  if not faults.NEEDS.NVRTC then return pending "needs NVRTC" end
  local clean = {}
  for i, f in ipairs(list) do
    local name = f.kernel:match "^script: (%S+)" or f.kernel
    if not clean[f.kernel] then
      clean[f.kernel] = true
      it(("none in %s #long"):format(name), function()
        assert.are.equal("ok", plant.run(f.kernel).kind)
      end)
    end
    local long = i % 10 == 1 and "" or " #long"
    it(("%s: %s%s"):format(name, f.what, long), function()
      assert.is_nil(differs(f))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
