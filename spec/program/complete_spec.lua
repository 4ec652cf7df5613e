local complete = require "cutelua.program.complete"
local cute = require "cute"
local tokens = require "cutelua.text.tokens"
local menu = require "cutelua.program.menu"
local support = require "spec.support"

local function env_of(t) return setmetatable(t, {__index = _G}) end

local env = env_of {
  cute = cute, L = cute.make_layout({8, 4}, {1, 8}),
  t = cute.zeros({4, 4}, cute.f32),
  mma = cute.make_mma_atom "SM80_16x8x16_F32BF16BF16F32_TN",
  k = cute.kernel("k", function(m) return m end),
  tab = {x = {1, {deep = {deeper = 1}}}, ["two words"] = {hidden = 1}},
}
env.tiled = cute.make_tiled_mma(env.mma)

-- Returns the reply to the first TAB after a text.
local function answer(text, globals, columns, rows)
  return menu.new():press(text, globals or env, columns or 80, rows or 23)
end

local function list(text)
  local found, word = complete.find(text, env)
  for _, name in ipairs(found) do
    assert.equal(word, name:sub(1, #word), name)
  end
  return table.concat(found, " "), word
end

local function has(text, ...)
  local found = " " .. list(text) .. " "
  for _, name in ipairs {...} do
    assert.truthy(found:find(" " .. name .. " ", 1, true), name .. " in"
      .. found)
  end
  return found
end

describe("tokens.unfinished", function()
  it("finds the string or comment that is open", function()
    local function is(kind, from, text)
      local at, found = tokens.unfinished(text)
      assert.same({kind, from}, {found, at}, text)
    end
    is(nil, nil, "")
    is(nil, nil, "x = 'a' .. \"b\" - 1 t[1]")
    is("string", 5, "x = 'a")
    is("string", 5, "x = \"it's")
    is("string", 1, "'")
    is("string", 1, "'a\\'")
    is(nil, nil, "'a\\''")
    is("comment", 3, "x --'a")
    is(nil, nil, "x --'a\n")
    is("string", 8, "x --'a\n'")
    is("long", 1, "[[ 'a")
    is("long", 1, "[==[ ]] ]=]")
    is(nil, nil, "[==[ ' ]==]")
    is("comment", 1, "--[[ a\nb")
    is(nil, nil, "--[[ a\nb ]]")
    is(nil, nil, "'broken\n x")
    is("string", 9, "'broken\n'x")
  end)
end)

describe("completion", function()
  it("knows globals, keywords and names of the input", function()
    assert.equal("cute", (list "cut"))
    has("f", "for", "function", "false")
    has("x = ta", "tab", "table")
    assert.equal("alpha also", (list "local function f(alpha, also) return al"))
    assert.equal("", (list "x = "))
    assert.equal("", (list "12"))
    assert.equal("cute", (list "1 ..cut"))
  end)

  it("knows fields and methods, by tables and metatables", function()
    assert.equal("make_layout make_layout_image_mask make_layout_like "
      .. "make_layout_tv", (list "cute.make_layout"))
    has("cute.", "arch", "kernel", "range", "f32", "make_tiled_mma")
    assert.equal("thread_idx", (list "x = cute.arch.thread_i"))
    has("cute.math.", "sin", "tanh")
    local methods = has("L:", "size", "coalesce")
    assert.falsy(methods:find " shape ")
    has("L.", "size", "shape", "stride")
    has("t.layout.s", "shape", "stride", "size")
    has("tiled.", "tile_size_mnk", "tv_layout_C", "get_slice", "name")
    assert.falsy(has("mma.", "shape_mnk"):find " tile_size_mnk ")
    has("k(t):", "launch", "compile", "estimate")
    assert.equal("byte", (list "('x'):by"))
    assert.equal("byte", (list "string.by"))
  end)

  it("follows constant indices and stops before calls", function()
    assert.equal("deep", (list "tab.x[2].d"))
    assert.equal("hidden", (list "tab['two words'].h"))
    assert.equal("", (list "tab.x[i].d"))
    assert.equal("", (list "nothing.here."))
    assert.equal("", (list "f().x"))
    assert.equal("", (list "f(tab).x"))
    assert.equal("", (list "t:size()."))
  end)

  it("runs no code of the user's", function()
    local asked = {}
    local function note(_, key) asked[#asked + 1] = key return {x = 1} end
    local spied = env_of {
      a = setmetatable({own = 1}, {__index = note, __pairs = note,
                                   __tostring = note, __call = note}),
      b = setmetatable({}, {__index = setmetatable({inherited = 1},
                                                   {__index = note})}),
      f = note}
    for _, text in ipairs {"a.", "a.zz.", "a:", "b.", "b.inh", "f().", "f(a).",
                           "a.own", "'a' .. a.", "f {", "f('"} do
      answer(text, spied)
    end
    assert.same({}, asked)
    assert.same({"inherited"}, (complete.find("b.", spied)))
    assert.same({"own"}, (complete.find("a.", spied)))
    local loop = {}
    loop.loop = setmetatable(loop, {__index = loop})
    assert.same({"loop"}, (complete.find("l.", env_of {l = loop})))
  end)

  it("offers the options of launches and products", function()
    has("k(t):launch {", "grid", "block", "device")
    assert.equal("grid", (list "k(t):launch {block = {1, 2}, gr"))
    has("cute.kernel('k', {", "block", "fastmath")
    has("cute.ops.gemm(t, t, {al", "alpha")
    has("cute.ops.grouped_gemm(t, t, t, {exp", "expected_m")
    has("cute.draw(L, {", "as", "file", "width")
    has("k(t):check {", "orders", "grid")
    has("k(t):estimate {", "card")
    assert.equal("", (list "print {"))
    assert.equal("", (list "k(t):launch {grid = "))
    assert.equal("id = ", (answer "k(t):launch {gr"))
  end)

  it("knows all fields of C's types", function()
    local function of(file, from, to)
      local text = support.read("core/bind/" .. file)
      local a = assert(text:find(from, 1, true), from)
      local b = assert(text:find(to, a, true), to)
      local names = {}
      for name in text:sub(a, b):gmatch 'strcmp%(k, "([%w_]+)"%)' do
        names[#names + 1] = name
      end
      for name in text:sub(a, b):gmatch '\n  {"([%w_]+)", offsetof' do
        names[#names + 1] = name
      end
      assert.is_true(#names > 0)
      return names
    end
    local function knows(kind, names)
      local known = " " .. complete.FIELDS[kind] .. " "
      for _, name in ipairs(names) do
        assert.truthy(known:find(" " .. name .. " ", 1, true),
          kind .. "." .. name)
      end
    end
    knows("layout", of("layoutlib.c", '(k, "shape")',
                       "static int layout_index"))
    knows("tensor", of("tensorlib.c", '(k, "shape")', "tensor_newindex"))
    knows("tiled", of("fields.c", "static const Field mma_layouts",
                      "int fields_index"))
    knows("buffer", of("buflib.c", '(k, "dtype")', "static int buffer_index"))
    knows("dtype", of("cutelib.c", "dtype_index", "face_push_dtype"))
    knows("tma", of("tmalib.c", "static int atom_index", "atom_tostring"))
    knows("vector", of("veclib.c", "static int vec_index", "vec_newindex"))
  end)
end)

describe("completion", function()
  it("shows names of which nothing is known in columns, as wide as the "
    .. "terminal", function()
    local function shown(names, columns)
      local t = {}
      for _, name in ipairs(names) do t[name] = print end
      return (select(2, answer("t.", env_of {t = t}, columns)))
    end
    local names = {"aa", "bbbb", "c", "dd", "e"}
    for columns, want in pairs {
      [80] = "aa    bbbb  c     dd    e\n",
      [17] = "aa    c     e\nbbbb  dd\n", [3] = "aa\nbbbb\nc\ndd\ne\n"} do
      assert.equal(want, shown(names, columns))
    end
  end)

  it("answers TAB with the common prefix, then with all descriptions",
     function()
    assert.equal("te", (answer "cu"))
    local text, shown = answer "L.sh"
    assert.equal("ape", text)
    assert.is_nil(shown)
    text, shown = answer("cute.make_tiled_copy_", env, 30)
    assert.is_nil(text)
    assert.equal("make_tiled_copy_A\nmake_tiled_copy_B\nmake_tiled_copy_C\n"
      .. "make_tiled_copy_C_atom\nmake_tiled_copy_D\nmake_tiled_copy_S\n"
      .. "make_tiled_copy_tv\n", shown)
    assert.equal("  ", (answer ""))
    assert.equal("  ", (answer "f(function()\n"))
    assert.is_nil((answer "zzz"))
    assert.is_nil((answer "-- cu"))
  end)

  it("describes each in a line: our names, and the user's", function()
    local function shown(text, globals)
      local _, out = answer(text, globals)
      for line in out:gmatch "[^\n]+" do
        assert.is_true(utf8.len(line) < 80, line)
      end
      return out
    end
    local out = shown "cute.make_tiled_copy_"
    local from = out:find("  [^ ]") -- the column in which descriptions begin
    for line in out:gmatch "[^\n]+" do
      assert.is_truthy(line:find("^[%w_]+ +%f[^ ]", 1), line)
      assert.equal(" ", line:sub(from, from))
      assert.is_truthy(line:sub(from + 2, from + 2):find "%S", line)
    end
    assert.is_truthy(shown "L:co":find("\ncomposition  A then B", 1, true)
      or shown "L:co":find "\ncomposition +%S")
    assert.is_truthy(shown "k(t):launch {s":find "\nstream +userdata or table")
    out = shown("v.", env_of {v = {n = 42, yes = true, text = "a\27[2J\nb",
      f = function(x, y, ...) return x, y, ... end, L = env.L, list = {1, 2},
      size = cute.size, k = env.k, none = print}})
    assert.equal([[
L     (8,4):(1,8)
f     function(x, y, ...)
k     a kernel
list  a table of 2
n     42
none
size  Returns the number of elements.
text  "a\x1b[2J..."
yes   true
]], out)
  end)

  it("shows pages of the terminal's height, then goes through all", function()
    local t = {}
    for i = 1, 9 do t["n" .. i] = i end
    local env_, m = env_of {t = t}, menu.new()
    local function press(text, back)
      return table.pack(m:press(text, env_, 80, 5, back))
    end
    assert.same({"n", n = 1}, press "t.")
    local function rows(from, to, last)
      local out = {}
      for i = from, to do out[#out + 1] = ("n%d  %d\n"):format(i, i) end
      return {n = 2, [2] = table.concat(out) .. (last or "")}
    end
    assert.same(rows(1, 4, "... 5 more: TAB\n"), press "t.n")
    assert.same(rows(5, 9), press "t.n")
    local text, drop = "t.n", 0
    for i = 1, 20 do
      local n = (i - 1) % 9 + 1
      assert.same({tostring(n), nil, drop, n = 3}, press(text))
      text, drop = "t.n" .. n, 1
    end
    assert.same({"1", nil, 1, n = 3}, press("t.n2", true))
    assert.same({"9", nil, 1, n = 3}, press("t.n1", true))
    -- If the text has changed, or after TAB went backwards, the menu starts a
    -- new list.
    assert.is_nil(press("t.n", true)[1])
    assert.same(rows(1, 4, "... 5 more: TAB\n"), press "t.n")
    assert.same({"9", nil, 0, n = 3}, press("t.n", true))
    assert.same({"8", nil, 1, n = 3}, press("t.n9", true))
    -- Completing an option also inserts " = ".
    m = menu.new()
    m:press("k(t):launch {f", env, 80, 20)
    assert.equal("astmath = ", (m:press("k(t):launch {f", env, 80, 20)))
    assert.same({"aults = ", nil, 10},
      {m:press("k(t):launch {fastmath = ", env, 80, 20)})
  end)

  it("takes a hundred thousand candidates in a moment #long", function()
    local t = {}
    for i = 1, 1e5 do t["n" .. i] = i end
    local start = os.clock()
    local m, spied = menu.new(), env_of {t = t}
    local _, shown = m:press("t.n", spied, 80, 20)
    assert.is_truthy(shown:find "\n... 99981 more: TAB\n$")
    for _ = 1, 100 do _, shown = m:press("t.n", spied, 80, 20) end
    assert.is_truthy(shown:find "\n... 98081 more: TAB\n$")
    assert.is_true(os.clock() - start < 5)
  end)
end)

-- Completes texts in a process of the program, because some candidates exist
-- only in the program.
local function in_program(text, ...)
  local out, err = support.run({"-", ...}, {stdin = [[
    local complete = require "cutelua.program.complete"
    cute, core, sys = require "cute", require "cute.core", require "cute.sys"
    k, t = cute.kernel("k", function() end), cute.zeros({4}, cute.f32)
    function list(text) return table.concat(complete.find(text, _G), " ") end
    menu = require "cutelua.program.menu"
    function answer(text) return menu.new():press(text, _G, 80, 23) end
  ]] .. text})
  assert.equal("", err)
  return out
end

describe("completion in strings", function()
  it("knows atoms, segment by segment #long", function()
    assert.equal("same\nsame\n", in_program [[
      local function of(names, prefix, got)
        local want = {}
        for _, name in ipairs(names) do
          if name:sub(1, #prefix) == prefix then
            local rest = name:sub(#prefix + 1)
            want[prefix .. rest:match "^[^_]*_?"] = true
          end
        end
        for _, name in ipairs(got) do
          if want[name] == nil then return print("not there:", name) end
          want[name] = false
        end
        for name, missing in pairs(want) do
          if missing then return print("missing:", name) end
        end
        return true
      end
      for kind, most in pairs {mma = 4000, copy = 4000} do
        local names, ok = {}, true
        for i = 0, most - 1 do names[i + 1] = core.atom_name(kind, i) end
        for _, prefix in ipairs {"SM61", "SM80_", "SM90_64x8x16_F32", "Univ",
            "SM75", names[#names >> 1]} do
          ok = ok and of(names, prefix, sys.atoms(kind, prefix))
        end
        print(ok and "same")
      end]])
    assert.equal("SM75_U32x1_ SM75_U32x2_ SM75_U32x4_\n"
      .. "SM80_16x8x16_F32BF16BF16F32_\n", in_program [[
      print(list "cute.make_copy_atom('SM75_U32")
      print(list 'cute.make_mma_atom "SM80_16x8x16_F32BF16')]])
  end)

  it("knows modules, types, devices and files", function()
    assert.equal("cute.pipeline\nbf16\nhost\nsim\nsm_90 sm_90a\n",
      in_program [[
      print(list "require 'cute.pipel")
      print(list "cute.zeros({4}, 'bf")
      print(list "t:to 'h")
      print(list "k(t):launch {grid = 1, device = 's")
      print(list "k(t):compile {arch = 'sm_90")]])
    local dir = support.folder()
    os.execute("mkdir " .. dir .. "/sub " .. dir .. "/.dot")
    for _, name in ipairs {"one.lua", "only", "xy"} do
      support.write(dir .. "/" .. name, "")
    end
    assert.equal("one.lua only sub/ xy\none.lua only\n.dot/\n\n0\n",
      in_program([[
      local dir = arg[1]
      print(list("f('" .. dir .. "/"))
      print(list("f('" .. dir .. "/on"))
      print(list("f('" .. dir .. "/.d"))
      print(list("f('" .. dir .. "/none/"))
      print(#sys.files(dir .. "/only"))]], dir))
    support.remove(dir)
  end)

  it("knows the names of modules that are not loaded", function()
    assert.equal("true\tnil\ntrue\n", in_program [[
      local found = list "cute.ops."
      print(#found > 0, package.loaded["cute.ops.gemm"])
      local _ = cute.ops
      print(found == list "cute.ops.")]])
  end)

  it("inserts a tab if nothing fits", function()
    assert.equal("\t\nnil\n", in_program [[
      print((answer "s = 'a b"))
      print((answer "s = [=[a b"))]])
  end)
end)

describe("completion at the prompt", function()
  local dir
  before_each(function() dir = support.folder() end)
  after_each(function() support.remove(dir) end)

  local function talk(steps, columns, width)
    table.insert(steps, 1, {"", "> "})
    table.insert(steps, {"\4", ""})
    return (support.terminal(steps, {TERM = "xterm", XDG_STATE_HOME = dir,
      COLUMNS = columns or "80", WIDTH = width, LC_ALL = "C"}))
  end

  it("completes, lists, and edits on", function()
    local out = talk {
      {"L = cute.make_lay", "make_lay"}, {"\t", "out"},
      {"({8}, {1})\n", "> "}, {"L:com", ":com"},
      {"\t", "p"}, {"\t", "> L:comp"}, {"lement(16)\n", "8\r\n> "},
      {"f = {\n", ">> "}, {"a = str", "str"}, {"\t", "ing"}, {"}\n", "> "},
      {"f.a == string\n", "true\r\n> "}}
    assert.truthy(out:find("\ncomplement   Returns the layout", 1, true), out)
    assert.truthy(out:find("2:8", 1, true), out)
  end)

  it("keeps tabs that are pasted, in strings and before code", function()
    local out = talk {{"#'cut\te'\n", "5\r\n> "}, {"x =\t7\n", "> "},
      {"x\n", "7\r\n> "}, {"('a", "'a"}, {"\t", "G"}, {"b'):byte(2)\n",
      "9\r\n> "}}
    assert.truthy(out:find("\n5\n", 1, true), out)
  end)

  it("shows lists below a line that takes several rows, width 20", function()
    local out = talk({{"local abcdefghijk = cute.make_tiled_copy_", "py_"},
      {"\t", "tv\r\n"}, {"A ~= nil\n", "> "},
      {"abcdefghijk\n", "true\r\n> "}}, "20")
    assert.truthy(out:find("make_tiled_copy_D\nmake_tiled_copy_S\n", 1, true),
      out)
    assert.truthy(out:find("\ntrue\n", 1, true), out)
  end)

  it("has lists as wide as COLUMNS, which goes before the terminal's width, "
    .. "and rows of the terminal's #long", function()
    -- `c` has Lua's own functions, which have no description in the list.
    local many = {{"c = {}\n", "> "},
      {"for x in ('A B C C_atom D S tv'):gmatch '%S+' do "
       .. "c['make_tiled_copy_' .. x] = print end\n", "> "}}
    local function listed(columns, width)
      return talk({many[1], many[2], {"c.", "c."}, {"\t", "py_"},
                   {"\t", "> c.make_tiled_copy_"}, {"\3", "^C\r\n> "}},
                  columns, width)
    end
    local three = "copy_A +make_tiled_copy_C_atom +make_tiled_copy_tv\n"
    assert.truthy(listed("71", "140"):find(three))
    assert.is_nil(listed("70", "160"):find(three))
    for _, none in ipairs {"0", "60x", ("9"):rep(30)} do
      assert.truthy(listed(none, "71"):find(three), none)
    end
    -- The input fills two rows of 20 columns. The list must end two rows below
    -- it.
    local out = talk({many[1], many[2],
      {"local abcdefghijk = c.make_tiled_copy_", "py_"},
      {"\t", "> local"}, {"\3", "^C\r\n> "}}, "71", "20")
    assert.truthy(out:find "copy_S\n\n\n\27%[K\27%[A\27%[K\27%[A", out)
  end)

  it("shows descriptions, then inserts one candidate after the other",
     function()
    local out = talk {{"cute.make_lay", "lay"}, {"\t", "out"},
      {"\t", "> cute.make_layout"}, {"\t\t", "image_mask"},
      {"\t\t", "tv"}, {"\27[Z", "like"}, {" ~= nil\n", "true\r\n> "}}
    assert.truthy(out:find("\nmake_layout             Makes the layout shape",
                           1, true), out)
  end)

  it("shows a page of the terminal at a time", function()
    local out = talk {{"cute.", "cute."}, {"\t", "TAB\r\n"},
      {"\t", "TAB\r\n"}, {"size({4})\n", "4\r\n> "}}
    local first, second = out:match "cute%.\n(.-)%.%.%. (%d+ more: TAB\n.*)"
    assert.equal(22, select(2, first:gsub("\n", "")))
    local left, text, more = second:match "^(%d+) more: TAB\n(.-)%.%.%. (%d+)"
    assert.equal(left - 22, tonumber(more))
    assert.equal(23, select(2, text:gsub("\n", "")))
  end)

  it("takes TABs that are held down for keys", function()
    local out = talk {{"cute.make_lay\t\t\t\t\t", "image_mask"},
      {" ~= nil\n", "true\r\n> "}}
    assert.truthy(out:find("\nmake_layout_tv ", 1, true), out)
  end)
end)
-- SPDX-License-Identifier: MIT
