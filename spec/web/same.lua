--- Compares scripts in the workshop with the same scripts in the native
-- program: their output, their reports, the bits of the tensors that they
-- wrote, and their pages with costs.
local assert = require "luassert"
local support = require "spec.support"
local workshop = require "spec.workshop.asked"

local same = {}

-- Arguments for scripts that would run longest with their defaults.
local WORDS = {
  ladder = {"--sizes", "128"},
  train = {"--steps", "1", "--batch", "2", "--length", "4"}}

--- Returns the requests for a list of scripts: for each script a run, then the
-- costs of its first launch.
---@param list string[] paths
---@return table[]
function same.requests(list)
  local told, all = support.read "spec/web/told.lua", {}
  for _, path in ipairs(list) do
    local words = {path, "--device", "sim",
                   table.unpack(WORDS[path:match "([%w_]+)%.lua$"] or {})}
    all[#all + 1] = {ask = "run", name = "told.lua", text = told, words = words}
    all[#all + 1] = {ask = "costs", kernel = 1}
  end
  return all
end

--- Returns the native program's responses to requests.
---@param requests table[]
---@return {out: string, answer: table}[]
function same.native(requests)
  return workshop.asked(requests, {CUTELUA_NO_CUDA = "1"})
end

-- Scripts that launch directly, without the lessons' library.
local DIRECT = {start = true, train = true, llama = true}

-- Removes elapsed times: in sentences, and in the ladder's last column.
local function timeless(text)
  return (text:gsub("[%d.]+ m?s%f[%W]", "T")
    :gsub("(%f[^\n\0][%w_]+ +%d+  ok [^\n]*) [%d.]+%f[\n]", "%1 T"))
end

--- Compares the native response to a script's run, or to a request for costs,
-- with the workshop's response.
---@param path string the script's
---@param a {out: string, answer: table}
---@param b {out: string, answer: table}
function same.answers(path, a, b)
  local name = path:match "([%w_]+)%.lua$"
  if a.answer.kernel then
    assert.truthy(a.answer.kernel.estimate, path)
    assert.same(a.answer, b.answer)
    return
  end
  assert.same({true, 0}, {a.answer.ok, a.answer.code})
  if not DIRECT[name] then
    assert.truthy(a.out:find "report%.instructions = %d")
    assert.truthy(a.out:find "written%.%d+ = %-?%d")
  end
  assert.truthy(a.out:find ": ok\n" or name == "ladder" or DIRECT[name])
  local want, got = timeless(a.out), timeless(b.out)
  if want ~= got then
    local n = support.lines(got)
    for i, line in ipairs(support.lines(want)) do
      assert.equal(line, n[i], path)
    end
    assert.equal(want, got, path)
  end
  assert.truthy(#a.answer.page.kernels > 0)
  a.answer.seconds, b.answer.seconds = nil, nil
  assert.same(a.answer, b.answer)
end

return same
-- SPDX-License-Identifier: MIT
