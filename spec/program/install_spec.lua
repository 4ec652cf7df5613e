-- Tests the files that are installed beside the program: its man page and its
-- completion for bash.
local support = require "spec.support"

describe("the man page", function()
  local page = support.run({"tools/manpage.lua"})

  it("has the program's own words of each command #long", function()
    for name in support.run({"--help"}):gmatch "\n  (%l+) " do
      assert.truthy(page:find("\n.SS " .. name .. "\n", 1, true), name)
      local help = support.run({name, "--help"})
      local usage = help:match "^[^\n]+":gsub("%-", "\\-")
      assert.truthy(page:find(usage, 1, true), usage)
    end
  end)

  it("has the variables that the program reads", function()
    for _, row in ipairs(require "cutelua.doc.environment") do
      local there = page:find("\n.B " .. row[1] .. "\n", 1, true) ~= nil
      assert.equal(row["for"] == nil, there, row[1])
    end
  end)

  it("is roff: lines that begin with a dot are its requests", function()
    local known = {}
    for name in ("TH SH SS B I br nf fi TP"):gmatch "%S+" do
      known[name] = true
    end
    for name in page:gmatch "\n%.(%w*)" do assert.is_true(known[name], name) end
    assert.is_nil(page:find("\n'", 1, true))
  end)
end)

-- The completion is for bash, so these tests call bash. (On some systems sh is
-- dash, which has no completion.)
describe("completion", function()
  local dir
  setup(function()
    dir = support.folder()
    support.write(dir .. "/a script.lua", "")
    support.write(dir .. "/other.lua", "")
    support.write(dir .. "/words.bash", ([[
      . "$1"; cutelua=$2; cd "$3"; shift 3
      COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
      _cutelua "$cutelua"
      printf '%s\n' "${COMPREPLY[@]}"]]))
  end)
  teardown(function() support.remove(dir) end)

  local function complete(...)
    local text = support.exec {"bash", dir .. "/words.bash",
      support.absolute "tools/completion.bash",
      support.absolute(support.program), dir, "cutelua", ...}
    local out = {}
    for line in text:gmatch "[^\n]+" do out[#out + 1] = line end
    table.sort(out)
    return out
  end

  it("knows commands, options and files #long", function()
    assert.same({"check"}, complete "che")
    assert.same({"--traceback"}, complete "--tr")
    assert.same({"a script.lua"}, complete "a")
    assert.same({"--surgeon"}, complete("check", "--su"))
    assert.same({"other.lua"}, complete("check", "o"))
    assert.same({"explain"}, complete("-e", "x = 1", "exp"))
    assert.same({"cute.arch.popc"}, complete("doc", "cute.arch.popc"))
  end)

  it("leaves a script's options to the script", function()
    assert.same({}, complete("other.lua", "--tr"))
  end)
end)

describe("docs/editors.md", function()
  it("names the folder of the Lua files that make install installs",
    function()
      local json = support.read "docs/editors.md":match "```json\n(.-)```"
      local makes = support.exec {"make", "-n", "install",
        "PREFIX=/usr/local"}
      local folder = json:match '"workspace.library": %["([^"]+)"%]'
      assert.truthy(makes:find(folder .. "/$f", 1, true), folder)
      local path = json:match '"runtime.path": %[([^%]]+)%]'
        :gsub('[" ]', ""):gsub(",", ";")
      for _, name in ipairs {"cute", "cute.tiles", "kernels.gemm_sm90"} do
        local file = assert(package.searchpath(name, path))
        assert.truthy(makes:find(" " .. file .. "%f[%s;]"), file)
      end
    end)
end)
-- SPDX-License-Identifier: MIT
