local support = require "spec.support"

-- Calls `run` and checks that standard error is empty.
local function clean(words, opt)
  local out, err, code = support.run(words, opt)
  assert.equal("", err)
  assert.equal(0, code)
  return out
end

local dir

local function script(text, name)
  return support.write(dir .. "/" .. (name or "script.lua"), text)
end

describe("cutelua", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("runs a script with arg and ... as stock lua does", function()
    local path = script [[
      print(#arg, arg[0], arg[1], arg[2], select("#", ...), ...)
      print(arg[-1] ~= nil, arg[-2])]]
    local text = clean {path, "a b", "--x"}
    local stock = support.exec {"lua5.4", path, "a b", "--x"}
    assert.equal(stock, text)
  end)

  it("knows -e, -l, - and --", function()
    assert.equal("3\t4\n", clean {"-e", "x = 3", "-e", "print(x, 4)"})
    assert.equal("5\n", clean {"-ex = 5", "-eprint(x)"})
    assert.equal("table\n", clean {"-l", "cute.lang.source", "-e",
      "print(type(_G['cute.lang.source']))"})
    assert.equal("in\t9\n", clean({"-", "9"}, {stdin = "print('in', ...)"}))
    assert.equal("s\n", clean({"--", script "print's'"}))
  end)

  it("skips a #! line and a byte order mark, and keeps line numbers",
      function()
    local path = script "#!/usr/bin/env cutelua\nerror 'here'\n"
    local _, err = support.run {path}
    assert.truthy(err:find("script.lua:2 in main chunk", 1, true))
    assert.equal("1\n", clean {script "\xEF\xBB\xBFprint(1)"})
  end)

  it("prints its version and its options", function()
    assert.truthy(clean({"--version"}):find "^cutelua %d+%.%d+%.%d+")
    local help = clean {"--help"}
    for option in ("-e -l -i --traceback --version --help"):gmatch "%S+" do
      assert.truthy(help:find(option, 1, true), option)
    end
    for line in help:gmatch "[^\n]*" do assert.is_true(#line <= 80) end
  end)

  it("names the place inside a kernel, its traceback too", function()
    local path = script [[
      local cute = require "cute"
      local function helper(x) return cute.make_layout({4, 8}, {x, 1, 2}) end
      local k = cute.kernel("mine", function(o, n)
        if n:lt(3) then o[0] = 1 end
        if o.element_type == cute.i32 then helper(n) end
      end)
      k(cute.zeros({1}, ...), 4):trace {block = 1}]]
    local first = path:gsub("script.lua$", "first.lua")
    support.write(first, (support.read(path):gsub("%.%.%.", "cute.i32")))
    local _, err = support.run {first}
    assert.truthy(err:find("first.lua:2 in helper\n", 1, true), err)
    _, err = support.run {"--traceback", first}
    assert.truthy(err:find "first.lua:5: in function <.-:3>\n", err)
    assert.truthy(err:find("first.lua:7: in main chunk", 1, true), err)
    support.write(first, (support.read(path):gsub("%.%.%.", "cute.f32")))
    _, err = support.run {first}
    assert.truthy(err:find("first.lua:4 in kernel mine\n", 1, true), err)
  end)

  it("rejects unknown options", function()
    for _, words in ipairs {{"--bogus"}, {"-x"}, {"-e"}, {"--tracebac"}} do
      local out, err, code = support.run(words)
      assert.equal("", out)
      assert.truthy(err:find "^cutelua: ")
      assert.equal(2, code)
    end
  end)

  it("gives an exit code of 0 only for success", function()
    local function code(text)
      return select(3, support.run {script(text)})
    end
    assert.equal(0, code "return 5")
    assert.equal(1, code "error 'x'")
    assert.equal(1, code "x = = 1")
    assert.equal(7, code "os.exit(7)")
    assert.equal(1, code "os.exit(false)")
    assert.equal(1, select(3, support.run {dir .. "/none.lua"}))
    assert.equal(1, select(3, support.run {"-e", "error{}"}))
    local _, err, left = support.run {"-l", "no.such.module"}
    assert.equal(1, left)
    assert.equal("cutelua: module 'no.such.module' not found [lua]\n",
      err:match "^[^\n]*\n")
    -- the message must not name a position in cutelua's own files
    assert.is_nil(err:find("[cute.", 1, true))
  end)

  it("reports which part of a result is not a number", function()
    local path = dir .. "/nan.npy"
    assert(require "cute.npy".write(path, {dtype = "f32", shape = {4, 4},
      bytes = ("<f"):pack(1):rep(15) .. ("<f"):pack(0 / 0)}))
    local out, _, code = support.run {"scripts/gemm3stage.lua", "--device",
      "sim", "--a", path, "--n", "4"}
    assert.equal(0, code)
    assert.truthy(out:find("sum: ok (4 are NaN, as A, B or C have it)",
                           1, true), out)
  end)
end)

describe("a command of cutelua", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("has its help and its version as commands, too", function()
    assert.equal(clean {"--help"}, clean {"help"})
    assert.equal(clean {"--version"}, clean {"version"})
    assert.equal(clean {"profile", "--help"}, clean {"help", "profile"})
    local _, said, status = support.run {"version", "x"}
    assert.same({"cutelua: version: unexpected argument 'x'\n", 2},
                {said, status})
    local out, err, code = support.run {"help", "profle"}
    assert.equal("cutelua: help: there is no command 'profle': did you mean "
      .. "profile?\n", err)
    assert.equal("", out)
    assert.equal(2, code)
  end)

  it("draws layouts and atoms, in the terminal and as files #long", function()
    local out = clean {"draw", "(2,2):(2,1)"}
    assert.matches("^%(2,2%):%(2,1%)\n.*| 0 | 1 |.*| 2 | 3 |", out)
    assert.matches("^MMA_Atom SM80_16x8x16_F32BF16BF16F32_TN, 16 x 8 x 16\n",
      clean {"draw", "SM80_16x8x16_F32BF16BF16F32_TN"})
    assert.equal("", clean {"draw", "-o", dir .. "/l.svg", "(2,2):(2,1)"})
    assert.matches("^<svg", support.read(dir .. "/l.svg"))
    assert.matches("T3", clean {"draw", "--tile", "2,2", "(4,1):(1,0)"})
    for _, c in ipairs {{{"draw"}, 2, "LAYOUT is needed"},
        {{"draw", "--tile", "2", "4"}, 2, "two extents M,N expected, got '2'"},
        {{"draw", "--tile", "0,1", "4"}, 1, "extents of 1 or more"},
        {{"draw", "(4,"}, 1, "bad-notation"},
        {{"draw", "SM80_no"}, 1, "no atom 'SM80_no'"},
        {{"estimate"}, 2, "estimate: which script?"},
        {{"estimate", "--registers", "0", "s"}, 2, "number from 1 to 255"},
        {{"estimate", "--cald"}, 2, "did you mean --card?"},
        {{"estimate", "--at", "x", "s"}, 2, "whole number is needed, got 'x'"},
        {{"profile", "--kernel"}, 2, "'--kernel' needs an argument"}} do
      local _, err, code = support.run(c[1])
      assert.matches(c[3], err, 1, true)
      assert.equal(c[2], code)
    end
  end)

  it("names the command that a misspelt word is near", function()
    for word, near in pairs {chek = "check", porfile = "profile",
        drwa = "draw", Help = "help"} do
      local out, err, code = support.run {word, "x.lua"}
      assert.equal(("cutelua: there is no command or file '%s': did you mean "
        .. "`cutelua %s`?\n"):format(word, near), err)
      assert.equal("", out)
      assert.equal(2, code)
    end
    -- If a file "chek" exists, it is a script. Other words are missing files.
    support.write(dir .. "/chek", "print 'a script'")
    local out = support.exec {"bash", "-c", ("cd %s; '%s' chek"):format(dir,
      support.program:find "^/" and support.program
      or os.getenv "PWD" .. "/" .. support.program)}
    assert.equal("a script\n", out)
    local _, err, code = support.run {"xyzzy"}
    assert.equal("cutelua: cannot open xyzzy: No such file or directory [io]\n",
      err)
    assert.equal(1, code)
  end)
end)

describe("cutelua", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("suggests a cute name for a misspelt one", function()
    local function says(text)
      local _, err = support.run {"-e", "local cute = require 'cute' " .. text}
      return err:match "cutelua: ([^\n]*)", err:match "nearest: ([^\n]*)"
    end
    local function both(sentence, near, text)
      assert.same({sentence .. " [unknown-name]", near}, {says(text)})
    end
    both("cute has no 'make_layuot'", "make_layout", "cute.make_layuot({4})")
    both("cute.arch has no 'tread_idx'", "thread_idx", "cute.arch.tread_idx()")
    -- cute.kernel is in a module that is only loaded on first use.
    both("cute has no 'kernle'", "kernel",
      "cute.kernle('k')")
    both("cute has no 'xyzzy'", nil, "cute.xyzzy()")
    both("cute.pipeline has no 'PipelineCpAsnc'", "PipelineCpAsync",
      "cute.pipeline.PipelineCpAsnc {}")
    assert.equal("attempt to call a nil value (field 'make_layuot') [lua]",
      says "local t = {} t.make_layuot()")
  end)

  it("describes names that do not exist yet", function()
    local function says(text)
      return select(2, support.run {"-e", "require 'cute'." .. text})
    end
    for _, text in ipairs {"arch.tmem_xyzzy()", "arch.clc_xyzzy()",
      "pipeline.PipelineXyzzyUmma {}", "utils.TmemXyzzy()",
      "utils.sm100_xyzzy()"} do
      assert.truthy(says(text):find("specific to Blackwell is not supported",
                                    1, true), text)
    end
    for name, near in pairs {
        ["arch.cp_async_bulk_comit_group"] = "cp_async_bulk_commit_group",
        ["nvgpu.cpasync.make_tiled_tma_atm"] = "make_tiled_tma_atom",
        ["nvgpu.warpgroup.MmaBF16Op"] = "MmaF16BF16Op",
        ["utils.sm90_get_smem_stor_op"] = "sm90_get_smem_store_op"} do
      local text = says(name .. "()")
      assert.truthy(text:find("nearest: " .. near, 1, true), text)
      assert.is_nil(text:find("not there yet", 1, true), text)
    end
    assert.truthy(says "runtime.launch(1)":find("launch {grid = g", 1, true))
  end)

  it("shows a mistake with its line and neighbours", function()
    local path = script [[
local function stage(x)
  return x.a.b
end
stage {}
]]
    local _, err = support.run {path}
    assert.equal(("cutelua: attempt to index a nil value (field 'a') [lua]\n"
      .. "  %s:2 in stage\n"
      .. "   1 | local function stage(x)\n"
      .. " > 2 |   return x.a.b\n"
      .. "   3 | end\n"
      .. "      'x.a' is nil: x has no fields with names\n"):format(path), err)
    assert.is_nil(err:find "traceback")
    _, err = support.run {"--traceback", path}
    assert.truthy(err:find("stack traceback:\n\t" .. path .. ":2:", 1, true))
  end)

  it("reports a missing file in one sentence", function()
    local _, err = support.run {dir .. "/none.lua"}
    assert.equal(("cutelua: cannot open %s/none.lua: No such file or "
      .. "directory [io]\n"):format(dir), err)
    _, err = support.run {dir}
    assert.equal(("cutelua: cannot open %s: Is a directory [io]\n")
      :format(dir), err)
  end)

  it("survives errors without a message, and endless recursion #long",
     function()
    for _, text in ipairs {"error()", "error(nil)", "error{}",
        "error(setmetatable({}, {__tostring = function() return 'T' end}))",
        "local function f() return f() + 1 end f()",
        "string.rep('x', 1 << 40)"} do
      local _, err, code = support.run {"-e", text}
      assert.equal(1, code)
      assert.truthy(err:find "^cutelua: %S")
    end
  end)

  it("stops a script on Ctrl-C", function()
    local out, err, code = support.exec {"sh", "-c",
      "'" .. support.program .. "' -e 'print(1) io.stdout:flush() "
      .. "while true do end' & p=$!; sleep 1; kill -INT $p; wait $p"}
    assert.equal("1\n", out)
    -- a shell without job control starts background jobs with SIGINT ignored;
    -- the program must set its handler anyway
    assert.truthy(err:find("cutelua: interrupted", 1, true))
    assert.equal(130, code)
  end)
end)

describe("the program's modules", function()
  it("has the bytecode of the same Lua files", function()
    local out = clean {"-e", [[
      local sys = require "cute.sys"
      for _, name in ipairs(sys.modules()) do
        local main, chunk = package.searchers[2](name)
        chunk = "=" .. chunk
        assert(string.dump(main) == string.dump(load(sys.embedded(chunk),
               chunk)), name)
      end
      print "equal"]]}
    assert.equal("equal\n", out)
  end)
end)

describe("cutelua", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("is one file: no Lua files or libraries of ours are needed", function()
    local copy = dir .. "/elsewhere"
    assert(os.execute(("cp '%s' '%s'"):format(support.program, copy)))
    local out, err, code = support.exec({copy, "-e",
      "print(require'cute.lang.signature'.nearest('sem', {'sim'}))"},
      {cwd = "/", env = {LUA_PATH = "", LUA_CPATH = ""}})
    assert.equal("sim\n", out)
    assert.equal("", err)
    assert.equal(0, code)
    if os.getenv "CUTE_SANITIZED" then return end
    local libs = support.exec {"ldd", copy}
    for lib in libs:gmatch "\n?%s*(%S+)[^\n]*" do
      local known = lib:find "^linux%-vdso" or lib:find "/ld%-linux"
        or lib:find "^lib[cm]%.so" or lib:find "^libdl%.so"
        or lib:find "^libpthread%.so"
      assert.truthy(known, lib)
    end
    local f <close> = io.open(copy, "rb")
    assert.is_true(f:seek "end" < 5.5 * 1024 * 1024)
  end)

  it("loads C modules of Lua", function()
    assert.equal("userdata\n", clean {"-e", "local lfs = require 'lfs' "
      .. "local _, d = lfs.dir '.' print(type(d)) d:close()"})
  end)

  it("loads cute again, as busted does for every file", function()
    local out = clean {"-e", [[
      local function load()
        for name in pairs(package.loaded) do
          if name:find "^cute" then package.loaded[name] = nil end
        end
        collectgarbage()
        return require "cute"
      end
      local first = load()
      local layout, x = first.make_layout {4, 2}, first.ones({4}, first.f32)
      local y = first.zeros({4}, first.f32)
      local double = first.kernel("double", function(a, b)
        for i = 0, 3 do b[i] = a[i] * 2 end
      end)
      first = nil
      for i = 1, 20 do
        local cute = load()
        for k = 1, 200 do cute.make_layout({k, 3}):coalesce() end
        assert(double(x, y):launch {grid = 1, block = 1, device = "sim"}.ok)
        assert(layout == cute.make_layout {4, 2})
        print(cute.composition(layout, cute.make_layout {2}), y[3])
      end]]}
    assert.equal(("(2):(1)\t2.0\n"):rep(20), out)
  end)

  it("carries every Lua file of lua/ and kernels/ as it is, packed", function()
    local out = clean {"-e", [[
      local sys = require "cute.sys"
      local files = {}
      for path in io.popen("find lua kernels -name '*.lua'"):lines() do
        local name = path:gsub("^lua/", ""):gsub("%.lua$", "")
          :gsub("/", ".")
        local f <close> = assert(io.open(path, "rb"))
        assert(sys.embedded("=[" .. name .. "]") == f:read "a", path)
        files[#files + 1] = name:gsub("%.init$", "")
      end
      table.sort(files)
      assert(table.concat(files, " ") == table.concat(sys.modules(), " "))
      print(#files)]]}
    assert.is_true(tonumber(out) > 100)
    local text = support.read "lua/cutelua/program/main.lua"
    local program = support.read(support.program)
    assert.is_nil(program:find(text:sub(1, 200), 1, true))
  end)

  it("runs the kernel that README.md shows", function()
    local text = support.read "README.md":match "```lua\n(.-)```"
    assert.equal("reversed:\ttrue\n", clean {script(text)})
  end)

  it("notices that standard output is full", function()
    for _, words in ipairs {"-e 'print(1)'", "-e 'print(1) os.exit(0)'",
        "-e 'print(1) os.exit(true, true)'", "web --help",
        "scripts/copy_basic.lua --help"} do
      for _, where in ipairs {">/dev/full", ">&-"} do
        local _, err, code = support.exec {"sh", "-c", "'" .. support.program
          .. "' " .. words .. where}
        assert.equal("cutelua: standard output could not be written [io]\n",
                     err)
        assert.equal(1, code)
      end
    end
  end)

  it("writes no output of a script into files", function()
    local path = script [[
      local f = io.open(arg[1], "w")
      print "printed"
      io.stdout:flush()
      io.stderr:write "said"
      assert(not io.read())
      f:write "data"
      f:close()]]
    local _, err, code = support.exec {"sh", "-c", ("'%s' %s %s.out <&- >&- "
      .. "2>&-"):format(support.program, path, path)}
    assert.equal("", err)
    assert.equal(1, code)
    assert.equal("data", support.read(path .. ".out"))
    os.remove(path .. ".out")
  end)
end)

describe("cutelua", function()
  setup(function() dir = support.folder() end)
  teardown(function() support.remove(dir) end)

  it("rejects empty names, and files that are no text", function()
    for _, row in ipairs {
      {2, "-l: a module name is needed, got ''", "-l", ""},
      {2, "-l: a module name is needed, got 'x='", "-l", "x="},
      {1, "the script's name is empty: '' names no file [io]", ""},
      {1, "(command line): this is a compiled chunk, not Lua source text [lua]",
       "-e", "\27Lua"},
      {2, "explain: no output file: write -o FILE after the script's arguments",
       "explain", "x.lua", "-o", ""},
      {2, "profile: which script?", "profile"},
      {2, "'--kernel' needs an argument", "profile", "--kernel"},
      {2, "unknown option '--x'; profile --help lists them", "profile", "--x"},
      {2, "run: which script?", "run"},
      {2, "'--emit' is an option of lessons: write it after the lesson's "
       .. "name; other scripts print k(...):trace({block = n}).source",
       "--emit", "cu"},
      {2, "unknown option '-x'; run --help says more", "run", "-x"}} do
      local out, err, code = support.run(table.move(row, 3, #row, 1, {}))
      assert.equal("", out)
      assert.equal("cutelua: " .. row[2] .. "\n", err)
      assert.equal(row[1], code)
    end
  end)

  it("has the source of -e and of typed code", function()
    local text = "print(require'cute.lang.source'.line('=(command line)', 1))"
    assert.equal(text .. "\n", clean {"-e", text})
  end)
end)
-- SPDX-License-Identifier: MIT
