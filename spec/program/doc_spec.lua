-- Tests the descriptions of names that the prompt, the command line and the
-- reference show.
local browser = require "spec.browser"
local comments = require "cutelua.doc.comments"
local core = require "cute.core"
local cute = require "cute"
local doc = require "cutelua.doc"
local environment = require "cutelua.doc.environment"
local kinds = require "cute.lang.kinds"
local names = require "cutelua.doc.names"
local repl = require "cutelua.program.repl"
local source = require "cute.lang.source"
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
    assert.equal("It (a; b) is c: d.", comments.summary {text = {
      "It (a; b) is c: d. Then e."}})
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

describe("cutelua.doc", function()
  it("describes a Lua function, by name and by value", function()
    local text = doc.lookup "arch.popc"
    assert.equal([[
cute.arch.popc(value: integer|value)

  Returns the number of bits set (an i32).

  value  a 32- or 64-bit integer
]], (text:gsub("%s+[^\n]*%d$", "\n")))
    assert.equal(text, doc.lookup(cute.arch.popc))
    assert.equal(text, doc.lookup "cute.arch.popc()")
    assert.is_truthy(text:find "bits[.lua]*:%d+$")
  end)

  it("describes a C function, and a method", function()
    assert.is_truthy(doc.lookup "make_layout"
      :find("^cute%.make_layout%(shape, stride%?, layouts%.%.%.%)\n"))
    assert.is_truthy(doc.lookup "layout:coalesce"
      :find("^layout:coalesce%(profile%?%)\n\n  cute%.coalesce as a method"))
    assert.equal(doc.lookup "tensor:fill", doc.lookup "Tensor.fill")
    assert.is_truthy(doc.lookup "partition_S":find "^tiled_copy:partition_S")
  end)

  it("lists the members of modules and objects", function()
    local text = doc.lookup(cute.arch)
    assert.is_truthy(text:find "\n  lane_idx%(%) +Returns the lane of this")
    assert.equal(text, doc.lookup "cute.arch")
    text = doc.lookup(cute.make_layout(8))
    assert.is_truthy(text:find "^layout\n")
    assert.is_truthy(text:find "\n  coalesce%(profile%?%) ")
    assert.is_truthy(doc.lookup "cute":find "\n  make_layout%(")
  end)

  it("aligns the descriptions of a module's names", function()
    for _, name in ipairs {"cute", "cute.arch", "cute.ops"} do
      local text, rows = doc.lookup(name), 0
      for line in text:gmatch "\n(  %S[^\n]*)" do
        assert.is_true(#line <= 79, line)
        -- A description begins in column 35, after a name and its parameters.
        local usage = line:match "^  [%a_][%w_]*%b()%s+()%u"
          or line:match "^  [%a_][%w_]*%s%s+()%u"
        if usage then
          rows = rows + 1
          assert.equal(35, usage, line)
        end
      end
      assert.is_true(rows > 9, name)
      assert.falsy(text:find("%.%.%. %u"), name)
    end
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

  it("is available at the prompt #long", function()
    assert.equal("make_layout", doc.asked "?make_layout")
    assert.equal("cute.arch", doc.asked " cute.arch ? ")
    assert.equal("cute", doc.asked "?")
    assert.falsy(doc.asked "f 'what?'")
    assert.falsy(doc.asked "x = '?'")
    local out = support.run({}, {stdin = "?popc\nk = cute.arch.popc\nk ?\n"
      .. "help(cute.arch.popc)\nhelp 'arch.popc'\n?popcc\n"})
    local _, n = out:gsub("the number of bits set", "")
    assert.equal(4, n)
    assert.is_truthy(out:find "no public name 'popcc'; nearest: cute.arch.popc")
  end)

  it("is available on the command line #long", function()
    local out, _, code = support.run {"doc", "arch.popc", "size"}
    assert.equal(doc.lookup "arch.popc":match "^.-\n" , out:match "^.-\n")
    assert.is_truthy(out:find("\n\ncute.size(x, modes...)\n", 1, true))
    assert.equal(0, code)
    local err
    out, err, code = support.run {"doc", "make_layot"}
    assert.equal("", out)
    assert.is_truthy(err:find "^cutelua doc: no public name 'make_layot'")
    assert.equal(1, code)
    -- `cutelua doc` prints the same as cute.doc, except for file positions.
    for _, name in ipairs {"cute", "cute.arch", "cute.debug", "cute.nvgpu",
                           "WARP_SIZE", "tiled_mma", "cute.utils"} do
      local want = doc.lookup(name):gsub("\n  [^\n]*:%d+$", "")
      assert.equal(want, (support.run {"doc", name}
        :gsub("\n  [^\n]*:%d+\n$", "")))
    end
    assert.is_truthy(support.run {"doc", "--help"}:find "^usage: cutelua doc")
    assert.equal(2, select(3, support.run {"doc", "--what"}))
  end)
end)

describe("a word that is no public name", function()
  -- Returns the program's output for a question, its exit code, and its errors.
  local function ask(question)
    local out, err, code = support.run {"doc", question}
    return out, code, err
  end
  local function has(text, ...)
    for _, want in ipairs {...} do
      assert.is_truthy(text:find(want, 1, true), want .. " in " .. text)
    end
  end

  it("is looked for in names, atoms, variables and documents #long", function()
    local out, code = ask "ldmatrix"
    assert.equal(0, code)
    has(out, "What has 'ldmatrix':\n\nNames\n",
        "  cute.nvgpu.warp.LdMatrix8x8x16bOp  Makes the operation ldmatrix ",
        "\nDocuments: ", "Vectors and fragments\n")
    has(ask "cache_mb", "\nEnvironment\n  CUTELUA_CACHE_MB  Size limit in MiB")
    has(ask "TMA", "\nAtoms\n  SM90_TMA_LOAD ", "cute.make_copy_atom",
        "[misaligned]", "Boxes by TMA (sm_90)\n", " more\n")
    has(ask "sm80 16x8x16", "  SM80_16x8x16_  cute.make_mma_atom\n")
    for line in ask "shared memory":gmatch "[^\n]+" do
      assert.is_true(utf8.len(line) <= 79, line)
    end
  end)

  it("is found at the start of words, also in PipelineTma #long",
     function()
    local out = ask "tracing"
    assert.is_nil((ask "acing"):find "trac")
    has(out, "[needs-static]")
    has(ask "Stages PipelineTma", "PipelineTmaAsync ")
    has(ask "tma async", "PipelineTmaAsync ")
  end)

  it("is a kind of errors: what it is, what to do, its section #long",
     function()
    local out = ask "race"
    has(out, "[race]: two warps access", "put sync_threads() between",
        "Mended:", "See also [block-race], [warp-race].\n")
    assert.equal(out, (ask "[race]"))
    has(ask "bad-notation", "[bad-notation]: a string is not CuTe notation\n"
        .. "write shapes as (2,(4,8))")
    local text = support.read "docs/errors.md"
    for _, list in ipairs {core.error_kinds, core.report_kinds} do
      for kind in pairs(list) do
        local found = doc.find("[" .. kind .. "]")
        has(found, ("[%s]: %s"):format(kind, (kinds.FAULTS[kind]
          or kinds.ERRORS[kind]).about))
        assert.is_truthy(text:find("\n###? " .. kind:gsub("%-", "%%-") .. "\n"),
                         kind)
      end
    end
  end)

  it("is a document, a section, or a place #long", function()
    has(ask "docs/ops.md", "docs/ops.md:1 Operations\n", " gemm\n")
    local place = ask "docs/files.md":match "(docs/files.md:%d+) Libraries\n"
    local section = support.read "docs/files.md":match
      "\n(## Libraries\n.-)\n+## "
    assert.equal(("%s\n\n%s\n"):format(place, section), (ask(place)))
    assert.equal(ask(place), (ask "libraries"))
  end)

  it("gets the nearest one if nothing matches #long", function()
    local out, code, err = ask "ldmatrx"
    assert.same({"", 1}, {out, code})
    has(err, "no public name 'ldmatrx'; a word that is known: ldmatrix\n")
    has(select(3, ask "qqqqqqq"), "no public name 'qqqqqqq'\n")
  end)

  it("may be anything: long, empty of words, of patterns, with escapes #long",
     function()
    local out, err, code = support.run {"doc", ("a"):rep(1e5), "%", "[",
      "%f[", "\27[2J", "race\27]0;x\7", "\255\254", "^$", "a\nb", "docs/",
      "[]"}
    assert.equal(1, code)
    assert.is_nil((out .. err):find "[%z\1-\9\11-\31\127]")
    assert.is_nil(err:find("attempt", 1, true))
  end)

  it("works at the prompt, too, with several words #long", function()
    local out = support.run({}, {stdin = "?shared memory\n?race\n?\n"
      .. "race = 5\n? race\n?ldmatrx [[\nhelp 'deadlock'\nrace?\n"})
    has(out, "What has 'shared memory':", "[race]: two", "  make_layout(",
        "no public name 'ldmatrx [['", "[deadlock]: no warp can go on")
    assert.equal(3, select(2, out:gsub("%[race%]: two", "")))
  end)
end)

-- Returns the names of a signature's parameters; a rest parameter is "...".
local function parameters(signature)
  local set = {}
  for param in signature:match "%b()$":gmatch "[^(),]+" do
    local name, dots = param:match "^%s*([%w_]*)(%.*)"
    set[dots ~= "" and "..." or name] = true
  end
  return set
end

-- Runs the lines of an example like inputs at the prompt. In a line
-- `EXPR --> TEXT`, the value of EXPR must print as TEXT. Lines of only
-- `--> TEXT` continue the text.
local function run(name, lines)
  local env = setmetatable({cute = cute, _ = cute._, X = cute.X},
    {__index = _G})
  local waiting, want, at = {}, nil, 0
  local function chunk(text)
    local chunkname = "=example of " .. name
    source.add(chunkname, text)
    return load(text, chunkname, "t", env)
  end
  local function execute()
    if #waiting == 0 then return end
    local text = table.concat(waiting, "\n")
    if not want then
      assert(chunk(repl.globalize(text)))()
    else
      -- Finds where the last expression begins; all lines before it are
      -- statements.
      for first = 1, #waiting do
        local f = chunk("return " .. table.concat(waiting, "\n", first))
        local before = chunk(repl.globalize(
          table.concat(waiting, "\n", 1, first - 1)))
        if f and before then
          before()
          local got = table.pack(f())
          for i = 1, got.n do got[i] = tostring(got[i]) end
          assert.equal(table.concat(want, "\n"), table.concat(got, ", "),
            name .. ": " .. text)
          waiting, want = {}, nil
          return
        end
      end
      error(name .. ": no expression\n" .. text)
    end
    waiting, want = {}, nil
  end
  for _, line in ipairs(lines) do
    at = at + 1
    local code, text = line:match "^(.-)%s*%-%-> ?(.*)$"
    if want and code ~= "" then execute() end
    if text then
      want = want or {}
      want[#want + 1] = text
      if code ~= "" then waiting[#waiting + 1] = code end
    else
      waiting[#waiting + 1] = line
    end
  end
  execute()
end

describe("public names", function()
  local all = names.all()

  it("have a comment each, a topic, and parameters as they are called",
  function()
    local wrong = {}
    local function complain(item, what)
      wrong[#wrong + 1] = ("%s %s (%s)"):format(item.name, what,
        doc.place(item) or "nowhere")
    end
    for _, item in ipairs(all) do
      local summary = item.doc and comments.summary(item.doc) or ""
      if #summary < 4 then complain(item, "has no comment") end
      if not item.topic and item.name ~= "cute" then
        complain(item, "has no topic")
      end
      if item.kind == "function" or item.kind == "method" then
        if not summary:find "[.?!]$" then complain(item, "has no sentence") end
        if item.signature and item.doc then
          local known = parameters(item.signature)
          for _, p in ipairs(item.doc.params) do
            if not known[p.name] then complain(item, "has no " .. p.name) end
          end
        end
      end
    end
    assert.equal("", table.concat(wrong, "\n"))
    assert.is_true(#all > 1200, #all)
  end)

  it("are all that there are", function()
    local known = {}
    for _, item in ipairs(all) do known[item.name] = item end
    for name in pairs(cute) do
      assert.is_truthy(name:find "^__" or known["cute." .. name], name)
    end
    for _, module in ipairs {"arch", "gpu", "ops", "pipeline", "testing",
                             "utils", "nvgpu"} do
      for name in pairs(cute[module]) do
        local full = ("cute.%s.%s"):format(module, name)
        assert.is_truthy(known[full], full)
      end
    end
    for key, mt in pairs(debug.getregistry()) do
      local class = type(key) == "string" and type(mt) == "table"
        and key:match "^cute%.(layout|tensor|vector|buffer|gpu)$"
      for name, f in next, class and mt or {} do
        if type(f) == "function" and core.signature(f) then
          assert.is_truthy(known[class .. ":" .. name], name)
        end
      end
    end
    -- The documented constants must be those of the table.
    for _, item in ipairs(all) do
      if item.kind == "constants" then
        local told = {}
        for _, field in ipairs(item.doc.fields) do told[field.name] = true end
        for name, v in pairs(item.value) do
          assert.is_truthy(told[name] or type(v) == "function"
            or name:find "^__", item.name .. "." .. name)
          told[name] = nil
        end
        assert.is_nil((next(told)), item.name)
      end
    end
  end)

  it("name kinds of errors that there are", function()
    for _, item in ipairs(all) do
      for _, text in ipairs(item.doc.text) do
        for kind in text:gmatch "Raises %[([%a-]+)%]" do
          assert.is_truthy(core.error_kinds[kind], item.name .. " " .. kind)
        end
      end
    end
  end)

  it("are found by their name and by their last part", function()
    for i = 1, #all, 7 do
      local name = all[i].name
      assert.is_truthy(names.find(name), name)
    end
    assert.equal("cute.pipeline.PipelineAsync",
      names.find "PipelineAsync" and names.find "pipeline.PipelineAsync".name)
  end)

  it("have an example after the text that introduces it", function()
    local text = require "cutelua.doc".text(
      names.find "tcgen05.MmaMXF8Op")
    assert.truthy(text:find("takes them with the operands:\n\n    cute.gemm(",
                            1, true), text)
    for _, item in ipairs(names.all()) do
      local page = require "cutelua.doc".text(item)
      assert.is_nil(page:find ":\n\n  [%w_?]+  +%S", item.name)
    end
  end)

  it("are found by their last parts", function()
    for name, full in pairs {
      ["tcgen05.MmaF16BF16Op"] = "cute.nvgpu.tcgen05.MmaF16BF16Op",
      ["cpasync.tma_partition"] = "cute.nvgpu.cpasync.tma_partition",
      ["nvgpu.cpasync.tma_partition"] = "cute.nvgpu.cpasync.tma_partition",
      ["thr:partition_A"] = "tiled_mma:partition_A",
    } do
      local item = names.find(name)
      assert.equal(full, item and item.name)
    end
    -- Two classes have this method, and the last name does not exist.
    for _, name in ipairs {"tiled:get_slice", "cute.tcgen05.commit"} do
      assert.is_nil((names.find(name)))
    end
  end)
end)

describe("lua/cute/meta/parts.lua", function()
  it("leads editors to all that Lua makes of cute", function()
    local text = support.read "lua/cute/meta/parts.lua"
    local n = 0
    for _, item in ipairs(names.all()) do
      local name = item.name:match "^cute%.([%w_]+)$"
      if name and item.kind == "function" and item.chunk
        and not item.chunk:find "cute.meta" then
        n = n + 1
        assert.is_truthy(text:find("cute." .. name .. " = require ", 1, true),
          name)
      end
    end
    for module, name in text:gmatch "require \"([%w.]+)\"%.([%w_]+)" do
      assert.is_truthy(require(module)[name], name)
    end
    assert.is_true(n > 50, n)
  end)
end)

describe("examples of comments", function()
  local count, shown = 0, {}
  for _, item in ipairs(names.all()) do
    local text = table.concat(item.doc and item.doc.example or {}, "\n")
    if item.kind ~= "module" and text:find("-->", 1, true)
      and not shown[text] then
      shown[text], count = true, count + 1
    end
  end

  it("give the results they show", function()
    local done = {}
    for _, item in ipairs(names.all()) do
      local lines = item.doc.example
      local text = table.concat(lines, "\n")
      if item.kind ~= "module" and text:find("-->", 1, true)
        and not done[text] then
        done[text] = true
        run(item.name, lines)
      end
    end
    assert.is_true(count > 150, count)
  end)
end)

describe("variables of the environment", function()
  it("are in the list when something reads them, and read when they are in it",
  function()
    local read, known = {}, {}
    local p <close> = io.popen("grep -rhoE 'getenv ?\\(?\\s*\"[A-Z_]+\"|"
      .. "env(_folder)?\\(\"[A-Z_]+\"|CUTELUA_[A-Z_]+|CUTE_(BUILD|OUT|KIT|"
      .. "COUNTS|SUMMARY|SANITIZED)|NO_COLOR|FUZZ_SECONDS' core lua "
      .. "kernels scripts tools spec ci Makefile --include=*.c --include=*.h "
      .. "--include=*.lua --include=*.sh --include=Makefile "
      .. "--exclude=environment.lua --exclude=doc_spec.lua "
      .. "--exclude-dir=library")  -- these are constants of cutelua.h
    for line in p:lines() do
      local name = line:match "([A-Z][A-Z_]+)\"?$"
      read[name] = true
    end
    assert.is_true(read.CUTELUA_CACHE and read.NO_COLOR and read.TERM)
    for _, row in ipairs(environment) do
      assert.is_nil(known[row[1]], row[1] .. " is there twice")
      known[row[1]] = true
      assert.is_true(#row[2] > 10 and row[2]:sub(-1) == ".", row[1])
    end
    for name in pairs(read) do
      assert.is_truthy(known[name] or name:find "^FAKE_"
        or name == "CC" or name == "CXX" or name == "PWD"
        or name == "CUTELUA_VERSION", name)  -- in cutelua.h
    end
    for name in pairs(known) do
      assert.is_truthy(read[name] or name:find "^LUA_" or name:find "_PATH$"
        or name == "VIRTUAL_ENV" or name == "CUTELUA", name)
    end
  end)
end)

describe("make docs", function()
  it("writes all names, atoms, commands and variables #long", function()
    if os.getenv "CUTE_SANITIZED" then return end
    local folder = support.folder()
    local out, err, code = support.exec {support.program,
      "tools/reference.lua", folder, support.program}
    assert.same({"", "", 0}, {out, err, code})
    local page = support.read(folder .. "/reference.html")
    local index = support.read(folder .. "/reference.md")
    local list <close> = io.popen("cat " .. folder .. "/reference/*.md")
    local text = list:read "a"
    for _, item in ipairs(names.all()) do
      if not item.name:find "^cute%.math%." and item.name ~= "cute" then
        assert.is_truthy(text:find("### `" .. item.name, 1, true), item.name)
        assert.is_truthy(page:find("<article id=\"" .. item.name
          :gsub("[^%w_.]", "-") .. "\">", 1, true), item.name)
      end
    end
    for _, name in ipairs {"CUTELUA_CACHE_MB", "SM80_16x8x16_F32BF16BF16F32_TN",
                           "SM75_U32x4_LDSM_N", "cutelua check"} do
      assert.is_truthy(text:find(name, 1, true), name)
      assert.is_truthy(page:find(name, 1, true), name)
    end
    assert.is_truthy(index:find("[Layouts: algebra](reference/layouts.md)", 1,
                                true))
    assert.is_nil(page:find "https?://")
    assert.is_true(#page < 2 << 20, #page)
    if browser.find() then
      local found = browser.visit {
        {html = page, width = 390, script = [[
          var box = $("#search"), all = count("article");
          box.value = "logical_divide tile";
          box.oninput();
          var hits = texts("article:not(.off) h3");
          return [all, hits.join(" "), $("#count").textContent,
                  document.documentElement.scrollWidth <= 390];]]}}
      assert.same({}, found[1].errors)
      assert.is_true(found[1].value[1] > 1200)
      assert.is_truthy(found[1].value[2]:find "logical_divide%(layout, tiler%)")
      assert.is_truthy(found[1].value[3]:find "^%d+ found$")
      assert.is_true(found[1].value[4])
    end
    support.remove(folder)
  end)
end)

describe("options of commands", function()
  -- Returns a table of the options that a source file reads, by name.
  local function taken(path)
    local set = {}
    for option in support.read(path):gmatch "\"(%-%-[%l-]+)\"" do
      set[option] = true
    end
    return set
  end

  it("are listed by --help", function()
    for command, path in pairs {[""] = "program/main", doc = "doc/init",
        check = "check/main", debug = "debug/prompt", explain = "page/main",
        profile = "profile/main", estimate = "profile/estimates",
        draw = "draw/main",
        ["tune gemm"] = "tune/init"} do
      local words = {}
      for word in command:gmatch "%S+" do words[#words + 1] = word end
      words[#words + 1] = "--help"
      local help, _, code = support.run(words)
      assert.equal(0, code)
      assert.is_truthy(help:find("^usage: cutelua " .. command), command)
      local n = 0
      for option in pairs(taken("lua/cutelua/" .. path .. ".lua")) do
        n = n + 1
        assert.is_truthy(help:find(option, 1, true), command .. option)
      end
      assert.is_true(n >= 1, command)
    end
    local help = support.run {"--help"}
    for _, command in ipairs {"tune", "run", "debug", "check", "profile",
        "estimate", "draw", "explain", "doc", "help", "version"} do
      assert.is_truthy(help:find("\n  " .. command .. " ", 1, true), command)
    end
  end)
end)
-- SPDX-License-Identifier: MIT
