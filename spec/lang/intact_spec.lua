-- A kernel that goes on behind an error: whatever a public function raises
-- inside a pcall, the function being traced is the same one afterwards.
local cute = require "cute"
local core = require "cute.core"

local MODULES = {"cute.arch", "cute.ops", "cute.pipeline", "cute.utils",
  "cute.tiles", "cute.nvgpu.cpasync", "cute.nvgpu.warpgroup", "cute.hopper",
  "cute.npy", "cute.draw", "cute.testing"}

-- Those that write on standard output.
local PRINTS = {help = true, doc = true, draw = true}

local function functions()
  local list = {}
  local function add(name, t)
    for k, f in pairs(t) do
      if type(k) == "string" and type(f) == "function" and not k:find "^__"
        and core.signature(f) and not PRINTS[k]
        and not k:find "print" then
        list[#list + 1] = {name .. "." .. k, f}
      end
    end
  end
  for _, names in ipairs(getmetatable(cute).lazy) do
    for name in pairs(names) do local _ = cute[name] end
  end
  add("cute", cute)
  for _, name in ipairs(MODULES) do add(name, require(name)) end
  table.sort(list, function(a, b) return a[1] < b[1] end)
  return list
end

-- One trace that calls f with each of these; the name it has at the end.
local function name_after(f)
  local after
  pcall(function()
    cute.kernel("whole", function(x, n)
      local tid = cute.arch.thread_idx()
      local r = cute.make_rmem_tensor({4}, cute.f32)
      local l = cute.make_layout({n, 4})
      local lists = {{x}, {r}, {tid}, {l}, {{x}}, {x, x, x}, {x, r}, {tid, l}}
      for _, list in ipairs(lists) do
        pcall(f, table.unpack(list))
        local on, name = core.tracing()
        after = on and name
        if not on then return end
      end
    end)(cute.zeros({8}, cute.f32), 3):trace {block = 32}
  end)
  return after
end

describe("an error within a pcall of a kernel", function()
  it("leaves the trace as it was", function()
    local out = {}
    local list = functions()
    assert.truthy(#list > 300)
    for _, entry in ipairs(list) do
      local after = name_after(entry[2])
      if after ~= "whole" then
        out[#out + 1] = entry[1] .. ": " .. tostring(after)
      end
    end
    assert.same({}, out)
  end)

  it("does not keep what was traced from running", function()
    local x = cute.zeros({4}, cute.f32)
    local said = {}
    cute.kernel("k", function(t)
      local _, why = pcall(cute.ops.copy, t)
      said[1] = why
      said[2] = tostring(t)
      t[0] = 1
    end)(x):launch {grid = 1, block = 1, device = "sim"}
    assert.equal(1, x[0])
    assert.truthy(said[1]:find("[foreign-value]", 1, true))
    assert.truthy(said[2]:find(":", 1, true))
  end)
end)
