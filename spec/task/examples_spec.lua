-- Judges each task of examples/tasks. Its solution must be accepted with a
-- score, and three wrong variants of the solution must be rejected. In a
-- solution, a line "-- wrong: TEXT" makes a variant in which TEXT replaces the
-- line of code above it. Several such lines may follow one line of code; each
-- makes a variant.
local dkjson = require "dkjson"
local support = require "spec.support"

local ROOT = "examples/tasks/"
-- Tasks that `make test` judges; `make test-all` judges all.
local FEW = {axpy = true}

-- Returns the wrong variants of a solution.
local function wrongs(text)
  local lines, list = {}, {}
  for line in text:gmatch "([^\n]*)\n" do lines[#lines + 1] = line end
  for i, line in ipairs(lines) do
    local instead = line:match "^%s*%-%- wrong: (.*)"
    if instead then
      local at = i - 1
      while lines[at]:find "^%s*%-%- wrong: " do at = at - 1 end
      local copy = table.move(lines, 1, #lines, 1, {})
      copy[at] = instead
      list[#list + 1] = table.concat(copy, "\n")
    end
  end
  return list
end

local function judge(...)
  local out, err, code = support.run {"task", "judge", "--no-gpu", "--format",
    "json", ...}
  local v = dkjson.decode(out)
  assert.is_truthy(v, err)
  return v, code
end

local function names()
  local list = {}
  for line in support.must {"ls", ROOT}:gmatch "%S+" do
    if line ~= "README.md" then list[#list + 1] = line end
  end
  return list
end

describe("the task", function()
  it("library has thirty tasks", function() assert.equal(30, #names()) end)

  for _, name in ipairs(names()) do
    local tag = FEW[name] and "" or " #long"
    it(name .. " accepts its solution and no wrong one" .. tag, function()
      local v, code = judge(ROOT .. name)
      assert.same({"accepted", 0}, {v.verdict, code}, v.reason)
      assert.is_true(v.score > 0, "no score")
      local list = wrongs(support.read(ROOT .. name .. "/solution.lua"))
      assert.equal(3, #list)
      local path = os.tmpname()
      for i, text in ipairs(list) do
        support.write(path, text)
        v, code = judge(ROOT .. name, path)
        assert.same({"rejected", 1}, {v.verdict, code}, "wrong solution " .. i)
      end
      os.remove(path)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
