-- Tests `cutelua task`: the folder that `new` writes, verdicts, exit codes, bad
-- tasks and bad candidates.
local dkjson = require "dkjson"
local support = require "spec.support"

local folder

-- Runs `cutelua task` with these words; returns its output, its errors, and the
-- exit code.
local function task(...) return support.run {"task", ...} end

-- Writes a candidate for the folder's task; returns its path.
local function candidate(text)
  return support.write(folder .. "/candidate.lua", text)
end

-- Returns the solution with one text replaced.
local function changed(from, to)
  return candidate(support.change(support.read(folder .. "/axpy/solution.lua"),
    from, 1, to))
end

describe("cutelua task", function()
  setup(function()
    folder = support.folder()
    local _, err, code = task("new", folder .. "/axpy")
    assert.equal(0, code, err)
  end)
  teardown(function() support.remove(folder) end)

  it("accepts the solution that `new` writes", function()
    local out, err, code = task("judge", folder .. "/axpy", "--no-gpu",
      "--format", "json")
    assert.equal(0, code, err)
    local v = dkjson.decode(out)
    assert.equal("accepted", v.verdict)
    assert.equal(5, #v.cases)
    assert.equal("estimate", v.speed.by)
    assert.is_true(v.score > 0)
  end)

  it("never overwrites a folder", function()
    local _, err, code = task("new", folder .. "/axpy")
    assert.equal(3, code)
    assert.matches("exists already", err)
  end)

  it("reports a fault at the candidate's line", function()
    local out, _, code = task("run", folder .. "/axpy",
      changed("i:lt(n)", "i:le(n)"))
    assert.equal(1, code)
    assert.matches("candidate.lua:8: .*memory/gmem/out%-of%-bounds", out)
  end)

  it("reports the first wrong element with its bound", function()
    local out, _, code = task("run", folder .. "/axpy",
      changed("2 * x", "3 * x"))
    assert.equal(1, code)
    assert.matches("Y%(0%) is .*, expected is .* an error of at most", out)
  end)
end)
-- SPDX-License-Identifier: MIT
