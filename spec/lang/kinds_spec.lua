-- Tests the table of error kinds. Every sentence of the table must be complete
-- if a report has all facts of its kind. The codes of notes must not depend on
-- names. `make rules` compares the table with the C headers and docs/errors.md.
local faults = require "cutelua.text.faults"
local kinds = require "cute.lang.kinds"
local support = require "spec.support"

-- Returns the names of the facts of each kind, as core/faults/facts.c lists
-- them.
local function facts_of_kinds()
  local text, names, list = support.read "core/faults/facts.c", {}, {}
  for id, kind in support.read "core/faults/kinds.h":gmatch
      'SK%((%u+), "([^"]+)"%)' do
    names[id], list[kind] = kind, {}
  end
  for set, macro in text:gmatch "#define ([%u]+) %(?(K%(.-)\n" do
    for id in macro:gmatch "K%((%u+)%)" do
      names[set] = names[set] or {}
      table.insert(names[set], names[id])
    end
  end
  local n = 0
  for sets, name in text:gmatch '[FN][AA][CM][TE]D?%(([^"#]-), "([%l_]+)",' do
    for id in sets:gsub("K(%b())", function(s) return s:sub(2, -2) end)
        :gmatch "%u+" do
      local of = names[id]
      for _, kind in ipairs(type(of) == "table" and of or {of}) do
        list[kind][name], n = true, n + 1
      end
    end
  end
  assert(n > 60, n)
  return list
end

local MEMORY = {space = "shared", name = "s", ptx = false, raw = false}
-- Values of facts, by kind of fault: of those that the table in
-- core/faults/facts.c does not list, and of those that are no numbers.
local OTHERS = {["out-of-bounds"] = {count = 32, extent = {8, -1}},
  ["async-in-flight"] = {late = MEMORY, agent = "bulk copy"},
  ["uninitialised"] = {late = MEMORY}, ["barrier-mismatch"] = {threads = 64},
  ["deadlock"] = {threads = 64, value = 1.5},
  ["dependent-launch"] = {before = 1}, ["wrong-layout"] = {why = "no"},
  ["assertion"] = {said = "yes"}, ["tensor-memory"] = {op = "tcgen05.ld",
    clash_of = "read after write"},
  ["race"] = {agent = "st.async", how = "write after read"},
  ["warp-race"] = {agent = "st.async", how = "read after write"},
  ["block-race"] = {mine = "read", its = "write"}}

-- Returns a report of a kind with values for all facts of the kind.
local function report(kind, names)
  local r = {kind = kind, facts = {memory = MEMORY}, offset = 3, line = 4,
    line2 = 5, coord = "(1,2)", block = {0, 1, 2}, lack = "parity"}
  for name in pairs(names) do
    r.facts[name] = name == "cta" and {3, 4, 5} or 2
  end
  for name, v in pairs(OTHERS[kind] or {}) do r.facts[name] = v end
  return r
end

local function complete(text, kind)
  assert.matches("^%S.*%S$", text, kind)
  assert.is_nil(text:find "{[%l_:]+}", text)
  assert.is_nil(text:find "%f[%w]nil%f[%W]", text)
end

local function value(v, r)
  if type(v) == "function" then return v(r.facts, r) end
  return v
end

describe("the table of kinds", function()
  local facts = facts_of_kinds()

  it("has a complete sentence for every case", function()
    local n = 0
    for _, row in ipairs(kinds.FAULTS) do
      local r = report(row.kind, facts[row.kind])
      for _, case in ipairs(row) do
        n = n + 1
        r.facts.how = case.how or r.facts.how
        complete(kinds.fill(r, value(case[1], r)), row.kind)
        for _, more in ipairs {case.cure or false, case.other or false} do
          local text = value(more, r)
          if text then complete(text, row.kind) end
        end
      end
      for lack, missing in pairs(row.lacks or {}) do
        if missing.late then
          complete(kinds.fill(r, value(missing.late, r)), row.kind)
        end
        complete(value(missing.cure, r) or lack, row.kind)
      end
      assert.truthy(kinds.code(r):find "^%l+/%l+/[%l-]+$", row.kind)
    end
    assert.is_true(n > 80, n)
  end)

  it("gives a note its code by what it is about, not by names", function()
    local o = {name = "sum", file = "=s", line = 3, whole = true}
    local program = setmetatable({}, {__index = function() return {} end})
    local notes, codes = faults.notes {ok = true, lines = {}, unread = {o},
      program = program}
    assert.same({1, "note/run/never-read"}, {#notes, codes[1]})
    assert.matches("shared tensor 'sum' is written here, but no", notes[1])
    local gap = {tensor = "y", file = "=s", line = 3, stored = true, rank = 2,
      none = 1, size = 8, modes = {{mode = 0, n = 1, ranges = {{7, 7}},
                                    extent = 8}}}
    notes, codes = faults.notes {ok = true, lines = {}, gaps = {gap},
      program = program}
    assert.matches("row 7 of 'y' was never stored", notes[1])
    assert.same({"note/run/left-out"}, codes)
  end)
end)
-- SPDX-License-Identifier: MIT
