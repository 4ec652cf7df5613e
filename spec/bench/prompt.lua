-- Measures the time of a TAB completion, and of displaying a value.
local core = require "cute.core"
local measure = require "spec.measure"

local t = measure.table "The prompt: a TAB in a new process, and again"

local TEXTS = {"cut", "cute.make_", "L:co", "cute.arch.th", "cute.ops.",
  "k(t):launch {", "cute.make_mma_atom 'SM", "cute.make_mma_atom 'SM90_64x",
  "require 'cute.", "f('"}

-- Measures, in a fresh process, the milliseconds of the first and of the second
-- press of TAB after a text.
local function times(text)
  local code = ([[
    cute, core = require "cute", require "cute.core"
    menu = require "cutelua.program.menu"
    L, t = cute.make_layout({8, 4}, {1, 8}), cute.zeros({4}, cute.f32)
    k = cute.kernel("k", function() end)
    for i = 1, 2 do
      local start = core.clock()
      menu.new():press(%q, _G, 80, 23)
      print((core.clock() - start) * 1e3)
    end]]):format(text)
  local first, later = {}, {}
  for i = 1, 11 do
    local p <close> = io.popen(("'%s' -e '%s'"):format(measure.program,
      code:gsub("'", "'\\''")))
    first[i], later[i] = p:read("n", "n")
  end
  return first, later
end

for _, text in ipairs(TEXTS) do
  local first, later = times(text)
  t:add(text, first, "ms", 20)
  t:add("", later, "ms", 20)
end
t:print()

local show = require "cutelua.program.show"
local cute = require "cute"
local v = measure.table "The prompt: values shown"
local function shown(name, x)
  local list = {}
  for i = 1, 11 do
    local start = core.clock()
    show.text(x, 80)
    list[i] = (core.clock() - start) * 1e3
  end
  v:add(name, list, "ms")
end
shown("a tensor of 4096x4096", cute.zeros({4096, 4096}, cute.f32))
shown("a layout of 16x16", cute.make_layout({16, 16}, {16, 1}))
shown("cute", cute)
v:print()
-- SPDX-License-Identifier: MIT
