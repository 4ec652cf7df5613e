--- Edits that are likely to repair a fault or an error, although no search has
-- checked them. They insert the missing operations of a pipeline, let only one
-- thread execute a line, or use another stage of an mbarrier. They also change
-- statements near the fault slightly (cutelua.findings.variants).
local changes = require "cutelua.findings.changes"
local code = require "cutelua.findings.code"
local pipelines = require "cutelua.findings.pipelines"
local rewrites = require "cutelua.findings.rewrites"
local scopes = require "cutelua.text.scopes"
local source = require "cute.lang.source"
local variants = require "cutelua.findings.variants"

local likely = {}

-- The largest number of edits of one finding that are reported without a trial.
likely.MOST = 3
-- - LINES: the longest chunk that is searched, in lines.
-- - COLUMNS: the longest line that is searched.
-- - OPERATIONS: if more operations are missing in pipelines, none is inserted.
-- - NAMES: the longest chunk, in lines, whose names are compared.
local LINES, COLUMNS, OPERATIONS, NAMES = 5000, 500, 60, 2000
-- Edits are sorted by their distance from the fault. ELSEWHERE: the distance of
-- lines in other files. HOST: the distance of lines that launch a kernel, which
-- only the host runs.
local ELSEWHERE, HOST = 12, 10
-- Lines at most this far from a line that the kernel executes also count as
-- executed.
local BESIDE = 6

-- Messages of faults that would not occur if only one thread executed the line.
local ONE_THREAD = {"is initialized a second time", "two lanes of a warp write",
                    "two warps write"}

-- Returns the change that lets only one thread execute a line.
local function by_one_thread(r)
  local line = source.line(r.file, r.line)
  local space, text = (line or ""):match "^(%s*)(.-)%s*$"
  if text == "" or not load(text, "=line", "t") then return nil end
  return changes.replacement(r.file, r.line, line, #space + 1, #space + #text,
    ("cute.when(cute.arch.thread_idx():eq(0), function() %s end)"):format(text))
end

-- Patterns of calls that name an mbarrier. They capture its name, and the text
-- that selects its stage.
local SLOTS = {"mbarrier_[%l_]+%(()([%a_][%w_.]*)([^,(){}]*)()[,)]",
               "bar_ptr%s*=%s*()([%a_][%w_.]*)([^,(){}]*)()[,}]"}

-- Adds edits that replace an mbarrier's stage in line n by another stage of the
-- same ring, the nearest one that the text uses.
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

-- Adds edits by which an arrival also expects the bytes that copies deliver.
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

-- Adds the edit that inserts a warpgroup fence, after an error that reports a
-- missing fence.
local function add_fence(add, chunk, n, line, lines)
  local text = changes.indent(line) .. "cute.nvgpu.warpgroup.fence()"
  n = changes.fitting(lines, text, n, math.max(1, n - changes.LONGEST))
  if n then
    add(chunk, n, "insert warpgroup.fence()", changes.added(chunk, n, text))
  end
end

-- Adds the edit that inserts a commit before a wait for warpgroup MMAs.
local function add_commit(add, chunk, n, line, lines)
  if line:find "wait_group%(" and not line:find "cp_async"
    and not (lines[n - 1] or ""):find "commit_group" then
    add(chunk, n, "insert warpgroup.commit_group()", changes.added(chunk, n,
      changes.indent(line) .. "cute.nvgpu.warpgroup.commit_group()"))
  end
end

-- Adds the edit that sets a launch's cluster size to the size in the error's
-- advice.
local function add_cluster(add, chunk, n, line, _, r)
  local option = (r.details or ""):match "(cluster = %b{})"
  local from = line:match ":launch%s*{()"
  if option and from and not line:find "cluster%s*=" then
    add(chunk, n, "launch with " .. option,
        changes.replacement(chunk, n, line, from, from - 1, option .. ", "), 0)
  end
end

-- Functions that add edits, by kind of fault or error. Functions in ANY are
-- called for every line of a chunk. Functions in EXECUTED are called only for
-- lines that the kernel executes; after an error, only for the error's line.
local ANY = {["async-in-flight"] = {add_bytes}, deadlock = {add_bytes},
             ["in-flight"] = {add_commit}, ["bad-argument"] = {add_cluster}}
local EXECUTED = {deadlock = {add_slots}, race = {add_slots},
                  mbarrier = {add_slots}, uninitialised = {add_slots},
                  ["async-in-flight"] = {add_slots},
                  ["in-flight"] = {add_fence}}

-- Weights of the changes that cutelua.findings.variants and
-- cutelua.findings.rewrites make, by kind of fault and name of the change.
-- Edits are tried in order of their distance from the fault, to which the
-- weight is added; likely changes have negative weights. Changes with false are
-- not tried.
--
-- For example, uncleared registers cause only wrong or undefined results, so
-- other faults need no edit that clears them. A changed number or operator may
-- prevent an overflow, but then the script computes something else.
local WEIGHTS = {
  ["out-of-bounds"] = {terms = -4, operators = -4, guards = 0, crossed = 0,
                       indices = 2, lower_bounds = -6},
  ["wrong-results"] = {fills = -4, crossed = 4, indices = 4},
  uninitialised = {fills = -4, zeros = -10, cleared = -10, crossed = 0,
                   indices = 0, doubles = -4},
  ["signed-overflow"] = {numbers = false, operators = false, terms = false,
                         arguments = false, swaps = false, exchanges = false},
  unwritten = {terms = -4, round_ups = -4, operators = -4, crossed = 0,
               indices = 0, doubles = 0},
  ["shape-mismatch"] = {swaps = -4, arguments = -2},
  deadlock = {numbers = -4, terms = -2, unbranched = -14},
  divergent = {unbranched = -14}, ["barrier-mismatch"] = {unbranched = -14},
  mbarrier = {numbers = -4, terms = -2},
  ["in-flight"] = {waits = -14},
  ["async-in-flight"] = {arguments = -2, waits = -10, indices = 0},
  race = {arguments = -2, owners = -2, waits = -10, atomics = -14,
          indices = 0},
  ["warp-race"] = {atomics = -14, indices = 0},
  ["block-race"] = {atomics = -14, indices = 0},
}

-- Kinds of faults that may be caused by an operation missing in a pipeline.
local ROUNDS = {}
for kind in ([[race warp-race async-in-flight uninitialised deadlock mbarrier
    exited-block unstarted-block runaway]]):gmatch "%S+" do
  ROUNDS[kind] = true
end

-- Adds the edits that insert the missing operations of pipelines in a chunk.
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

-- Reports whether a list has an edit that makes only this change.
local function has(list, change)
  for _, e in ipairs(list) do
    local c = e.changes[1]
    if not e.changes[2] and c.file == change.file and c.text == change.text
      and c.start.line == change.start.line
      and c.start.column == change.start.column then return true end
  end
end

-- Returns the lines of a chunk that belong to a fault, each with its distance
-- from the fault: the lines of the fault itself, and those of the calls that
-- led to it.
local function lines_of(r, chunk)
  local list = {}
  local function add(file, line, far)
    if file == chunk and line then list[line] = list[line] or far end
  end
  add(r.file, r.line, 0)
  add(r.file2, r.line2, 0)
  add(r.wait_file, r.wait, 1)
  add(r.loop_file, r.loop, 1)
  for i, frame in ipairs(r.frames or {}) do
    add(frame.source, frame.line, math.min(i, 3))
    -- The lines that the error's message names.
    for n in (r.message or ""):gmatch "%f[%w]line (%d+)" do
      if frame.source == chunk then add(chunk, math.tointeger(n), 1) end
    end
  end
  return list
end

-- Returns a function add(chunk, line, description, change, far) that adds an
-- edit to a list. `far` is the edit's distance from the fault; when absent, it
-- is computed from the line.
local function adder(list, r, known)
  return function(chunk, n, description, change, far)
    if not change or has(known, change) then return end
    if not far then
      far = ELSEWHERE
      for line, own in pairs(lines_of(r, chunk)) do
        far = math.min(far, own + math.abs(line - n))
      end
    end
    list[#list + 1] = {far = far,
      edit = {unchecked = true, description = description, changes = {change}}}
  end
end

-- Returns a list that alternates between the elements of two lists.
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

-- Adds the edits for each line of a chunk. executed[n] is true if the kernel
-- executes line n.
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

-- Calls that report errors. A line with such a call, and a line just before it,
-- are not changed, because an edit must not hide an error.
local REPORTS = {"%f[%w_]fail%s*%(", "%f[%w_]error%s*[%(\"]",
                 "%f[%w_]assert%s*%(", "%f[%w_]assert_close%s*%(", ":format%("}

-- Patterns of lines that launch a kernel, or that compute its number of blocks
-- or threads.
local LAUNCH = {"%f[%w_]grid%f[^%w_]", "%f[%w_]cluster%f[^%w_]",
                "%f[%w_]block%f[^%w_]", "ceil_div", "tiles%.count"}

-- Reports whether a line near statement s is executed. The statement itself may
-- have no instruction, because it only computes values during the trace.
local function is_beside(executed, s)
  for n = s.line - BESIDE, s.last_line + BESIDE do
    if executed[n] then return true end
  end
end

-- Reports whether statement s computes numbers for a kernel. It does if it
-- defines constants, or if it is inside a statement with executed lines, such
-- as a kernel's definition. Other statements of a script make the inputs.
local function is_of_kernel(c, executed, s)
  if c.lines[s.line]:find "^%s*local%s[%w_,%s]+=[%w_%s%.,%+%*/%-]+$" then
    return true
  end
  for _, outer in ipairs(c.statements) do
    if outer.line < s.line and s.last_line <= outer.last_line then
      for n = outer.line + 1, outer.last_line do
        if executed[n] then return true end
      end
    end
  end
end

-- Returns the distance of each statement from the lines of a fault, for
-- statements that may be the fault's cause.
local function distances(c, executed, r)
  local from = lines_of(r, c.chunk)
  local near = c:distances(from)
  for _, s in ipairs(c.statements) do
    local far, runs = near[s], false
    for n = s.line, s.line + 1 do runs = runs or executed[n] end
    for n, own in pairs(runs and from or {}) do
      far = math.min(far or math.huge, own + 2 + math.abs(n - s.line) / 2)
    end
    local inside = runs or is_beside(executed, s)
    -- If results differ from the reference, the reference and the inputs count
    -- as right. Only the kernel and its launch may change.
    if r.kind == "wrong-results" then
      inside = inside and is_of_kernel(c, executed, s)
      if not inside then far = nil end
    end
    if not far and inside then far = ELSEWHERE end
    for _, pattern in ipairs(LAUNCH) do
      if c.lines[s.line]:find(pattern) then
        far = math.min(far or HOST, HOST)
      end
    end
    local text = ("%s\n%s"):format(c.lines[s.line], c.lines[s.line + 1] or "")
    for _, pattern in ipairs(REPORTS) do
      if text:find(pattern) then far = nil end
    end
    near[s] = far and math.min(far, 30)
  end
  return near
end

-- Adds the changes of cutelua.findings.variants and cutelua.findings.rewrites.
local function add_variants(add, chunk, executed, r)
  local c = code.of(chunk)
  local near = distances(c, executed, r)
  local weights = WEIGHTS[r.kind] or {}
  local function add_all(f, delta)
    f(c, function(s) return s and near[s] end,
      function(first, last, text, weight, description)
        local t = c.tokens[first]
        add(chunk, t.line, description, c:change(first, last, text),
          (near[t.statement] or 30) + weight + delta)
      end)
  end
  for name, f in pairs(variants.ALL) do
    local weight = weights[name]
    if weight or weight == nil and name ~= "fills" then
      add_all(f, weight or 0)
    end
  end
  for name, f in pairs(rewrites) do
    if weights[name] then add_all(f, weights[name]) end
  end
end

-- Returns the edits sorted by distance, each once.
local function sorted(list)
  table.sort(list, function(a, b)
    if a.far ~= b.far then return a.far < b.far end
    local x, y = a.edit.changes[1], b.edit.changes[1]
    if x.start.line ~= y.start.line then return x.start.line < y.start.line end
    if x.start.column ~= y.start.column then
      return x.start.column < y.start.column
    end
    if x.text ~= y.text then return x.text < y.text end
    if x.stop.line ~= y.stop.line then return x.stop.line < y.stop.line end
    if x.stop.column ~= y.stop.column then
      return x.stop.column < y.stop.column
    end
    return a.edit.description < b.edit.description
  end)
  local out, known = {}, {}
  for _, one in ipairs(list) do
    local c = one.edit.changes[1]
    local key = ("%s %d %d %d %s"):format(c.file, c.start.line, c.start.column,
      c.stop.column, c.text)
    if not known[key] then known[key], out[#out + 1] = true, one.edit end
  end
  return out
end

--- Returns the edits `known` and likely edits in alternation, the best first.
-- Likely edits get `unchecked` = true, because no check confirmed them.
---@param r table an element of report.reports, or {kind =, file =, line =}
---@param executed table<string, table<integer, boolean>> lines that the kernel
-- executes, by chunk
---@param known table[] edits of a repair; the list is not changed
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
    if #lines <= NAMES then add_variants(add, chunk, executed[chunk], r) end
  end
  return alternately(known, sorted(list))
end

return likely
-- SPDX-License-Identifier: MIT
