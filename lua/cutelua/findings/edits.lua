--- Converts repairs that the surgeon (cutelua.check.repair) describes in words
-- to edits of the script's text (cutelua.findings.changes).
local changes = require "cutelua.findings.changes"
local parser = require "cutelua.findings.code"
local pipelines = require "cutelua.findings.pipelines"
local scopes = require "cutelua.text.scopes"
local source = require "cute.lang.source"

local edits = {}

-- The largest number of edits of one finding.
local MOST = 8

-- Returns the number of the line that closes the block that line n opens. It is
-- the next line with the same indentation that begins with `end`.
local function closing(lines, n)
  local indent = lines[n] and changes.indent(lines[n])
  for k = n + 1, #lines do
    if changes.indent(lines[k]) == indent and lines[k]:find "^%s*end%f[%W]" then
      return k
    end
  end
end

-- Returns the number of the line that ends the kernel in which line n is.
local function kernel_end(lines, n)
  for k = n, 1, -1 do
    if lines[k] and lines[k]:find "kernel%s*%(" then
      return closing(lines, k)
    end
  end
end

-- Returns the expression that counts the executions of line n, whose
-- indentation is `indent`. This is the variable of the traced loop around the
-- line, or 0 without a traced loop. A plain Lua loop is unrolled; each copy of
-- its body counts its own executions.
local function counter(lines, n, indent)
  for k = n - 1, 1, -1 do
    local line = lines[k]
    if line:find "%S" and #changes.indent(line) < indent then
      indent = #changes.indent(line)
      local name = line:match "^%s*for%s+([%a_][%w_]*)%s+in%s+cute%.range%("
      if name then return name end
      if line:find "^%s*for%s" then return "0" end
      if line:find "kernel%s*%(" then break end
    end
  end
  return "0"
end

-- Converts `code`, an operation on a ring of mbarriers in which n counts
-- executions, to a statement for line n. If the script's name of the ring is
-- visible there, the statement uses it. Otherwise it calls the pipeline to
-- which the ring belongs. Returns nil if the script has neither.
local function at_ring(code, lane, lines, n, indent)
  local op, ring = code:match "([%w_]+)%(([%a_][%w_]*)"
  local is_visible = scopes.visible(lines)
  if not is_visible(n, ring) then
    local call = pipelines.call(lines, n, ring, op)
    local state = call and call:match "%(([%w_]+)"
    return state and is_visible(n, state) and call or nil
  end
  local count = counter(lines, n, indent)
  code = code:gsub(" %+ n %% 1%f[%D]", ""):gsub("n // 1%f[%D]", "n")
    :gsub("%f[%w_]n%f[^%w_]", count)
  if lane ~= " by one lane" then return code end
  return ("cute.when((cute.arch.thread_idx() %% 32):eq(0), function() %s end)")
    :format(code)
end

-- Converts a repair's description of an operation (`words`) to a statement for
-- line n. Returns nil if an operand of the operation has no name in the
-- description or the script.
local function statement_of(words, lines, n, indent)
  local code, lane = words:match "^(.-), where n counts its executions,(.*)$"
  if code then
    code = at_ring(code, lane, lines, n, indent)
  else
    code = words:gsub("%(%.%.%.%) of its map$", function()
      for k = n, math.min(#lines, n + changes.LONGEST) do
        local map = lines[k]:match "tma_desc_ptr%s*=%s*([%a_][%w_.]*)"
        if map then return ("(%s)"):format(map) end
      end
    end)
  end
  if not code or code:find("...", 1, true) or not load(code, "=words", "t") then
    return nil
  end
  return code
end

-- Returns the change that inserts an operation at a place that
-- cutelua.check.repair proposes. Returns nil if the operation has no form as a
-- statement, or if the script has no such line.
local function insertion(place, words)
  local lines, n = changes.lines(place.file), place.line
  if place.last then n = kernel_end(lines, n)
  elseif place.ends then n = closing(lines, n) end
  if not n or not lines[n] then return nil end
  local inside = n ~= place.line and lines[n - 1] or lines[n]
  local indent = changes.indent(inside)
  local code = statement_of(words, lines, n, #indent)
  local text = code and indent .. code
  if not text then return nil end
  -- In a one-line function, the operation is inserted into the body.
  local head = n == place.line and lines[n]:match
    "^%s*local%s+function%s+[%w_]+%s*%b()%s*()%S.*%f[%w_]end%s*$"
  if head then
    return changes.replacement(place.file, n, lines[n], head, head - 1,
                               code .. " ")
  end
  n = changes.fitting(lines, text, n, math.max(1, n - changes.LONGEST))
  return n and changes.added(place.file, n, text)
end

-- Returns the lines of a call that begins in the line of a place: {{number,
-- text}, ...}, up to the line in which the call's brackets close.
local function call_lines(place)
  local list, open, lines = {}, 0, changes.lines(place.file)
  for n = place.line, place.line + changes.LONGEST do
    local line = lines[n]
    if not line then break end
    list[#list + 1] = {n, line}
    local _, opening = line:gsub("[({]", "")
    local _, closed = line:gsub("[)}]", "")
    open = open + opening - closed
    if open <= 0 then break end
  end
  return list
end

-- Returns the change that replaces a part of the call at a place. The part is
-- between the two position captures of `pattern`. The new text is `with` or, if
-- this is a function, its result for the old text. Returns nil if the pattern
-- matches no line.
local function captured(place, pattern, with)
  for _, one in ipairs(call_lines(place)) do
    local n, line = table.unpack(one)
    local from, to = line:match(pattern)
    if from then
      local text = type(with) == "string" and with
        or with(line:sub(from, to - 1))
      return changes.replacement(place.file, n, line, from, to - 1, text)
    end
  end
end

-- Returns the change that replaces the call at a place by `words`. The call
-- must call the same function as the text `old`, or a variant of this function,
-- such as cluster_arrive_relaxed for cluster_arrive.
local function other_call(place, words, old)
  local name = old:match "([%w_]+)%("
  if not name then return nil end
  name = "()[%w_.]*%f[%w_]" .. name
  return captured(place, name .. "%s*%b()()", words)
    or captured(place, name .. "_%l+%s*%b()()", words)
end

-- Returns the change that sets the option `name` of a call to `value`: it
-- replaces the old value, or adds the option.
local function option(place, name, value)
  local new = ("%s = %s"):format(name, value)
  return captured(place, "()%f[%w_]" .. name .. "%s*=%s*[\"'][^\"']*[\"']()",
                  new)
    or captured(place, "(){%s*}()", ("{%s}"):format(new))
    or captured(place, "()()}[^{}]*$", ", " .. new)
    or captured(place, "()()%)%s*$", (", {%s}"):format(new))
end

-- Returns the change that replaces a part of the call at a place: the part that
-- the first matching pattern captures. If no pattern matches there, searches
-- other lines with the patterns that contain `=`, which match options. It
-- searches the lines above, the nearest first, then the kernel's other files.
local function first_captured(place, patterns, with)
  for _, pattern in ipairs(patterns) do
    local change = captured(place, pattern, with)
    if change then return change end
  end
  local function option_of(chunk, lines, from, to, step)
    for n = from, to, step do
      local line = lines[n] or ""
      for _, pattern in ipairs(patterns) do
        if pattern:find "=" and line:find(pattern) then
          return captured({file = chunk, line = n}, pattern, with)
        end
      end
    end
  end
  local change = place.file:find "^@"
    and option_of(place.file, changes.lines(place.file), place.line - 1, 1, -1)
  for chunk in pairs(place.executed or {}) do
    if not change and chunk:find "^@" and chunk ~= place.file then
      local lines = changes.lines(chunk)
      change = option_of(chunk, lines, 1, #lines, 1)
    end
  end
  return change
end

local function other_parity(parity)
  return parity == "0" and "1" or parity == "1" and "0"
    or ("1 - (%s)"):format(parity)
end

-- Returns a function that moves the last index of an expression by a number of
-- stages: to later stages or, if `direction` is negative, to earlier ones.
local function moved(direction)
  return function(index, by, stages)
    by = math.tointeger(by)
    if direction < 0 then by = math.tointeger(stages) - by end
    return ("((%s) + %d) %% %s"):format(index, by, stages)
  end
end

-- Returns the text of another rank of a cluster: `rank` plus `by` (1 when
-- absent), modulo n (2 when absent).
local function other_rank(rank, by, n)
  return ("((%s) + %s) %% %s"):format(rank, by or "1", n or "2")
end

local INIT = "mbarrier_init%s*%(.*,%s*()[^,()]+()%)"
local SLOT = "%s*%([%w_.]+%s*%+%s*()[^,(){}]+()%s*[,)]"
local SLICE = {"%(_,.-,%s*()[^,_()%s][^,()]*()%)",
  "%(_,.-,%s*()%b()%s*%%%s*[%w_]+()%)", "%[{.-,%s*()[^,{}]+()}%]"}
local RANK = {"mbarrier_arrive%s*%([^,]+,%s*()[^,{}]+()%s*[,)]",
  "map_dsmem_ptr%s*%([^,]+,%s*()[^,{}]+()%s*%)",
  "store_async_dsmem%s*%(.*,%s*()[^,{}]+()%s*%)"}
local MASK = {"mcast_mask%s*=%s*()[^,{}]+()%s*[,}]",
              "mcast_mask%s*=%s*()[^,{}]+()%s*$"}

-- Repairs whose description is not source text: {pattern of the description,
-- patterns of the text to replace, function}. The function returns the new text
-- from the old text and the captures of the first pattern. Without a function,
-- the first capture is the new text.
local REWRITTEN = {
  {"^mbarrier_init%(%.%.%., (%d+)%)$", {INIT, "arrivals%s*=%s*()[^,{}]+()"}},
  {"^(%d+) bytes expected$", {"expect_tx%s*%(.*,%s*()[^,()]+()%)",
    "tx_count%s*=%s*()[^,{}]+()%f[%s,}]", "tx_count%s*=%s*()[^,{}]+()$"}},
  {"^the other parity of mbarrier_wait$",
   {"mbarrier_wait%s*%([^,]+,%s*()[^,(){}]+()%s*[,)]"}, other_parity},
  {"^mcast_mask = (0x%x+)$", MASK},
  {"^mcast_mask = (0x%x+): all blocks of the cluster$", MASK},
  {"^'[%w_]+' (%d+) stages? earlier, of (%d+)$", SLICE, moved(-1)},
  {"^'[%w_]+' (%d+) stages? later, of (%d+)$", SLICE, moved(1)},
  {"^mbarrier_[%l_]+ (%d+) stages? earlier, of (%d+)$",
   {"mbarrier_[%l_]+" .. SLOT}, moved(-1)},
  {"^mbarrier_[%l_]+ (%d+) stages? later, of (%d+)$",
   {"mbarrier_[%l_]+" .. SLOT}, moved(1)},
  {"^the other rank$", RANK, other_rank},
  {"^a rank larger by (%d+), modulo (%d+)$", RANK, other_rank},
  {"^the rank (%d+)$", RANK},
  {"^the rank of the block itself$", RANK,
   function() return "cute.arch.block_idx_in_cluster()" end},
  {"^the rank of the other block$", RANK,
   function() return "1 - cute.arch.block_idx_in_cluster()" end},
  {"^(%d+) threads$", {"num_threads%s*=%s*()[^,{}]+()%f[%s,}]",
    "number_of_threads%s*=%s*()[^,{}]+()%f[%s,}]",
    "barrier_arrive%s*%([^,]+,%s*()[^,{}]+()%s*%)",
    "barrier%s*%([^,{}]+,%s*()[^,{}]+()%s*%)"}},
}

-- Returns the change that sets the size of the CooperativeGroup that arrives at
-- a pipeline's ring of mbarriers to n. Returns nil if the line does not create
-- a pipeline.
local function resized_group(place, n)
  local side = place.ring and place.ring:match "_?(%l+)$"
  local name = side == "full" and "producer_group"
    or side == "empty" and "consumer_group"
  if not name then return nil end
  return captured(place,
    name .. "%s*=%s*[%w_.]*Group%s*%([%w_.]+,%s*()[^,()]+()%s*%)", n)
    or captured(place,
      name .. "%s*=%s*[%w_.]*Group%s*%([%w_.]+()()%s*%)", ", " .. n)
end

-- Returns the change that the words of a repair describe; nil if they do not
-- describe an edit of the script's text.
local function changed_line(place, words)
  for _, row in ipairs(REWRITTEN) do
    local found = {words:match(row[1])}
    if found[1] then
      local change = first_captured(place, row[2], row[3] and function(old)
        return found[1] == words and row[3](old)
          or row[3](old, table.unpack(found))
      end or found[1])
      return change or row[2][1] == INIT and resized_group(place, found[1])
        or nil
    end
  end
  local name, value = words:match '^(%l+) = ("%l[%w_]*")$'
  if name then return option(place, name, value) end
  local new, old = words:match "^(.-) in place of (.+)$"
  local line = source.line(place.file, place.line)
  new = line and statement_of(new or words, changes.lines(place.file),
                              place.line, #changes.indent(line))
  return new and other_call(place, new, old or new)
end

-- Adds the edit for a repair that replaces several operations: one edit that
-- changes all their lines.
local function add_changed(list, m, executed)
  local all = {}
  for _, p in ipairs(m.places) do
    p.executed = executed
    local change = changed_line(p, p.words or m.words)
    if not change then return end
    all[#all + 1] = change
  end
  list[#list + 1] = {description = m.words, changes = all}
end

-- Returns the text of the file that an edit changes. Returns nil if the edit
-- changes several files, or a module of cutelua.
local function text_of(edit)
  local file = edit.changes[1].file
  for _, c in ipairs(edit.changes) do if c.file ~= file then return nil end end
  return source.text("@" .. file)
end

-- Returns the edits of a repair, the best first.
local function proposed(m, executed)
  local list = {}
  if m.stands then
    add_changed(list, m, executed)
    for _, o in ipairs(m.others or {}) do add_changed(list, o, executed) end
    return list
  end
  for _, p in ipairs(m.places) do
    local change = insertion(p, m.words)
    if change and #list < MOST then
      list[#list + 1] = {changes = {change}, description = ("insert %s"):format(
        change.text:match "^%s*(.-)%s*$")}
    end
  end
  return list
end

--- Returns the edits for a repair, the best first. After each of them, the
-- script still compiles.
---@param m table a repair, from cutelua.check.repair.mend
---@param executed table<string, table<integer, boolean>> lines that the kernel
-- executes, by chunk
---@return table[]
function edits.of(m, executed)
  local list = {}
  for _, e in ipairs(proposed(m, executed)) do
    local text = text_of(e)
    if text and load(changes.applied(text, e), "=edit", "t") then
      list[#list + 1] = e
    end
  end
  return list
end

--- Returns the edit that changes the layout of the shared tensor that a line
-- creates; nil if the line has no call of make_smem_tensor.
---@param chunk string
---@param line integer
---@param layout string an expression
---@return table?
function edits.layout(chunk, line, layout)
  local c = parser.of(chunk)
  for _, call in ipairs(c.calls) do
    local a = call.name == "make_smem_tensor" and call.arguments[2]
    if a and c.tokens[call.first].line == line then
      return {description = "use the layout " .. layout, unchecked = true,
              changes = {c:change(a[1], a[2], layout)}}
    end
  end
end

return edits
-- SPDX-License-Identifier: MIT
