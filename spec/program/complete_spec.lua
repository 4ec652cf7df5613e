local complete = require "cute.program.complete"
local cute = require "cute"
local lex = require "cute.lang.lex"
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

describe("lex.unfinished", function()
  it("finds the string or comment that is open", function()
    local function is(kind, from, text)
      local at, found = lex.unfinished(text)
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

  it("follows constant indices and stops where a call is needed", function()
    assert.equal("deep", (list "tab.x[2].d"))
    assert.equal("hidden", (list "tab['two words'].h"))
    assert.equal("", (list "tab.x[i].d"))
    assert.equal("", (list "nothing.here."))
    assert.equal("", (list "f().x"))
    assert.equal("", (list "f(tab).x"))
    assert.equal("", (list "t:size()."))
  end)

  it("runs nothing of the user's", function()
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
      complete.answer(text, spied, 80)
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
    assert.equal("id = ", (complete.answer("k(t):launch {gr", env, 80)))
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
    knows("tiled", of("boxlib.c", "static const Field mma_layouts",
                      "int boxlib_index"))
    knows("buffer", of("buflib.c", '(k, "dtype")', "static int buffer_index"))
    knows("dtype", of("cutelib.c", "dtype_index", "face_push_dtype"))
    knows("tma", of("tmalib.c", "static int atom_index", "atom_tostring"))
    knows("vector", of("veclib.c", "static int vec_index", "vec_newindex"))
  end)

  it("shows columns as wide as the terminal", function()
    local names = {"aa", "bbbb", "c", "dd", "e"}
    assert.equal("aa    bbbb  c     dd    e\n", complete.table(names, 80))
    assert.equal("aa    c     e\nbbbb  dd\n", complete.table(names, 17))
    assert.equal("aa\nbbbb\nc\ndd\ne\n", complete.table(names, 3))
    local many = {}
    for i = 1, 100 do many[i] = ("n%03d"):format(i) end
    local text = complete.table(many, 20)
    assert.truthy(text:find("... 40 more\n", 1, true), text)
    for line in text:gmatch "[^\n]+" do assert.is_true(#line <= 20) end
  end)

  it("answers a tab with what all share, then with all", function()
    assert.equal("te", (complete.answer("cu", env, 80)))
    local text, shown = complete.answer("L.sh", env, 80)
    assert.equal("ape", text)
    assert.is_nil(shown)
    text, shown = complete.answer("cute.make_tiled_copy_", env, 30)
    assert.is_nil(text)
    assert.equal("make_tiled_copy_A\nmake_tiled_copy_B\nmake_tiled_copy_C\n"
      .. "make_tiled_copy_C_atom\nmake_tiled_copy_D\nmake_tiled_copy_S\n"
      .. "make_tiled_copy_tv\n", shown)
    assert.equal("  ", (complete.answer("", env, 80)))
    assert.equal("  ", (complete.answer("f(function()\n", env, 80)))
    assert.is_nil((complete.answer("zzz", env, 80)))
    assert.is_nil((complete.answer("-- cu", env, 80)))
  end)
end)

-- In strings candidates come of what only the program has.
local function in_program(text, ...)
  local out, err = support.run({"-", ...}, {stdin = [[
    local complete = require "cute.program.complete"
    cute, core, sys = require "cute", require "cute.core", require "cute.sys"
    k, t = cute.kernel("k", function() end), cute.zeros({4}, cute.f32)
    function list(text) return table.concat(complete.find(text, _G), " ") end
    function answer(text) return complete.answer(text, _G, 80) end
  ]] .. text})
  assert.equal("", err)
  return out
end

describe("completion in strings", function()
  it("knows atoms, segment by segment", function()
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
      print(#found > 0, package.loaded["cute.ops"])
      local _ = cute.ops
      print(found == list "cute.ops.")]])
  end)

  it("leaves a tab where nothing fits", function()
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
      {"\t", "p"}, {"\t", "composition\r\n"}, {"lement(16)\n", "8\r\n> "},
      {"f = {\n", ">> "}, {"a = str", "str"}, {"\t", "ing"}, {"}\n", "> "},
      {"f.a == string\n", "true\r\n> "}}
    assert.truthy(out:find("complement   composition", 1, true), out)
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
    .. "and rows of the terminal's", function()
    local function listed(columns, width)
      return talk({{"cute.make_tiled_copy_", "py_"}, {"\t", "copy_"},
                   {"\3", "> "}}, columns, width)
    end
    local three = "copy_A +make_tiled_copy_C_atom +make_tiled_copy_tv\n"
    assert.truthy(listed("71", "40"):find(three))
    assert.is_nil(listed("70", "100"):find(three))
    for _, none in ipairs {"0", "60x", ("9"):rep(30)} do
      assert.truthy(listed(none, "71"):find(three), none)
    end
    -- what is typed takes two rows of 20 and the list ends two rows below
    local out = talk({{"local abcdefghijk = cute.make_tiled_copy_", "py_"},
      {"\t", "> local"}, {"\3", "> "}}, "71", "20")
    assert.truthy(out:find "copy_S\n\n\n\27%[K\27%[A\27%[K\27%[A", out)
  end)
end)
