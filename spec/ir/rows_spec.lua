-- Tests the tables of memory spaces, of agents (hardware units such as TMA) and
-- of actors (entries of vector clocks). If a table gets a made-up row, each
-- file that must handle the row must fail to compile, and all other files must
-- still compile.
local support = require "spec.support"

local BUILD = os.getenv "CUTE_BUILD" or "build"

-- Returns the files of core/ whose text contains a Lua pattern, sorted.
local function files_with(pattern)
  local out = {}
  for path in support.must {"find", "core", "-name", "*.c"}:gmatch "%S+" do
    if support.read(path):find(pattern) then out[#out + 1] = path end
  end
  table.sort(out)
  return out
end

-- Calls f(folder), where the folder has a copy of a header of core/ with `row`
-- added after the last row of a table.
local function with_row(header, last, row, f)
  local folder = support.folder()
  support.must {"mkdir", "-p", folder .. "/" .. header:match "^(.*)/"}
  local text, n = support.read("core/" .. header):gsub(last, function(found)
    return found .. " \\\n  " .. row
  end)
  assert(n == 1, "no last row " .. last)
  support.write(folder .. "/" .. header, text)
  local results = table.pack(pcall(f, folder))
  support.remove(folder)
  assert(results[1], results[2])
  return table.unpack(results, 2)
end

-- Returns the compiler's messages for a file, with the headers of a folder.
local function messages(folder, file)
  local _, err = support.exec({"cc", "-std=c11", "-fsyntax-only", "-Wall",
    "-Wextra", "-Wswitch-enum", "-I", folder, "-Icore", "-I" .. BUILD,
    "-I/usr/include/lua5.4", file}, {env = {LC_ALL = "C"}})
  return err
end

-- Returns the set of the files of core/ for which the compiler prints messages
-- when it compiles `files` with the folder's headers. Each message must mention
-- `name`.
local function lacking(folder, files, name)
  local out = {}
  for _, file in ipairs(files) do
    local err = messages(folder, file)
    if err ~= "" then
      assert.matches(name, err)
      for where in err:gmatch "core/(%S+%.[ch]):%d+:%d+: [we]" do
        out[where] = true
      end
    end
  end
  return out
end

local function set(list)
  local out = {}
  for _, name in ipairs(list) do out[name] = true end
  return out
end

local SPACES = {"ir/fn.h", '"offset k is k %* bits / 32 [^\n]*"%)'}

describe("a new row of SPACES", function()
  it("is in memory that exists: only a name for the emitted text lacks #long",
     function()
    if not support.lua_headers then
      return pending "needs the headers of Lua"
    end
    local row = 'SP(MADE, "made", "made", GMEM, GLOBAL, LAUNCH, "")'
    local files = files_with "SP_[A-Z]"
    local found = with_row(SPACES[1], SPACES[2], row, function(folder)
      return lacking(folder, files, "SP_MADE")
    end)
    assert.same(set {"emit/emit.c"}, found)
  end)

  it("needs all columns #long", function()
    local function check(columns)
      local row = "SP(" .. table.concat(columns, ", ") .. ")"
      return with_row(SPACES[1], SPACES[2], row, function(folder)
        return messages(folder, "core/ir/ir.c")
      end)
    end
    local full = {"MADE", '"made"', '"made"', "GMEM", "GLOBAL", "LAUNCH", '""'}
    assert.equal("", check(full))
    for k = 2, 6 do
      local columns = {table.unpack(full)}
      columns[k] = ""
      assert.matches("error: ", check(columns))
    end
  end)
end)

describe("a new row of MEMORIES", function()
  it("lacks its bytes, granules and counts in the files that find them",
     function()
    local files = files_with "case MEMORY_"
    local found = with_row("ir/fn.h", 'ME%(TENSOR, "[^"\n]*"%)',
                           'ME(MADE, "")', function(folder)
      return lacking(folder, files, "MEMORY_MADE")
    end)
    assert.same(set {"decode/decode.c", "sim/hooks.h", "sim/mem.c",
                     "watch/debugger.c", "watch/shadow.h", "watch/watch.c"},
                found)
  end)
end)

describe("a new row of AGENTS", function()
  it("is known to all files #long", function()
    local files = files_with "agent_rows"
    assert.is_true(#files > 0)
    for _, file in ipairs(files_with "AGENT_") do files[#files + 1] = file end
    assert.same({}, with_row("ir/rows.h", "AG%(TCST, [^\n]*%)",
                             'AG(MADE, "made", true, BULKWAIT)',
                             function(folder)
      return lacking(folder, files, "AGENT_MADE")
    end))
  end)

  it("is named by a report without a further row", function()
    local kinds = require "cute.lang.kinds"
    for name in support.read "core/ir/rows.h":gmatch 'AG%(%u+, "([^"]+)"' do
      local by = kinds.fill({facts = {agent = name}}, "{by}")
      assert.is_truthy(by:find(name, 1, true), name)
    end
  end)
end)

describe("a new row of SIM_ACTORS", function()
  local LAST = "AC%(CPASYNC, CPASYNC, warps%)"

  it("lacks its number in the decoder", function()
    local err = with_row("decode/actors.h", LAST, "AC(MADE, NONE, made)",
                         function(folder)
      return messages(folder, "core/decode/decode.c")
    end)
    assert.matches("error: 'made' undeclared", err)
  end)

  it("is known to all files if it has a number #long", function()
    assert.same({}, with_row("decode/actors.h", LAST, "AC(MADE, NONE, warps)",
                             function(folder)
      return lacking(folder, files_with "ACTOR_", "ACTOR_MADE")
    end))
  end)
end)
-- SPDX-License-Identifier: MIT
