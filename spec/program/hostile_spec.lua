-- Runs the program with hostile command lines, files and environments. `make
-- fuzz` makes all of these runs.
local hostile = require "spec.hostile"
local support = require "spec.support"

local SEED, SHARE = 1, 25  -- one run in SHARE is made

describe("a hostile run", function()
  local folder
  before_each(function() folder = support.folder() end)
  after_each(function() support.remove(folder) end)

  it("ends in time, without a signal, and says why #long", function()
    local runs, wrong = hostile.runs(SEED, folder), {}
    assert.is_true(#runs >= 844)
    for i = SEED, #runs, SHARE do
      local why, text = hostile.run(runs[i], folder)
      wrong[#wrong + 1] = why and text .. ": " .. why
    end
    assert.same({}, wrong)
  end)

  it("reports errors of scripts that removed library functions", function()
    support.write(folder .. "/x.lua", [[
      for _, t in ipairs {string, table, math, io, os, debug} do
        for k in next, t do rawset(t, k, nil) end
      end
      getmetatable "".__index = nil
      package.searchers = nil
      local fail, all = error, _G
      for k in next, all do all[k] = nil end
      fail "mine"]])
    local _, err, code = support.run {folder .. "/x.lua"}
    assert.equal(1, code)
    assert.matches("^cutelua: mine %[lua%]\n  [^\n]*x%.lua:8 in main chunk",
                   err)
  end)

  it("ends although a bundle's script reads standard input", function()
    support.write(folder .. "/x.lua", "print(io.read())")
    local _, err, code = support.exec {"timeout", "20", support.program,
      "bundle", folder .. "/x.lua", "-o", folder}
    assert.equal(1, code)
    assert.matches("^nil\ncutelua: bundle: the script launched no kernel", err)
  end)
end)
-- SPDX-License-Identifier: MIT
