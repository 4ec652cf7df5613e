-- Runs all checks against golden data, which are results of CuTe C++ and of a
-- real H200. `make golden` uses the same folder ($CUTELUA_GOLDEN_DIR, by
-- default ../shared/golden).
local golden = require "spec.golden"
local support = require "spec.support"

local function run(dir)
  local lines = {}
  local sum, message = golden.run(dir, function(l) lines[#lines + 1] = l end)
  return sum, message, table.concat(lines, "\n")
end

describe("the golden data", function()
  it("passes, and no case is skipped #long", function()
    local sum, _, text = run()
    if not sum then
      pending "needs the golden data"
      return
    end
    assert.equal(0, sum.failed, text)
    -- Data in a folder that CUTELUA_GOLDEN_DIR names may have cases that no
    -- check covers.
    if not os.getenv "CUTELUA_GOLDEN_DIR" then
      assert.equal(0, sum.not_run, text)
    end
    assert.is_true(sum.passed > 0)
  end)

  it("counts a wrong answer, a broken line and an unknown operation",
    function()
      local dir = support.folder()
      support.write(dir .. "/layout.jsonl",
        '{"op":"size","args":["(4,2):(1,4)"],"out":8}\n',
        '{"op":"size","args":["(4,2):(1,4)"],"out":9}\n',
        '{"op":"size","args":\n',
        '{"op":"no_such_op","args":[1],"out":1}\n')
      local sum, _, text = run(dir)
      support.remove(dir)
      assert.same({1, 2, 1}, {sum.passed, sum.failed, sum.not_run})
      assert.truthy(text:find "1 passed, 2 failed$")
    end)

  it("declines an answer that is not the operation's definition", function()
    local dir = support.folder()
    support.write(dir .. "/layout.jsonl",
      -- The result in the data is wrong: coordinate 3 of the tiler must have
      -- the offset 6, but has 2 + 1. Our implementation rejects the call.
      '{"op":"flat_product","args":["(2):(3)","(2,2):(2,1)"],',
      '"out":"((2),2,2):((3),2,1)"}\n',
      -- The result in the data and ours are both wrong, so the case counts as
      -- failed.
      '{"op":"logical_product","args":["(2):(3)","2:1"],',
      '"out":"((2),2):((3),2)"}\n',
      -- The result in the data is not known to be wrong, so our rejection is a
      -- failure.
      '{"op":"composition","args":["(4,6):(1,8)","3:6"],"out":"3:10"}\n')
    local sum, _, text = run(dir)
    support.remove(dir)
    assert.same({0, 2, 1}, {sum.passed, sum.failed, sum.declined})
    assert.truthy(text:find("layout.jsonl:1: flat_product of (2):(3), "
      .. "(2,2):(2,1) is not ((2),2,2):((3),2,1)", 1, true), text)
  end)

  it("is reported as missing if there is none", function()
    local dir = support.folder()
    local sum, message = run(dir)
    support.remove(dir)
    assert.is_nil(sum)
    assert.equal("no golden data (*.jsonl) in " .. dir, message)
  end)
end)
-- SPDX-License-Identifier: MIT
