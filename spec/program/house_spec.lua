-- Tests the checks of documents, prose and commit messages. Each check must
-- find the mistakes that it looks for.
local support = require "spec.support"

local docs = dofile "tools/docs.lua"
local prose = dofile "tools/prose.lua"

-- Returns the complaints of a check of tools/docs.lua, as texts "LINE: WHAT".
local function complaints(check, text, path)
  local out = {}
  check(path or "docs/page.md", text, function(line, what)
    out[#out + 1] = line .. ": " .. what
  end)
  return out
end

describe("checks of documents", function()
  it("find links that lead nowhere", function()
    assert.same({"3: nowhere.md: no such file", "3: ops.md#nix: no such "
      .. "heading", "4: #two: no such heading"}, complaints(docs.links, [[
# One
[a](ops.md), [b](#one), [c](ops.md#explain), [d](../core), [e](https://x)
[a](nowhere.md), [b](ops.md#nix), `[c](nowhere.md)`
[a](#two)
```
[a](nowhere.md)
```
]]))
    assert.same({}, complaints(docs.links, "[a](docs/ops.md)", "README.md"))
  end)

  it("find paths that do not exist", function()
    assert.same({"2: core/ir/nix.c: no such file",
                 "2: cute/nix.lua: no such file"}, complaints(docs.paths, [[
`core/ir/ops.h`, `core/ir/`, `spec/ROOM/x_spec.lua`, `a/b`, `cute/ops/init.lua`
`core/ir/nix.c`, `cute/nix.lua`
]]))
  end)

  it("find targets that make does not have", function()
    assert.same({"2: make nix: no such target", "4: make foo: no such target"},
      complaints(docs.targets, [[
`make test`, `make install PREFIX=/x`, `luarocks make`, `SPECS=x make check`
`make nix`

    make foo  # nothing
]]))
  end)

  it("find names that cute does not have #long", function()
    local function find(name) return name == "cute.copy" end
    local function check(...) return docs.names(find, ...) end
    local text = "| `cute.nix` | `cute.copy(a, b)`, `cute.foo`, `a/cute.cu` |\n"
    assert.same({"1: cute.nix: no such name", "1: cute.foo: no such name"},
                complaints(check, text))
    assert.same({"1: cute.foo: no such name"},
                complaints(check, text, "docs/from-x.md"))
    assert.equal("", (support.run({"tools/docs.lua"})))
  end)
end)

describe("tools/prose.lua", function()
  it("counts the words of sentences outside of code", function()
    local found = {}
    prose.long("One two `three four` five. Six.\n\n```\na b c d e f g h\n```\n"
      .. "- one two\n  three four five\n\n| one two three | four |\n\n"
      .. "    one two three four five six\n\nSee [one two](x.md) e.g. here.\n",
      3, function(_, n, line) found[#found + 1] = {n, line} end)
    assert.same({{4, 1}, {5, 6}, {5, 13}}, found)
  end)

  it("finds comments that open with a pronoun", function()
    local found = {}
    for _, path in ipairs {"a.c", "a.lua"} do
      local mark = path == "a.c" and "//" or "--"
      prose.comments(path, (([[
# Who waits for it is
# told here.
x = "# what is no comment"  # of each leaf, what it is
# Returns the sum of two.
# what
]]):gsub("#", mark)), function(said, line)
        found[#found + 1] = {line, prose.opens_badly(said), said}
      end)
    end
    assert.same({{1, true, "Who waits for it is told here."},
                 {3, true, "of each leaf, what it is"},
                 {4, false, "Returns the sum of two. what"}},
                table.move(found, 1, 3, 1, {}))
    assert.equal(6, #found)
  end)

  it("draws a sample #long", function()
    local text = support.exec {"lua5.4", "tools/prose.lua", "sample", "47"}
    local rows = select(2, text:gsub("\n *%d+%. ", ""))
    assert.equal(60 + 30 + 30, rows - select(2,
      text:match "== %d+ commit subjects(.*)":gsub("\n *%d+%. ", "")))
  end)
end)

describe("VERSION", function()
  it("is the version of the header, the rockspec and the changelog", function()
    local version = support.read "VERSION":match "^(%d+%.%d+%.%d+)\n$"
    local header = support.read "core/library/cutelua.h"
    assert.equal(version, header:match '#define CUTELUA_VERSION "([^"]*)"')
    local rockspec = support.read("cutelua-" .. version .. "-1.rockspec")
    assert.truthy(rockspec:find(('\nversion = "%s-1"\n'):format(version), 1,
                                true))
    assert.equal(version, support.read "CHANGELOG.md":match "\n## ([%d.]+)")
    for _, path in ipairs {"docs/cpp.md", "examples/library/CMakeLists.txt"} do
      assert.equal(version:match "^%d+%.%d+", support.read(path):match
        "find_package%(cutelua ([%d.]+) REQUIRED%)", path)
    end
  end)

  it("is the version that the program prints", function()
    assert.equal("cutelua " .. support.read "VERSION":match "%S+" .. " ",
      support.run {"--version"}:match "^cutelua [%d.]+ ")
  end)
end)

describe("tools/commit-msg", function()
  local dir
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  for message, want in pairs {
      ["Add a check\n\nBecause.\n"] = "",
      ["fixup! add a check"] = "",
      ["add a check"] = "does not start with a capital",
      ["Add a check."] = "ends in a dot",
      ["Add a check\nBecause."] = "no blank line",
      [("Add"):rep(22)] = "more than 65 characters"} do
    it((want == "" and "accepts " or "rejects ") .. message, function()
      local f <close> = assert(io.open(dir .. "/message", "w"))
      f:write(message)
      f:close()
      local _, err, code = support.exec {"sh", "tools/commit-msg",
                                         dir .. "/message"}
      assert.equal(want == "" and 0 or 1, code)
      assert.truthy(err:find(want, 1, true), err)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
