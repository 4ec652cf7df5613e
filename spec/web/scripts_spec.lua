-- Tests every script in the workshop under node against the native program: its
-- output, its reports, the bits of the tensors that it wrote, and its page with
-- costs.
local same = require "spec.web.same"
local support = require "spec.support"
local workshop = require "spec.workshop.asked"

local function scripts()
  local list = {}
  local p <close> = io.popen "ls scripts/*.lua"
  for path in p:lines() do list[#list + 1] = path end
  return list
end

-- Runs a list of scripts under node, after sending the files `all`.
local function under_node(list, all)
  local asks = {{engine = {seconds = 300}}}
  for _, path in ipairs(list) do
    asks[#asks + 1] = workshop.put(path, support.read(path))
  end
  table.move(all, 1, #all, #asks + 1, asks)
  local answers = workshop.under_node(asks)
  return table.move(answers, #asks - #all + 1, #asks, 1, {})
end

describe("every script in the workshop", function()
  local list = scripts()
  local all = same.requests(list)
  local here, there

  it("runs", function()
    here, there = same.native(all), under_node(list, all)
    assert.same({#all, #all}, {#here, #there})
  end)

  for i, path in ipairs(list) do
    it(path .. " is the same as the native program's, bit for bit", function()
      for n = 2 * i - 1, 2 * i do same.answers(path, here[n], there[n]) end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
