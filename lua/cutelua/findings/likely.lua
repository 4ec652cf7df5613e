--- Edits that are likely to repair a fault or an error, although no search has
-- checked them: what a round of a pipeline lacks, a line that one thread should
-- execute, and comparisons, coordinates and stages that are often wrong.
local changes = require "cutelua.findings.changes"
local pipelines = require "cutelua.findings.pipelines"
local scopes = require "cutelua.text.scopes"
local source = require "cute.lang.source"

local likely = {}

-- The largest number of such edits of a finding.
local MOST = 3
-- LINES: the most lines of a chunk that is searched. COLUMNS: the longest line
-- that is searched. OPERATIONS: the most operations that rounds of pipelines
-- may lack.
local LINES, COLUMNS, OPERATIONS = 5000, 500, 60
-- The number of lines by which an unlikely edit counts as farther away.
local UNLIKELY = 100

-- Messages of faults that vanish if one thread executes the line.
local ONE_THREAD = {"is initialized a second time", "two lanes of a warp write",
                    "two warps write"}

-- Returns the change in which one thread executes a line.
local function by_one_thread(r)
  local line = source.line(r.file, r.line)
  local space, code = (line or ""):match "^(%s*)(.-)%s*$"
  if code == "" or not load(code, "=line", "t") then return nil end
  return changes.replacement(r.file, r.line, line, #space + 1, #space + #code,
    ("cute.when(cute.arch.thread_idx():eq(0), function() %s end)"):format(code))
end

-- Patterns of comparisons that include equal values, each with the strict
-- comparison that replaces it.
local STRICT = {{"()%f[%w_]le%s*%(()", "lt("}, {"()%f[%w_]ge%s*%(()", "gt("},
                {"()<=()", "<"}, {"()>=()", ">"}}

-- Adds the edits that exclude equal values from a line's comparisons.
local function add_strict(add, chunk, n, line)
  for _, row in ipairs(STRICT) do
    local from, to = line:match(row[1])
    if from then
      add(chunk, n, "without equal values",
          changes.replacement(chunk, n, line, from, to - 1, row[2]))
    end
  end
end

-- Adds the edits that swap two neighbouring coordinates in a line: in braces,
-- or beside a `_`.
local function add_swaps(add, chunk, n, line)
  local item = "%s*([^%s,(){}][^,(){}]*)"
  for open, list, from in line:gmatch "([{(])([^(){}]*)()[})]" do
    from = from - #list
    local at = 0
    while true do
      local start, a, b, stop = list:match("^()" .. item .. "," .. item .. "()",
                                           at + 1)
      if not start then break end
      if a ~= b and (open == "{" or a == "_" or b == "_") then
        add(chunk, n, ("swap %s and %s"):format(a, b),
            changes.replacement(chunk, n, line, from + start - 1,
                                from + stop - 2, b .. ", " .. a), UNLIKELY)
      end
      at = list:find(",", at + 1, true)
    end
  end
end

local STAGE = "%(_,[^()]-,?%s*()([%w_][%w_.]*)()%)"

-- Adds the edits that replace a constant stage in a line by the stage that the
-- nearest other slice of this form uses.
local function add_stages(add, chunk, n, line, lines)
  for from, stage, to in line:gmatch(STAGE) do
    local near
    for d = 0, tonumber(stage) and changes.LONGEST or -1 do
      for _, k in ipairs {n - d, n + d} do
        for _, other in (lines[k] or ""):gmatch(STAGE) do
          if not near and other ~= "_" and not tonumber(other) then
            near = other
          end
        end
      end
    end
    if near then
      add(chunk, n, ("use stage %s"):format(near),
          changes.replacement(chunk, n, line, from, to - 1, near))
    end
  end
end

-- How a line names an mbarrier: the name, and the text of its stage.
local SLOTS = {"mbarrier_[%l_]+%(()([%a_][%w_.]*)([^,(){}]*)()[,)]",
               "bar_ptr%s*=%s*()([%a_][%w_.]*)([^,(){}]*)()[,}]"}

-- Adds the edits that give an mbarrier of a ring another stage: that of the
-- nearest line with another one.
local function add_slots(add, chunk, n, line, lines)
  for _, form in ipairs(SLOTS) do
    for from, ring, stage, to in line:gmatch(form) do
      local near
      for d = 0, changes.LONGEST do
        for _, k in ipairs {n - d, n + d} do
          for _, other in ipairs(SLOTS) do
            for _, name, index in (lines[k] or ""):gmatch(other) do
              near = near or name == ring and index ~= stage and name .. index
            end
          end
        end
      end
      if near then
        add(chunk, n, "use " .. near,
            changes.replacement(chunk, n, line, from, to - 1, near))
      end
    end
  end
end

-- Adds the edits that expect the bytes of copies where only an arrival is.
local function add_bytes(add, chunk, n, line, _, r)
  local ring, bytes = (r.message or ""):match
    "mbarrier '([%w_]+)'.-expects %d+ of (%d+) bytes"
  local from, slot, to = line:match "()mbarrier_arrive%(([^(){},]*)%)()"
  if bytes and from and slot:match "^[%w_]*" == ring then
    add(chunk, n, "expect the bytes of the copies",
        changes.replacement(chunk, n, line, from, to - 1,
          ("mbarrier_arrive_and_expect_tx(%s, %s)"):format(slot, bytes)))
  end
end

-- Adds the edits by which a loop has one iteration less or more.
local function add_counts(add, chunk, n, line)
  local from, to = line:match "%f[%w_]range%([^()]-()%s*[+-]%s*1()%)"
  if from then
    add(chunk, n, "count without" .. line:sub(from, to - 1),
        changes.replacement(chunk, n, line, from, to - 1, ""))
  end
end

-- Adds the fence that an error about warpgroup MMAs misses.
local function add_fence(add, chunk, n, line, lines)
  local text = changes.indent(line) .. "cute.nvgpu.warpgroup.fence()"
  n = changes.fitting(lines, text, n, math.max(1, n - changes.LONGEST))
  if n then
    add(chunk, n, "insert warpgroup.fence()", changes.added(chunk, n, text))
  end
end

-- For each kind of fault or error: the functions that add edits of any line of
-- the chunks, and of lines that the kernel executes. An error is in one line.
local ANY = {["out-of-bounds"] = {add_strict, add_counts},
             uninitialised = {add_stages}, race = {add_stages},
             ["warp-race"] = {add_stages}, ["exited-block"] = {add_counts},
             ["async-in-flight"] = {add_stages, add_bytes},
             deadlock = {add_bytes, add_counts}, mbarrier = {add_counts},
             ["wrong-results"] = {add_stages, add_strict}}
local EXECUTED = {["out-of-bounds"] = {add_swaps},
                  deadlock = {add_slots}, race = {add_slots},
                  mbarrier = {add_slots}, uninitialised = {add_slots},
                  ["async-in-flight"] = {add_slots},
                  ["wrong-results"] = {add_swaps},
                  ["shape-mismatch"] = {add_swaps},
                  ["bad-argument"] = {add_swaps}, ["in-flight"] = {add_fence}}

-- Kinds of faults that a missing operation of a pipeline can cause.
local ROUNDS = {}
for kind in ([[race warp-race async-in-flight uninitialised deadlock mbarrier
    exited-block unstarted-block runaway]]):gmatch "%S+" do
  ROUNDS[kind] = true
end

-- Adds the edits that complete rounds of pipelines in a chunk.
local function add_rounds(add, chunk, lines)
  local list, is_visible = pipelines.lacks(lines), scopes.visible(lines)
  for i = 1, #list <= OPERATIONS and #list or 0 do
    local o = list[i]
    local first = o.line + (o.behind and 1 or 0)
    local inner = lines[first] or "end"
    local text = changes.indent(inner:find "^%s*end%f[^%w_]" and lines[o.line]
      or inner) .. o.code
    local n = changes.fitting(lines, text, first,
      math.min(first + (o.behind and changes.LONGEST or 0), #lines))
    if n and is_visible(n, o.code:match "^[%w_]+")
      and is_visible(n, o.code:match "%(([%w_]+)"
                     or o.code:match "^[%w_]+") then
      add(chunk, o.line, "insert " .. o.code, changes.added(chunk, n, text))
    end
  end
end

-- Reports whether a list of edits has one that consists of this change.
local function has(list, change)
  for _, e in ipairs(list) do
    local c = e.changes[1]
    if not e.changes[2] and c.file == change.file and c.text == change.text
      and c.start.line == change.start.line
      and c.start.column == change.start.column then return true end
  end
end

-- Returns a function add(chunk, line, description, change, more) that adds an
-- edit to a list, with its distance from the lines of a fault and `more`.
local function adder(list, r, known)
  return function(chunk, n, description, change, more)
    if not change or has(known, change) then return end
    local far = 1 << 20
    for _, p in ipairs {{r.file, r.line}, {r.file2, r.line2}} do
      if p[1] == chunk then far = math.min(far, math.abs(p[2] - n)) end
    end
    list[#list + 1] = {far = far + (more or 0), nth = #list,
      edit = {unchecked = true, description = description, changes = {change}}}
  end
end

-- Returns a list of the elements of two lists in alternation.
local function alternately(a, b)
  local out = {}
  for i = 1, math.max(#a, #b) do
    out[#out + 1] = a[i]
    out[#out + 1] = b[i]
  end
  return out
end

-- Returns the chunks that are files of the user, sorted.
local function own_chunks(executed)
  local list = {}
  for chunk in pairs(executed) do
    if chunk:find "^@" then list[#list + 1] = chunk end
  end
  table.sort(list)
  return list
end

-- Adds the edits of a chunk's lines. `executed` are those that the kernel
-- executes.
local function search(add, chunk, lines, executed, r)
  for n, line in ipairs(lines) do
    line = #line <= COLUMNS and line:gsub("%-%-.*$", "") or ""
    for _, f in ipairs(ANY[r.kind] or {}) do
      f(add, chunk, n, line, lines, r)
    end
    for _, f in ipairs(executed[n] and EXECUTED[r.kind] or {}) do
      f(add, chunk, n, line, lines)
    end
  end
end

--- Returns the edits of a search and those that are likely, alternately. The
-- field `unchecked` of the latter is true.
---@param r table an element of report.reports, or {kind =, file =, line =}
---@param executed table<string, table<integer, boolean>> lines that the kernel
-- executes, by chunk
---@param known table[] is not changed
---@return table[] all
function likely.edits(r, executed, known)
  local list = {}
  local add = adder(list, r, known)
  for _, message in ipairs(ONE_THREAD) do
    if r.file and (r.message or ""):find(message, 1, true) then
      add(r.file, r.line, "let one thread execute the line", by_one_thread(r))
    end
  end
  for _, chunk in ipairs(own_chunks(executed)) do
    local lines = changes.lines(chunk)
    if #lines <= LINES then
      search(add, chunk, lines, executed[chunk], r)
      if ROUNDS[r.kind] then add_rounds(add, chunk, lines) end
    end
  end
  table.sort(list, function(a, b)
    if a.far ~= b.far then return a.far < b.far end
    return a.nth < b.nth
  end)
  local out = {}
  for i = 1, math.min(#list, MOST) do out[i] = list[i].edit end
  return alternately(known, out)
end

return likely
-- SPDX-License-Identifier: MIT
