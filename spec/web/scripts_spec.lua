-- Every script in the workshop under node beside the program of this machine:
-- what it says, its reports, the bits that it wrote, and its page with costs.
local support = require "spec.support"
local workshop = require "spec.workshop.asked"

local NO_CUDA = {CUTELUA_NO_CUDA = "1"}

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do list[#list + 1] = path end
  return list
end

-- The asks for all scripts: a run, then the costs of its first launch.
local function requests(list)
  local told, all = support.read "spec/web/told.lua", {}
  for _, path in ipairs(list) do
    all[#all + 1] = {ask = "run", name = "told.lua", text = told,
                     words = {path, "--device", "sim"}}
    all[#all + 1] = {ask = "costs", kernel = 1}
  end
  return all
end

-- The files are put first.
local function under_node(list, all)
  local asks = {{engine = {seconds = 60}}}
  for _, path in ipairs(list) do
    asks[#asks + 1] = workshop.put(path, support.read(path))
  end
  table.move(all, 1, #all, #asks + 1, asks)
  local answers = workshop.under_node(asks)
  return table.move(answers, #asks - #all + 1, #asks, 1, {})
end

-- Without the seconds that it took: in words, and in the ladder's last column.
local function timeless(text)
  return (text:gsub("[%d.]+ m?s%f[%W]", "T")
    :gsub("(%f[^\n\0][%w_]+ +%d+  ok [^\n]*) [%d.]+%f[\n]", "%1 T"))
end

describe("every script in the workshop", function()
  local list = scripts()
  local all = requests(list)
  local here, there

  it("runs", function()
    here, there = workshop.asked(all, NO_CUDA), under_node(list, all)
    assert.same({#all, #all}, {#here, #there})
  end)

  for i, path in ipairs(list) do
    it(path .. " is the same as the native program's, bit for bit", function()
      local a, b = here[2 * i - 1], there[2 * i - 1]
      assert.same({true, 0}, {a.answer.ok, a.answer.code})
      assert.truthy(a.out:find "report%.instructions = %d")
      assert.truthy(a.out:find "written%.%d+ = %-?%d")
      assert.truthy(a.out:find ": ok\n" or path:find "ladder")
      assert.equal(timeless(a.out), timeless(b.out))
      a.answer.seconds, b.answer.seconds = nil, nil
      assert.truthy(#a.answer.page.kernels > 0)
      assert.same(a.answer, b.answer)
      local costs = here[2 * i].answer
      assert.truthy(costs.kernel.estimate)
      assert.same(costs, there[2 * i].answer)
    end)
  end
end)
