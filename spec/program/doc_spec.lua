-- What is said of names: at the prompt, on the command line, in the reference.
local comments = require "cute.doc.comments"
local cute = require "cute"
local doc = require "cute.doc"
local support = require "spec.support"

describe("comments", function()
  it("are read with parameters, results and examples", function()
    local list = comments.read [[
--- Adds. It is
-- exact.
--
--     m.add(1, 2)  --> 3
---@param x integer|table<string, integer> the first
---@param opts? {a: integer,
-- b: boolean} what
-- else
---@return integer sum
function m.add(x, opts) end

local n = 3
m.plus = m.add
]]
    assert.equal(2, #list)
    local d = list[1].doc
    assert.equal("m.add", list[1].name)
    assert.equal(10, list[1].line)
    assert.same({"Adds. It is exact."}, d.text)
    assert.equal("Adds.", comments.summary(d))
    assert.same({"m.add(1, 2)  --> 3"}, d.example)
    assert.same({
      {name = "x", optional = false, type = "integer|table<string, integer>",
       text = "the first"},
      {name = "opts", optional = true, type = "{a: integer, b: boolean}",
       text = "what else"}}, d.params)
    assert.same({{type = "integer", text = "sum"}}, d.returns)
    assert.equal("m.add", list[2].same)
  end)
end)

describe("cute.doc", function()
  it("says what a function of Lua is, by name and by value", function()
    local text = doc.lookup "arch.popc"
    assert.equal([[
cute.arch.popc(value: integer|value)

  How many bits are set (an i32).

  value  a 32- or 64-bit integer
]], (text:gsub("%s+[^\n]*%d$", "\n")))
    assert.equal(text, doc.lookup(cute.arch.popc))
    assert.equal(text, doc.lookup "cute.arch.popc()")
    assert.is_truthy(text:find "bits[.lua]*:%d+$")
  end)

  it("says what a function of C is, and a method", function()
    assert.is_truthy(doc.lookup "make_layout"
      :find("^cute%.make_layout%(shape, stride%?, layouts%.%.%.%)\n"))
    assert.is_truthy(doc.lookup "layout:coalesce"
      :find("^layout:coalesce%(profile%?%)\n\n  cute%.coalesce as a method"))
    assert.equal(doc.lookup "tensor:fill", doc.lookup "Tensor.fill")
    assert.is_truthy(doc.lookup "partition_S":find "^tiled_copy:partition_S")
  end)

  it("lists what modules and objects have", function()
    local text = doc.lookup(cute.arch)
    assert.is_truthy(text:find "\n  lane_idx%(%) +Lane of this thread")
    assert.equal(text, doc.lookup "cute.arch")
    text = doc.lookup(cute.make_layout(8))
    assert.is_truthy(text:find "^layout\n")
    assert.is_truthy(text:find "\n  coalesce%(profile%?%) ")
    assert.is_truthy(doc.lookup "cute":find "\n  make_layout%(")
  end)

  it("offers near names, and knows variables of the environment", function()
    local text, message = doc.lookup "make_layot"
    assert.is_nil(text)
    assert.is_truthy(message:find "^no public name 'make_layot'; nearest: "
      and message:find("cute.make_layout", 1, true))
    assert.is_truthy(select(2, doc.lookup "qqqqq"):find "^no public name"
      and not select(2, doc.lookup "qqqqq"):find "nearest")
    assert.is_truthy(select(2, doc.lookup(12)):find "number")
    assert.is_truthy(doc.lookup "CUTELUA_CACHE_MB":find "256")
    assert.is_truthy(doc.lookup "environment":find "NO_COLOR")
  end)

  it("answers in milliseconds", function()
    doc.lookup "popc"
    local before = os.clock()
    for _ = 1, 20 do
      doc.lookup "make_layout"
      doc.lookup "layout:coalesce"
    end
    assert.is_true(os.clock() - before < 0.4)
  end)

  it("is asked for at the prompt", function()
    assert.equal("make_layout", doc.asked "?make_layout")
    assert.equal("cute.arch", doc.asked " cute.arch ? ")
    assert.equal("cute", doc.asked "?")
    assert.falsy(doc.asked "f 'what?'")
    assert.falsy(doc.asked "x = '?'")
    local out = support.run({}, {stdin = "?popc\nk = cute.arch.popc\nk ?\n"
      .. "help(cute.arch.popc)\nhelp 'arch.popc'\n?popcc\n"})
    local _, n = out:gsub("How many bits are set", "")
    assert.equal(4, n)
    assert.is_truthy(out:find "no public name 'popcc'; nearest: cute.arch.popc")
  end)

  it("is asked for on the command line", function()
    local out, _, code = support.run {"doc", "arch.popc", "size"}
    assert.equal(doc.lookup "arch.popc":match "^.-\n" , out:match "^.-\n")
    assert.is_truthy(out:find("\n\ncute.size(x, modes...)\n", 1, true))
    assert.equal(0, code)
    local err
    out, err, code = support.run {"doc", "make_layot"}
    assert.equal("", out)
    assert.is_truthy(err:find "^cutelua doc: no public name 'make_layot'")
    assert.equal(1, code)
    assert.is_truthy(support.run {"doc", "--help"}:find "^usage: cutelua doc")
    assert.equal(2, select(3, support.run {"doc", "--what"}))
  end)
end)
