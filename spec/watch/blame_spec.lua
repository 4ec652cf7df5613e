-- Tests reports of kernels with a fault in their text. Faults that follow from
-- a cause must be folded into the report of the cause. The causes are those of
-- spec/faults/: missing or wrong barriers, waits, parities, counts, bytes and
-- stages.
local blamed = require "spec.blamed"

describe("a traced argument", function()
  it("is shown by its name, without a line", function()
    local cute, text = require "cute", nil
    local k = cute.kernel("k", function(n, t, x)
      text = tostring(n) .. ", " .. tostring(t.bits)
      x[0] = n + t.bits
    end)
    k(3, {bits = 5}, cute.zeros({1}, cute.i32)):launch {grid = 1, block = 1,
      device = "sim"}
    assert.equal("traced i32 (argument n), traced i32 (argument t.bits)", text)
  end)
end)

describe("the first report of a kernel", function()
  it("that is correct is empty", function()
    for name in pairs(blamed.KERNELS) do
      for seed = 1, 3 do
        local r = blamed.run(name, {}, seed)
        assert.is_true(r.ok, tostring(r))
      end
    end
  end)
end)

describe("a report", function()
  local WAIT = {{"arch.mbarrier_wait(full, 0)", ""}}

  it("folds consequences, and gives each piece of advice once", function()
    local r = blamed.run("box", WAIT, 1)
    local text, all = tostring(r), r:details()
    assert.equal("simulator: kernel box: 1 fault", text:match "^[^\n]*")
    assert.equal("    3 more may follow from it", text:match "[^\n]*$")
    assert.is_nil(text:find "\n      ")
    assert.equal(3, select(2, all:gsub("\n      box%.lua:%d+: ", "")))
    for line in all:gmatch "\n +(put [^\n]*)" do
      assert.is_nil(select(2, all:find(line, 1, true)) ~= nil
        and all:find(line, select(2, all:find(line, 1, true)), true) or nil)
    end
  end)

  it("names a tensor that is only stored through its map", function()
    local r = blamed.run("box", {{"grid = 1", "grid = 2"},
      {"* 2.0", "+ arch.block_idx():to(cute.f32)"}}, 1)
    local text = tostring(r)
    assert.equal("block-race", r.reports[1].kind, text)
    assert.truthy(text:find("element 0 of global tensor 'store' [block-race]",
                            1, true), text)
    assert.is_nil(text:find(" nil", 1, true))
  end)

  it("shows the line of a race with itself once", function()
    local text = tostring((blamed.run("sum", {{
      "tid:eq(127), function() y[0] = s[0]",
      "tid:ge(64), function() s[3] = tid:to(cute.f32) y[0] = s[3]"}}, 1)))
    assert.equal(1, select(2, text:gsub("sum%.lua:%d+", "")), text)
    assert.truthy(text:find("\n    first access: thread %d+\n"), text)
  end)
end)
-- SPDX-License-Identifier: MIT
