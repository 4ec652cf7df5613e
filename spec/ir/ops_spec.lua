-- Tests that the build fails at an incomplete row of ops.h: a row whose
-- operation some file does not handle, and a row with an empty column.
local support = require "spec.support"

local BUILD = os.getenv "CUTE_BUILD" or "build"
-- EFFECT and SCALAR: the files that must handle an operation with an effect,
-- and a scalar operation. FILES: all files with a switch over operations.
local EFFECT = {"decode/decode.c", "emit/emit.c", "emit/expr.c", "sim/exec.c"}
local SCALAR = {"emit/expr.c", "ir/eval.c"}
local FILES = {"bind/patchlib.c", "decode/decode.c", "emit/emit.c",
  "emit/expr.c", "ir/eval.c", "sim/exec.c", "sim/tensormap_ops.c",
  "watch/undefined.c"}
local EFFECTS = {"KNOWN", "PURE", "OBJECT", "VAR", "REGS", "MEMORY", "MEET",
  "ORDER", "ASK", "ACT", "OPEN", "TURN", "CLOSE", "LEAVE"}
-- In a row of ops.h, ASYNC names the agent, the hardware unit that completes
-- the operation (rows.h).
for agent in support.read "core/ir/rows.h":gmatch "AG%((%u+), \"" do
  EFFECTS[#EFFECTS + 1] = ("ASYNC(%s)"):format(agent)
end

local function made(effect) return "MADE_" .. effect:gsub("%W", "_") end

-- Calls f(folder), where the folder has an ops.h with these rows added.
local function with_rows(rows, f)
  local folder = support.folder()
  support.must {"mkdir", folder .. "/ir"}
  local text = support.read "core/ir/ops.h"
  support.write(folder .. "/ir/ops.h", (text:gsub("\n#undef SCALAR", function()
    return "\n" .. rows .. "#undef SCALAR"
  end)))
  local results = table.pack(pcall(f, folder))
  support.remove(folder)
  assert(results[1], results[2])
  return table.unpack(results, 2)
end

-- Returns the compiler's messages for a file that includes the folder's ops.h.
local function messages(folder, file)
  local _, err = support.exec({"cc", "-std=c11", "-fsyntax-only",
    "-Wswitch-enum", "-I", folder, "-Icore", "-I" .. BUILD,
    "-I/usr/include/lua5.4", file}, {env = {LC_ALL = "C"}})
  return err
end

-- Adds an invented scalar operation, and one invented operation for each
-- effect. Returns, for each invented operation, the files whose switch lacks
-- it.
local function lacking()
  local rows, out = "", {MADE_SCALAR = {}}
  for _, effect in ipairs(EFFECTS) do
    out[made(effect)] = {}
    rows = rows .. ('OP(%s, "made", "", NONE, NONE, ANY, %s, LANE, EXACT, '
                    .. 'NONE, NONE, NEVER)\n'):format(made(effect), effect)
  end
  rows = rows .. 'SCALAR(MADE_SCALAR, "made", "vv", SAME, EXACT, SUM)\n'
  with_rows(rows, function(folder)
    for _, file in ipairs(FILES) do
      local err = messages(folder, "core/" .. file)
      for name, files in pairs(out) do
        if err:find("'OP_" .. name .. "'", 1, true) then
          files[#files + 1] = file
        end
      end
    end
  end)
  return out
end

describe("a new row of ops.h", function()
  it("does not compile in the files that must know it #long", function()
    if not support.read(BUILD .. "/emit/prelude.inc") then
      return pending "needs the files that a build generates"
    end
    local want = {MADE_SCALAR = SCALAR}
    for _, effect in ipairs(EFFECTS) do want[made(effect)] = EFFECT end
    assert.same(want, lacking())
  end)

  it("concerns no file that the test above does not compile", function()
    local out = support.must {"grep", "-l", "case OP_", "-r", "core",
                              "--include=*.c"}
    local found = {}
    for file in out:gmatch "core/(%S+)" do found[#found + 1] = file end
    table.sort(found)
    assert.same(FILES, found)
  end)

  it("must have all columns #long", function()
    local full = {"MADE", '"made.row"', '""', "NONE", "NONE", "NONE", "ORDER",
                  "LANE", "EXACT", "NONE", "CONTROL", "NEVER"}
    local function check(columns)
      local row = "DO(" .. table.concat(columns, ", ") .. ")\n"
      return with_rows(row, function(folder)
        return messages(folder, "core/ir/ops.c")
      end)
    end
    assert.equal("", check(full))
    for k = 2, #full do
      local columns = {table.unpack(full)}
      columns[k] = ""
      assert.matches("error: .*DO%(MADE, ", check(columns))
    end
  end)
end)
-- SPDX-License-Identifier: MIT
