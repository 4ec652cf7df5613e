-- Tests tools/annotations.lua. It must report every kind of mistake in a text,
-- and nothing for a correct text.
local support = require "spec.support"

local FILES = {
  ["lua/cute/meta/all.lua"] = [[
---@meta cute
---@class cute
local cute = {}

---@alias cute.Int integer|cute.Value
---@class cute.Value
---@class cute.Shape
---@field rank integer
---@class cute.Layout: cute.Shape
---@field size integer
local Layout = {}

---@param other cute.Layout
---@param opts? {deep: boolean, by: fun(a: integer, b?: integer): boolean}
---@return boolean
function Layout:equals(other, opts) end

---@param shape cute.Int|table<string, cute.Int[]>
---@param stride? "row"|"column"
---@return cute.Layout
function cute.make_layout(shape, stride) end

---@class cute.Tile: cute.Shape
---@field name string
---@field of cute.Layout|cute.Tile
local Tile = {}

---@param other integer
---@param how? string
---@param by? integer
function Tile:equals(other, how, by) end

---@alias cute.Some cute.Layout | cute.Tile
---@return cute.Layout|cute.Tile|nil
function cute.pick() end
---@return cute.Some
function cute.some() end
---@return cute.Some|string
function cute.said() end
---@return cute.Tile
function cute.tile() end

---@generic T
---@param x `T`
---@param ... T
---@return T
function cute.first(x, ...) end

---@deprecated
function cute.old() end

cute.part = require "cute.part"
return cute
]],
  ["lua/cute/part.lua"] = [[
local sign = require "cute.lang.signature"
local part = {}
for _, name in ipairs {"one", "two"} do
  for key, f in pairs(require("cute.part_" .. name)) do part[key] = f end
end
return sign.public("part.", part, "first(a: number, b?) second(c, d...)")
]],
  ["lua/cute/part_one.lua"] = "return {first = function(a, b) end}\n",
  ["lua/cute/part_two.lua"] = "return {second = function(c, d) end}\n",
  ["scripts/right.lua"] = [[
local cute = require "cute"
local layout = cute.make_layout(4, "row")
print(layout.size, layout.rank, layout:equals(layout), cute.first(1, 2, 3))
cute.part.first(1)
cute.part.second(1, 2, 3, table.unpack {})
local some, tile = cute.some(), cute.tile()
print(some.size, some.name, some.rank, some:equals(1, "a", 2), tile.of.size,
      tile.of.of, tile.of:equals(1), cute.said():upper())
local own = {}
print(own.never)
local free = cute
free = {}
print(free.anything)
]],
}

-- Runs the tool on a tree of correct files, where `more` adds or replaces some.
-- Returns the tool's reports.
local function told(more)
  local dir, all = support.folder(), {}
  os.execute(("mkdir -p %s/lua/cute/meta %s/kernels %s/scripts"):format(dir,
    dir, dir))
  for path, text in pairs(FILES) do all[path] = text end
  for path, text in pairs(more or {}) do all[path] = text end
  for path, text in pairs(all) do support.write(dir .. "/" .. path, text) end
  local pipe <close> = io.popen("lua5.4 tools/annotations.lua " .. dir
    .. " 2>&1")
  local out = pipe:read "a"
  support.remove(dir)
  return out
end

local function script(line)
  return told {["scripts/s.lua"] = 'local cute = require "cute"\n' .. line
    .. "\n"}
end

local function annotated(text)
  return told {["lua/m.lua"] = text}
end

describe("tools/annotations.lua #long", function()
  if not os.execute "command -v luacheck >/dev/null" then
    pending "needs luacheck, whose parser it uses"
    return
  end

  it("reports nothing in a correct text", function()
    assert.equal("", told())
  end)

  for line, want in pairs {
    ["cute.make_layot(4)"] = "cute.make_layot: there is no such field",
    ["print(cute.part.third)"] = "cute.part.third: there is no such field",
    ["local l = cute.make_layout(4) print(l.sise)"] =
      "l.sise: there is no such field",
    ["local l = cute.make_layout(4) l:equal(l)"] =
      "l:equal: there is no such method",
    ["cute.make_layout()"] = "cute.make_layout: 0 arguments, it needs 1",
    ["cute.make_layout(1, 'row', 3)"] =
      "cute.make_layout: 3 arguments, it takes 2",
    ["local f = function() cute.make_layout(1):equals() end"] =
      "(...):equals: 0 arguments, it needs 1",
    ["cute.part.first()"] = "cute.part.first: 0 arguments, it needs 1",
    ["cute.part.first(1, 2, 3)"] = "cute.part.first: 3 arguments, it takes 2",
    ["local x = cute.pick() print(x.sise)"] = "x.sise: there is no such field",
    ["local x = cute.some() print(x.sise)"] = "x.sise: there is no such field",
    ["local x = cute.some() x:equal(x)"] = "x:equal: there is no such method",
    ["local x = cute.some() x:equals()"] = "x:equals: 0 arguments, it needs 1",
    ["local x = cute.some() x:equals(1, 2, 3, 4)"] =
      "x:equals: 4 arguments, it takes 3",
    ["local x = cute.tile() print(x.of.sise)"] =
      "x.of.sise: there is no such field",
    ["local x = cute.tile() print(x.of.of.sise)"] =
      "x.of.of.sise: there is no such field",
    ["cute.old()"] = "cute.old is deprecated",
  } do
    it("reports " .. want, function()
      assert.equal("scripts/s.lua:2: " .. want .. "\n", script(line))
    end)
  end

  for text, want in pairs {
    ["---@param x integer|\nlocal function f(x) end"] =
      "1: a type expected at ''",
    ["---@param x table<string, integer\nlocal function f(x) end"] =
      "1: '>' expected at ''",
    ["---@param x {a: integer\nlocal function f(x) end"] =
      "1: '}' expected at ''",
    ["---@param x fun(a: integer\nlocal function f(x) end"] =
      "1: ')' expected at ''",
    ["---@param x integer: prose\nlocal function f(x) end"] =
      "1: a type ends in ': prose'",
    ["---@param x\nlocal function f(x) end"] =
      "1: a parameter without name and type",
    ["---@return cute.Layot\nlocal function f() end"] =
      "1: no type is called cute.Layot",
    ["---@return integer n, cute.Layot\nlocal function f() end"] =
      "1: no type is called cute.Layot",
    ["---@class A: cute.None"] = "1: no type is called cute.None",
    ["---@param y integer\nlocal function f(x) end"] =
      "1: @param y: the function has no such parameter",
    ["---@param y integer\n---@param x integer\nlocal function f(x, y) end"] =
      "2: @param x: out of order",
    ["---@param x integer\n---@param x integer\nlocal function f(x) end"] =
      "2: parameter x twice",
    ["---@class A\n---@field n integer\n---@field n integer"] =
      "3: field n twice",
    ["---@alias A integer\n\n---@alias A string"] = "3: alias A twice",
    ["---@class A\n\n---@class A"] = "3: class A twice",
    ["---@field n integer"] = "1: a field of no class",
    ["---@params x integer"] = "1: no annotation is called @params",
    ["--- Adds. @param x integer\nlocal function f(x) end"] =
      "1: @param is within a sentence, so no editor reads it: "
      .. "begin a line with ---@param",
    ["--- Adds. See\n-- f. @return integer\nlocal function f() end"] =
      "2: @return is within a sentence, so no editor reads it: "
      .. "begin a line with ---@return",
  } do
    it("reports " .. want, function()
      assert.equal("lua/m.lua:" .. want .. "\n", annotated(text .. "\n"))
    end)
  end
end)
-- SPDX-License-Identifier: MIT
