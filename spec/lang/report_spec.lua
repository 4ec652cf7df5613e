local core = require "cute.core"
local errors = require "cutelua.text.errors"
local kinds = require "cute.lang.kinds"
local report = require "cute.lang.report"
local source = require "cute.lang.source"
local support = require "spec.support"

local function lines(text)
  local n = 0
  for _ in (text .. "\n"):gmatch "\n" do n = n + 1 end
  return n
end

-- Returns the report for a text that runs as the chunk "=(t)".
local function of(text, opt)
  source.add("=(t)", text)
  local f = assert(load(text, "=(t)"))
  local ok, failure = xpcall(f, errors.capture)
  assert.is_false(ok)
  return errors.format(failure, opt)
end

describe("report", function()
  it("shows sentence, place, lines, operands and a hint", function()
    local text = of [[
local function stage(x)
  local y = x + 1
  error("(t):3: composition: stride 6 not divisible by shape 4 "
    .. "[inadmissible]\nA = (8,6):(1,8)\nB = (4):(6)", 0)
end
stage(1)
]]
    assert.equal([[
composition: stride 6 not divisible by shape 4 [inadmissible]
  (t):3 in stage
   2 |   local y = x + 1
 > 3 |   error("(t):3: composition: stride 6 not divisible by shape 4 "
   4 |     .. "[inadmissible]\nA = (8,6):(1,8)\nB = (4):(6)", 0)
    A = (8,6):(1,8)
    B = (4):(6)
  hint: ]] .. kinds.ERRORS.inadmissible.cure, text)
  end)

  it("never takes more than a dozen lines", function()
    local many = of([[error("x [inadmissible]" .. ("\nmore"):rep(50))]])
    assert.equal(12, lines(many))
    assert.truthy(many:find("... 43 more lines", 1, true))
    assert.is_true(lines(of "error 'plain'") <= 12)
  end)

  it("shows all with a traceback", function()
    local text = "error('x [bad-argument]' .. ('\\nmore'):rep(50))"
    local _, n = of(text, {traceback = true}):gsub("\n    more", "")
    assert.equal(50, n)
  end)

  it("shows every fault of a kernel: the first in full, one line of others",
    function()
      local function faults(n)
        local list = {}
        for i = 1, n do
          list[i] = ("k.lua:%d: fault %d [race]\n    first access: k.lua:%d, "
            .. "thread 3\n    put sync_threads() there"):format(i, i, i + 100)
        end
        return of(("error([=[x.lua:1: simulator: kernel k: %d faults "
          .. "[kernel-fault]\n%s]=], 0)"):format(n, table.concat(list, "\n")))
      end
      local head = "simulator: kernel k: %d faults [kernel-fault]\n"
        .. "  x.lua:1\n    k.lua:1: fault 1 [race]\n        first access: "
        .. "k.lua:101, thread 3\n        put sync_threads() there"
      local third = "\n    k.lua:3: fault 3 [race]\n        first access: "
        .. "k.lua:103, thread 3\n        put sync_threads() there"
      assert.equal(head:format(3) .. third:gsub("3", "2"):gsub("thread 2",
        "thread 3") .. third, faults(3))
      local text = faults(9)
      assert.equal(12, lines(text))
      assert.equal(head:format(9), text:sub(1, #head - 1))
      for i = 2, 7 do
        assert.truthy(text:find(("\n    k.lua:%d: fault %d [race], first "
          .. "access: k.lua:%d\n"):format(i, i, i + 100), 1, true), text)
      end
      local rest = "    ... %s--traceback shows all details of each fault"
      assert.equal(rest:format "2 more faults; ", text:match "[^\n]*$")
      assert.equal(rest:format "1 more fault; ", faults(8):match "[^\n]*$")
      text = faults(7)  -- up to 7 faulty elements are reported one by one
      assert.equal(12, lines(text))
      assert.equal(rest:format "", text:match "[^\n]*$")
    end)

  it("shows errors of Lua itself", function()
    assert.equal([[
attempt to perform arithmetic on a nil value (global 'b') [lua]
  (t):1 in main chunk
 > 1 | local a = b + 1
      'b' is nil: no local or global has that name]], of "local a = b + 1")
  end)

  it("shows errors that are no strings", function()
    assert.truthy(of "error {}":find "^error object is a table value %[lua%]\n")
    assert.truthy(of "error()":find "^error object is a nil value %[lua%]\n")
    assert.truthy(of [[error(setmetatable({}, {__tostring = function()
      return "my own [io]" end}))]]:find "^my own %[io%]")
  end)

  it("describes failures outside the program in one plain sentence", function()
    assert.equal("no usable GPU: libcuda.so.1 was not found [no-gpu]",
      of "error('no usable GPU: libcuda.so.1 was not found [no-gpu]', 0)")
    assert.equal("cannot open A.npy [io]", of "error('cannot open A.npy [io]')")
  end)

  it("has Lua's traceback only on request", function()
    assert.is_nil(of "error 'x'":find "traceback")
    assert.truthy(of("error 'x'", {traceback = true})
      :find("\nstack traceback:\n", 1, true))
  end)

  it("names functions that Lua has no name for", function()
    local text = [[
local f = function() error "no" end
require "cute.lang.source".names[f] = "kernel gemm3stage"
return (pcall(f)) or f() or 1]]
    assert.truthy(of(text):find("(t):1 in kernel gemm3stage", 1, true))
  end)

  it("blames the user's line, not cutelua's own", function()
    source.add("=(u)", "local own = ...\nown()\n")
    for _, chunk in ipairs {"=[cute.some]", "@lua/cute/lang/some.lua",
                            "@/usr/share/lua/5.4/cute/some.lua",
                            "@lua/cutelua/draw/some.lua",
                            "@/usr/share/lua/5.4/cutelua/draw/some.lua"} do
      local own = assert(load("return function() error('inside', 0) end",
                              chunk))()
      local user = assert(load(source.text "=(u)", "=(u)"))
      local _, failure = xpcall(user, errors.capture, own)
      assert.equal("inside [lua]\n  (u):2 in main chunk\n   1 | local own ="
        .. " ...\n > 2 | own()", errors.format(failure))
    end
  end)
end)

describe("report", function()
  it("names a loaded text by its first line", function()
    for _, first in ipairs {"local cute = require 'cute'", ""} do
      local k = load(first .. [[

        local arch = require "cute".arch
        return require "cute".kernel("k", function(x, y)
          y[(arch.thread_idx())] = x[(arch.thread_idx()) + 8]
        end)]])()
      local x = require "cute".zeros({8}, require "cute".f32)
      local _, why = pcall(function()
        k(x, x):launch {grid = 1, block = 8, device = "sim"}
      end)
      why = tostring(why)
      assert.truthy(why:find(('\n[string "%s..."]:4: '):format(first), 1, true),
                    why)
      assert.is_nil(why:find("return require", 1, true), why)
    end
  end)

  it("recognizes a script in a clone in a folder named lua", function()
    for _, path in ipairs {"some.lua", "scripts/some.lua", "kernels/some.lua",
                           "spec/page/some.lua"} do
      assert.is_false(core.own_source("@/tmp/lua/cutelua/" .. path))
    end
  end)

  it("shows the line that only the sentence names", function()
    assert.equal("the comparison at (t):2 was never used [unused-boolean]\n"
      .. "  (t):2\n   1 | local a\n > 2 | if a then end\n"
      .. "   3 | error('the comparison at (t):2 was never used "
      .. "[unused-boolean]\\nbranch with cute.when', 0)\n"
      .. "    branch with cute.when", of("local a\nif a then end\n"
      .. "error('the comparison at (t):2 was never used "
      .. "[unused-boolean]\\nbranch with cute.when', 0)"))
  end)

  it("shows syntax errors with their line", function()
    source.add("=(s)", "x = 1\ny = = 2\n")
    local _, message = load("x = 1\ny = = 2\n", "=(s)")
    assert.equal([[
unexpected symbol near '=' [lua]
  (s):2
   1 | x = 1
 > 2 | y = = 2]], errors.format(message))
  end)

  it("cuts long lines and copes with missing files", function()
    local text = of("error('x') --" .. (" long"):rep(100))
    for line in text:gmatch "[^\n]+" do assert.is_true(#line < 120) end
    assert.equal("x [misaligned]\n  none.lua:3\n  hint: "
      .. kinds.ERRORS["misaligned"].cure,
      errors.format "none.lua:3: x [misaligned]")
  end)

  -- Kinds of errors with too many causes for one suggestion. Their messages
  -- must say what is required, and how to write the call.
  local OWN_WORDS = {["bad-argument"] = true, ["overflow"] = true,
    ["limit"] = true, ["unknown-name"] = true, ["type-mismatch"] = true,
    ["shape-mismatch"] = true, ["needs-static"] = true, ["bad-launch"] = true,
    ["lua"] = true}

  it("has a suggestion or a plain sentence for every kind", function()
    local text = support.read "core/base/errors.h"
    local n = 0
    for kind in text:gmatch '\nERR%([%w_]+, "([^"]+)"' do
      n = n + 1
      assert.truthy(kinds.ERRORS[kind].cure or report.world[kind]
        or OWN_WORDS[kind], kind)
    end
    assert.is_true(n > 20)
    for kind in pairs(report.world) do
      assert.truthy(text:find('"' .. kind .. '"', 1, true), kind)
    end
  end)
end)

describe("an error of our own files", function()
  local function told(sentence)
    local raise = load(("error('[cute.x]:1: %s', 0)"):format(sentence),
                       "=[cute.x]")
    return (select(2, xpcall(raise, require "cute.lang.lua_errors".handler)))
  end

  it("is the caller's, but for Ctrl-C", function()
    assert.matches("an argument has the wrong type or value "
      .. "[bad-argument]", told "odd", 1,
                   true)
    assert.equal("[cute.x]:1: interrupted", told "interrupted")
  end)
end)

describe("docs/errors.md", function()
  it("lists every kind with a wrong and a mended example", function()
    local text = support.read "core/base/errors.h"
    local docs = support.read "docs/errors.md"
    for kind in text:gmatch '\nERR%([%w_]+, "([^"]+)"' do
      local _, at = docs:find("\n## " .. kind .. "\n", 1, true)
      assert.truthy(at, kind)
      local section = docs:sub(at, (docs:find("\n## ", at, true) or 0) - 1)
      assert.truthy(section:find("Wrong", 1, true), kind)
      assert.truthy(section:find("Mended", 1, true), kind)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
