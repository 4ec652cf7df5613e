-- check.lua: checks those house rules that can be checked by reading the files.
-- It prints one line per rule, then "counts PASSED FAILED".

local passed, failed = 0, 0

local function list(pattern)
  local out = {}
  local p <close> = io.popen("ls " .. pattern .. " 2>/dev/null")
  for path in p:lines() do out[#out + 1] = path end
  return out
end

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

-- Defines a rule. check(path, text, complain) is called for each of the files;
-- it calls complain(line, what) for each violation.
local function rule(name, files, check)
  local complaints = {}
  for _, path in ipairs(files) do
    check(path, read(path), function(line, what)
      complaints[#complaints + 1] = ("    %s:%d: %s"):format(path, line, what)
    end)
  end
  if #complaints == 0 then
    passed = passed + 1
    print("ok      " .. name)
  else
    failed = failed + 1
    print("FAILED  " .. name)
    print(table.concat(complaints, "\n", 1, math.min(#complaints, 40)))
  end
end

local function each_line(text, f)
  local n = 0
  for line in (text:gsub("\n$", "") .. "\n"):gmatch "(.-)\n" do
    n = n + 1
    f(line, n)
  end
  return n
end

local C = list "core/*/*.c core/*/*.h core/*/*.cu"
local LIBRARY = "lua/*/*.lua lua/*/*/*.lua lua/*/*/*/*.lua "
  .. "kernels/*.lua kernels/*/*.lua "
local LUA = list(LIBRARY
  .. "scripts/*.lua spec/*.lua spec/*/*.lua spec/*/*/*.lua "
  .. "tools/*.lua")
local CODE = list("examples/*/*.[chlp]* examples/tasks/*/*.lua "
  .. "findings/*.sh")
table.move(C, 1, #C, #CODE + 1, CODE)
table.move(LUA, 1, #LUA, #CODE + 1, CODE)

rule("lines of at most 80 columns", CODE, function(path, text, complain)
  each_line(text, function(line, n)
    -- docs/errors.md leaves out these marks, so they do not count for the
    -- length.
    if path:find "^spec/faults/" then
      line = line:gsub("  %-%- wrong$", ""):gsub("%-%- mend: ", "", 1)
    end
    local width = utf8.len(line) or #line
    if width > 80 then complain(n, width .. " columns") end
  end)
end)

rule("no tabs, no blanks at line ends", CODE, function(_, text, complain)
  each_line(text, function(line, n)
    if line:find "\t" then complain(n, "a tab") end
    if line:find "%s$" then complain(n, "blanks at the end") end
  end)
end)

rule("the last line of sources is their SPDX license", CODE,
     function(path, text, complain)
  if path:find "^spec/faults/" or path:find "^kernels/tuned/"
    or path:find "%.cu$" then return end
  if not text:find "SPDX%-License%-Identifier: MIT[^\n]*\n$" then
    complain(1, "no SPDX-License-Identifier")
  end
end)

-- tools/setup.sh defines a shell function `test` that always succeeds. Shell
-- scripts must therefore use [ ] instead of the command `test`.
rule("shell scripts ask by [ ], not by `test`", list "tools/*.sh .ci/run",
     function(_, text, complain)
  each_line(text, function(line, n)
    if line:find "%f[%w]test %-%a " then complain(n, "`test`") end
  end)
end)

-- core/sim only executes decoded programs. The decoder, the arithmetic and the
-- reports are in other folders of core/.
do
  local total = 0
  rule("core/sim of at most 11000 lines", list "core/sim/*.[ch]",
       function(_, text, complain)
    total = total + each_line(text, function() end)
    if total > 11000 then complain(1, total .. " lines up to this file") end
  end)
end

-- The simulator's C code reports only facts. kinds.lua has the sentences. The
-- limits in SHORTER keep such files short.
local SHORTER = {["core/sim/report.c"] = 350}

rule("files of at most 1500 lines", CODE, function(path, text, complain)
  local n, most = each_line(text, function() end), SHORTER[path] or 1500
  if n > most then complain(n, ("%d lines, at most %d"):format(n, most)) end
end)

do
  -- one file per call, because luac5.4 with several files ends in a double free
  local long, count = {}, 0
  local p <close> = io.popen
    "ls spec/*.lua spec/*/*.lua | xargs -n 1 luac5.4 -l -p"
  for line in p:lines() do
    local path, from, to = line:match "^function <([^:]+):(%d+),(%d+)>"
    if path then
      local n = to - from + 1
      count = count + 1
      if n > 120 then long[path] = {from, n .. " lines"} end
    end
  end
  rule("functions of at most 120 lines in specs",
       list "spec/*.lua spec/*/*.lua", function(path, _, complain)
    if count == 0 then complain(1, "luac5.4 lists no functions") end
    if long[path] then complain(table.unpack(long[path])) end
  end)
end

rule("C begins with a sentence that says what it is", list
  "core/*/*.c core/*/*.h spec/*/*.c", function(_, text, complain)
    local first = text:match "^// ([^\n]*\n[^\n]*\n[^\n]*)"
    if not first or not first:find "^[%w\"'`][^#]*[.:?]" then
      complain(1, "no sentence")
    end
  end)

-- Returns C code without comments, directives and strings. Line numbers do not
-- change.
local function bare(text)
  text = ("\n" .. text):gsub("/%*.-%*/", function(s)
    return s:gsub("[^\n]", "")
  end)
  text = text:gsub("\\\n", "\\\0"):gsub("\n[ \t]*#[^\n]*", function(s)
    return "\n" .. s:sub(2):gsub("[^%z]", ""):gsub("%z", "\n")
  end)
  text = text:gsub("\\%z", "\\\n"):gsub('"[^"\n]*"', '""')
  return (text:gsub("//[^\n]*", ""):sub(2))
end

local function line_of(text, at)
  local _, n = text:sub(1, at):gsub("\n", "")
  return n + 1
end

-- A check of core/watch has records that only functions of its own file may
-- read (core/watch/own.h).
do
  local owner = {}
  rule("the state of a listener is used in one file", list "core/*/*.[ch]",
       function(path, text, complain)
    local base = path:match "^(.*)%.[ch]$"
    if base == "core/watch/own" then return end
    for at, name in bare(text):gmatch "()%f[%w](OWN_[A-Z_]+)" do
      owner[name] = owner[name] or base
      if owner[name] ~= base then
        complain(line_of(text, at), ("%s is also used in %s"):format(name,
          owner[name]))
      end
    end
  end)
end

-- Structs that must have fewer than the usual 40 fields, with their limits.
-- Some of their fields were moved into nested structs.
local FIELDS = {SimWarp = 35, SimCluster = 35}

-- Counts the declarators in a struct's body. A nested struct counts as one.
local function count_fields(body)
  local n = 0
  body = body:gsub("%b{}", ""):gsub("%b()", ""):gsub("%b[]", "")
  for declaration in body:gmatch "([^;]+);" do
    n = n + 1 + select(2, declaration:gsub(",", ""))
  end
  return n
end

rule("structs of at most 40 fields", list "core/*/*.c core/*/*.h",
     function(_, text, complain)
  text = bare(text)
  for at, name, body in text:gmatch "()struct%s*([%w_]*)%s*(%b{})" do
    local n = count_fields(body:sub(2, -2))
    if n > (FIELDS[name] or 40) then
      complain(line_of(text, at), ("%s has %d fields"):format(name, n))
    end
  end
end)

rule("one declaration a line in headers", list "core/*/*.h",
     function(_, text, complain)
  each_line(bare(text), function(line, n)
    local second = line:gsub("%b{}", ""):gsub("%b()", "()")
      :match ";%s*([%a_][%w_]*[%s%*]+[%a_][%w_]*)"
    if second and not second:find "^return%s" then complain(n, second) end
  end)
end)

-- Files that may have conditions that test three or more operations by name,
-- with the number of these conditions. In other files, a column of ops.h must
-- replace such a condition.
local LISTS = {["core/ir/fidelity.c"] = 1, ["core/ir/opaque.c"] = 1,
  ["core/ir/verify.c"] = 1, ["core/timing/cost_model.c"] = 1,
  ["core/watch/meant.c"] = 2, ["core/watch/deadlock.c"] = 1,
  ["core/decode/try_wait.c"] = 1, ["core/explore/interleave.c"] = 1}

local function count_operations(statement)
  local n, seen = 0, {}
  for op in statement:gmatch "[!=]=%s*(OP_[A-Z0-9]+)" do
    n, seen[op] = seen[op] and n or n + 1, true
  end
  return n
end

local listed = 0
for _, n in pairs(LISTS) do listed = listed + n end
assert(listed <= 10, "more than 10 conditions list operations")

rule("columns of ops.h, not lists of operations", list "core/*/*.[ch]",
     function(path, text, complain)
  local left = LISTS[path] or 0
  for at, statement in bare(text):gmatch "()([^;{}]+)" do
    if count_operations(statement) >= 3 then
      left = left - 1
      if left < 0 then
        complain(line_of(text, at + #statement:match "^%s*"),
                 "a condition names three or more operations")
      end
    end
  end
end)

-- Prefixes of enumerators that code compares or subtracts because their order
-- matters. Other enumerators that code compares or subtracts are sizes.
local ORDERED = {SR = 1, AT = 1, FE = 1, MF = 1, IN = 1, SEM = 1, SCOPE = 1,
  WHO = 1, TMF = 1, MK = 1, WATCH = 1, AGENT = 1, OP = 1}
local asserted = {}
for _, path in ipairs(C) do
  for args in read(path):gmatch "CONSECUTIVE(%b())" do
    for name in args:gmatch "[A-Z]+_[A-Z0-9_]+" do asserted[name] = true end
  end
end

rule("assertions on the order of enumerators", list "core/*/*.[ch]",
     function(_, text, complain)
  text = bare(text)
  for _, pattern in ipairs {"()[<>]=? (([A-Z]+)_[A-Z0-9_]+)",
                            "() %- (([A-Z]+)_[A-Z0-9_]+)"} do
    for at, name, prefix in text:gmatch(pattern) do
      local sized = name:find "_COUNT$" or text:sub(at - 1, at - 1) == "<"
        or text:sub(at - 1, at - 1) == ">"
      if ORDERED[prefix] and not sized and not asserted[name] then
        complain(line_of(text, at), name .. " is in no CONSECUTIVE()")
      end
    end
  end
end)

-- The rooms (folders) of core/, lowest first, as docs/hacking.md describes
-- them. For each room, a list of the other rooms whose headers it may include.
-- All of these are lower.
local ROOMS = {
  base = {},
  atoms = {"base"},
  ir = {"base", "atoms"},
  lint = {"base", "ir"},
  layout = {"base", "ir"},
  hardware = {"base"},
  tensor = {"base", "ir", "atoms", "layout"},
  emit = {"base", "ir", "atoms"},
  decode = {"base", "ir", "atoms", "layout", "hardware"},
  faults = {"base", "ir", "decode"},
  sim = {"base", "ir", "atoms", "hardware", "decode", "faults"},
  watch = {"base", "ir", "lint", "atoms", "layout", "hardware", "decode",
           "faults", "sim"},
  explore = {"base", "ir", "atoms", "decode", "faults", "sim", "watch"},
  timing = {"base", "ir", "atoms", "decode", "faults", "sim"},
  gpu = {"base"},
  ptx = {"base", "ir", "atoms"},
  bind = {"base", "ir", "lint", "atoms", "layout", "hardware", "tensor", "emit",
          "decode", "faults", "sim", "watch", "explore", "timing", "gpu",
          "ptx"},
  program = {"base", "atoms", "bind"},
  library = {"base", "bind", "program"},
  capture = {"gpu"},
}

rule("rooms include only what lies below them", C, function(path, text,
                                                            complain)
  local room = path:match "^core/([^/]+)/"
  if not ROOMS[room] then return complain(1, "no room " .. room) end
  local may = {[room] = true}
  for _, other in ipairs(ROOMS[room]) do may[other] = true end
  each_line(text, function(line, n)
    local name = line:match '^#include%s*"([^"]+)"'
    local other = name and name:match "^([^/]+)/"
    if name and not other then
      complain(n, name .. " without its room")
    elseif name and not may[other] then
      complain(n, ("%s: %s may not include %s"):format(name, room, other))
    end
  end)
end)

-- The rooms (folders) of lua/. For each room, a list of the other rooms whose
-- modules it may require. A file at the top of lua/cute is in the room `cute`.
-- The language (lua/cute) names the workshop (`cutelua`) only in
-- lua/cute/lang/signature.lua.
local LANGUAGE = {"lang", "arch", "cute", "nvgpu", "ops", "pipe"}
local LUA_ROOMS = {
  lang = {"arch", "cute"},
  arch = {"lang", "cute"},
  pipe = {"lang", "arch"},
  nvgpu = {"lang", "cute"},
  cute = {"lang", "arch", "nvgpu", "pipe", "ops"},
  ops = {"lang", "cute", "kernels"},
  kernels = {"lang", "cute"},
  -- the workshop: all its rooms may require the language
  cutelua = {},
  text = {},
  bench = {"check", "program", "text"},
  analyses = {"check", "profile", "text"},
  bundle = {"check", "text"},
  check = {"analyses", "bench", "findings", "profile", "program", "text"},
  ci = {"findings", "lsp", "mcp", "program", "text"},
  debug = {"program"},
  doc = {"text"},
  draw = {"analyses", "program", "text"},
  findings = {"text"},
  learn = {"draw", "program", "text"},
  lsp = {"doc", "findings", "mcp", "program", "text"},
  mcp = {"doc", "findings", "learn", "program", "ptx", "text"},
  page = {"debug", "draw", "findings", "profile", "program", "text"},
  profile = {"bench", "draw", "findings", "program", "text"},
  program = {"cache", "ci", "debug", "doc", "findings", "lsp", "mcp", "page",
             "ptx", "text"},
  ptx = {"program", "text"},
  cache = {"program", "text", "tune"},
  task = {"bench", "check", "findings", "mcp", "profile", "program", "text"},
  tune = {"bench", "program", "text", "kernels"},
  workshop = {"doc", "draw", "learn", "page", "program", "text"},
}

-- Returns the room of a module, given the module's name, and its package.
local function lua_room(module)
  local package = module:match "^[^.]+"
  if package == "kernels" then return package, package end
  local part = module:match "^cute%a*%.([^.]+)%."
    or module:match "^cute%a*%.([^.]+)$"
  return LUA_ROOMS[part] and part or package, package
end

rule("Lua rooms require only what the table allows", list(LIBRARY),
     function(path, text, complain)
  if path:find "/meta/" then return end
  local room, package = lua_room((path:gsub("^lua/", ""):gsub("%.lua$", "")
    :gsub("/init$", ""):gsub("/", ".")))
  local may = {[room] = true}
  for _, other in ipairs(LUA_ROOMS[room]) do may[other] = true end
  if package == "cutelua" then
    for _, other in ipairs(LANGUAGE) do may[other] = true end
  end
  each_line(text, function(line, n)
    if line:find "^%s*%-%-" then return end
    for module in line:gmatch "[\"'](cute[%w_]*[%w_.]*)[\"']" do
      local _, of = lua_room(module)
      if of == "cutelua" and package ~= "cutelua"
        and not (path == "lua/cute/lang/signature.lua" and module == of) then
        complain(n, ("%s: the language may not name the workshop"):format(
          module))
      end
    end
    for module in line:gmatch "require[ (]*[\"']([%w_.]+)[\"']" do
      local other, of = lua_room(module)
      if (of == "kernels" or of:find "^cute") and not may[other]
        and module ~= "cute.core" then
        complain(n, ("%s: %s may not require %s"):format(module, room, other))
      end
    end
  end)
end)

rule("headers named inside.h stay in their room", C, function(path, text,
                                                              complain)
  local room = path:match "^core/([^/]+)/"
  each_line(text, function(line, n)
    local other = line:match '^#include%s*"([^/]+)/inside%.h"'
    if other and other ~= room then complain(n, other .. "/inside.h") end
  end)
end)

rule("lua.h only in core/bind, program and library", C, function(path, text,
                                                             complain)
  local room = path:match "^core/(%w+)/"
  if room == "bind" or room == "program" or room == "library" then return end
  each_line(text, function(line, n)
    local name = line:match '^#include%s*[<"](l[%l]+%.h)[>"]'
    if name == "lua.h" or name == "lauxlib.h" or name == "lualib.h" then
      complain(n, name)
    end
  end)
end)

-- In a layout, a word of 2^60 or more is a tagged value, not an integer.
rule("integers become Dims by dim_int", C, function(path, text, complain)
  if path:find "^core/layout/dim%.c" or path:find "^core/layout/tuple%.c" then
    return
  end
  each_line(text, function(line, n)
    line = line:gsub("dim_static%(%(Dim%)%b{}%)", "")
    local named = line:match "^ *Dim [%w_]+ = (%b{})"
    for value in (named and "(Dim)" .. named or line):gmatch "%(Dim%)(%b{})" do
      if not value:find "^{%-?%d+}$" then complain(n, "Dim " .. value) end
    end
  end)
end)

-- -Wswitch-enum reports a missing operation only in switches without a cast.
rule("switches over operations are not cast", C, function(_, text, complain)
  each_line(text, function(line, n)
    if line:find "switch %(%(int%)[%w_.>%-]*op%)" then
      complain(n, line:match "switch.*")
    end
  end)
end)

rule("every Lua module returns its table", list(LIBRARY), function(_, text,
                                                               complain)
  if not text:find "\nreturn " then complain(1, "no return") end
end)

local TRACKED = {}
do
  local p <close> = io.popen "git ls-files 2>/dev/null"
  for path in p:lines() do
    local f = io.open(path, "rb")
    if f then
      TRACKED[#TRACKED + 1] = path
      f:close()
    end
  end
end

rule("every spec in the folder of a room", list "spec/*_spec.lua",
  function(_, _, complain) complain(1, "belongs into a folder of spec/") end)

rule("no paths of a machine", TRACKED, function(_, text, complain)
  each_line(text, function(line, n)
    for _, dir in ipairs {"work", "root", "home"} do
      local at = line:find("%f[/%w]/" .. dir .. "/%w")
      if at then complain(n, line:match("%S+", at)) end
    end
  end)
end)

rule("no binary or generated files", TRACKED, function(path, text, complain)
  if text:find("\0", 1, true) then complain(1, "binary") end
  if path:find "%.[oa]$" or path:find "%.so$" then complain(1, "built") end
end)

do
  local kinds = dofile "lua/cute/lang/kinds.lua"
  local docs = read "docs/errors.md"

  -- Checks that a table has a row for each kind, and docs/errors.md a heading.
  -- `pattern` finds the kinds in the header `text`. `level` is the Markdown
  -- prefix, such as "##", of the headings.
  local function compare(rows, text, pattern, level, complain)
    local known = {}
    for kind in text:gmatch(pattern) do
      known[kind] = true
      if not rows[kind] then
        complain(1, kind .. " has no row in lua/cute/lang/kinds.lua")
      end
    end
    for _, row in ipairs(rows) do
      local script = row.example or ""
      local shown = script == "docs/errors.md" and script
        or ("spec/faults/%s.lua"):format(script)
      local _, at = docs:find(("\n%s %s\n"):format(level, row.kind), 1, true)
      local body = docs:sub(at or -1, (docs:find("\n##+ ", at) or 0) - 1)
      if not known[row.kind] then complain(1, row.kind .. " does not exist") end
      if not row.about then complain(1, row.kind .. " has no `about`") end
      if not pcall(read, shown) or not body:find "\nWrong:\n"
          or not body:find "\nMended:\n" then
        complain(1, row.kind .. " has no example in docs/errors.md and "
          .. shown)
      end
    end
  end

  rule("every kind of error has a row and an example", {"core/base/errors.h"},
    function(_, text, complain)
      compare(kinds.ERRORS, text, '\nERR%([%w_]+, "([^"]+)"', "##", complain)
    end)

  rule("every kind of fault has a row and an example", {"core/faults/kinds.h"},
    function(_, text, complain)
      compare(kinds.FAULTS, text, 'SK%(%u+, "([^"]+)"%)', "###", complain)
    end)

  -- Returns the kinds of faults by their identifier in core/faults/kinds.h, and
  -- the names of the lists in core/faults/variants.h.
  local function names()
    local kind, lists = {}, {}
    for id, name in read "core/faults/kinds.h":gmatch
        'SK%((%u+), "([^"]+)"%)' do
      kind[id] = name
    end
    for id, rows in read "core/faults/variants.h":gmatch
        "#define (SIM_[%u_]+)%(X%)(.-)\ntypedef" do
      lists[id] = {}
      for name in rows:gmatch 'X%([%u_]+, "([^"]+)"%)' do
        table.insert(lists[id], name)
      end
    end
    return kind, lists
  end

  -- Reports whether a row of kinds.lua has a sentence for faults whose field
  -- `how` has the value `how`.
  local function says(row, how)
    for _, case in ipairs(row) do
      if case[1] and not case.when and (not case.how or case.how == how) then
        return true
      end
    end
    return false
  end

  rule("every fault has a sentence and a code", {"core/faults/facts.c"},
    function(_, text, complain)
      local kind, lists = names()
      for set, id_list in text:gmatch
          'NAMED%(([^"]+), "how", [%w_.]+, ([%u_]+)%)' do
        for id in set:gmatch "K%((%u+)%)" do
          for _, how in ipairs(lists[id_list]) do
            if not says(kinds.FAULTS[kind[id]], how) then
              complain(1, ("%s, %s: no sentence"):format(kind[id], how))
            end
          end
        end
      end
      local lacks = read "core/faults/missing.h"
      for _, row in ipairs(kinds.FAULTS) do
        for lack in pairs(row.lacks or {}) do
          if not lacks:find(('SL%%(%%u+, "%s"%%)'):format(lack)) then
            complain(1, ("%s: nothing lacks `%s`"):format(row.kind, lack))
          end
        end
        if not row.code then complain(1, row.kind .. ": no code") end
        local last = row[#row] or {}
        if not last[1] or last.when then
          complain(1, row.kind .. ": no sentence for every fault")
        end
      end
    end)
end

do
  local docs, irdoc = dofile "tools/docs.lua", dofile "tools/irdoc.lua"
  local pages = docs.files()
  rule("links of documents lead to files and headings", pages, docs.links)
  rule("paths in documents exist", pages, docs.paths)
  rule("make targets in documents exist", pages, docs.targets)
  rule("docs/ir.md is current (make docs)", {"docs/ir.md"},
    function(_, text, complain)
      if text ~= irdoc.page() then complain(1, "is not") end
    end)
  local ptxdoc = dofile "tools/ptxdoc.lua"
  rule("docs/ptx.md is current (make docs)", {"docs/ptx.md"},
    function(_, text, complain)
      if text ~= ptxdoc.page() then complain(1, "is not") end
    end)
  rule("README.md has at most 100 lines", {"README.md"},
    function(_, text, complain)
      local n = each_line(text, function() end)
      if n > 100 then complain(n, n .. " lines") end
    end)
end

do
  local has, folders = {}, {}
  for _, path in ipairs(TRACKED) do
    local folder, name = path:match "^([^.].*)/([^/]+)$"
    if name == "README.md" then has[folder] = true end
    if folder then folders[folder] = path end
  end
  rule("every folder has a README.md that says what it holds", TRACKED,
    function(path, _, complain)
      local folder = path:match "^(.*)/[^/]+$"
      -- The folders of spec/faults are error kinds, and the folders of
      -- examples/tasks are tasks. Neither needs a README.md.
      if (folder or ""):find "^spec/faults/"
        or (folder or ""):find "^examples/tasks/" then return end
      if folders[folder] == path and not has[folder] then
        complain(1, folder .. "/README.md is missing")
      end
    end)
end

-- these rules apply only if prose.ENFORCED in tools/prose.lua is true
do
  local prose = dofile "tools/prose.lua"
  if prose.ENFORCED then
    rule(("sentences of documents have at most %d words"):format(prose.WORDS),
      prose.documents(), function(_, text, complain)
        prose.long(text, prose.WORDS, function(said, n, line)
          complain(line, ("%d words: %.60s"):format(n, said))
        end)
      end)
    local n, bad = prose.openings(prose.sources())
    rule(("comments open with a noun or a verb (%.1f %% do not)")
      :format(100 * #bad / n), {"tools/prose.lua"}, function(_, _, complain)
        if 100 * #bad <= prose.PERCENT * n then return end
        for _, row in ipairs(bad) do
          complain(1, ("%s:%d: %.60s"):format(table.unpack(row)))
        end
      end)
  end
end

do
  local p <close> = io.popen "lua5.4 tools/rockspec.lua"
  local text = p:read "a"
  rule("the rockspec lists every file", list "cutelua-*.rockspec",
    function(_, _, complain)
      for line in text:gmatch "[^\n]+" do complain(1, line) end
    end)
end

print(("counts %d %d"):format(passed, failed))
os.exit(failed == 0)
-- SPDX-License-Identifier: MIT
