--- Finds the operations on pipeline states in a script's text, and missing
-- operations. A consumer's round consists of wait, release and advance; a
-- producer's round consists of acquire, commit and advance.
local pipelines = {}

local CONSUMER = {consumer_wait = true, consumer_release = true,
                  consumer_try_wait = true}
local PRODUCER = {producer_acquire = true, producer_commit = true,
                  producer_get_barrier = true, producer_try_acquire = true}

local function indent_of(line) return #line:match "^%s*" end

-- Returns a line of text without its comment.
local function code_of(line) return (line:gsub("%s*%-%-.*$", "")) end

-- Reports whether a line opens a loop or a function, not a branch.
local function opens(line)
  line = code_of(line)
  if line:find "%f[%w_]when%s*%(" or line:find "^%s*end%f[^%w_]" then
    return false
  end
  return line:find "%f[%w_]function%f[^%w_].*%)%s*$" ~= nil
    or line:find "%f[%w_]for%f[^%w_].*%f[%w_]do%s*$" ~= nil
    or line:find "%f[%w_]while%f[^%w_].*%f[%w_]do%s*$" ~= nil
end

-- Returns the number of the line that opens the innermost loop or function
-- around line n; 0 if there is none.
local function block_of(lines, n)
  local indent = indent_of(lines[n])
  for k = n - 1, 1, -1 do
    local line = lines[k]
    if line:find "%S" and indent_of(line) < indent then
      indent = indent_of(line)
      if opens(line) then return k end
    end
  end
  return 0
end

--- Returns the operations on pipeline states, in the order of the text: {line
-- =, op = a method's name or "advance", pipe = an expression, state = an
-- expression, block = the line that opens the loop or function around it}.
---@param lines string[]
---@return table[]
function pipelines.operations(lines)
  local list = {}
  for n, line in ipairs(lines) do
    local code = code_of(line)
    local function add(at, op, pipe, state)
      list[#list + 1] = {line = n, at = at, op = op, pipe = pipe, state = state,
                         block = block_of(lines, n)}
    end
    for at, pipe, op, state in code:gmatch
      "()([%a_][%w_.]*):([%l_]+)%(%s*([%a_][%w_.]*)" do
      if CONSUMER[op] or PRODUCER[op] or op == "producer_tail" then
        add(at, op, pipe, state)
      end
    end
    for at, state in code:gmatch "()([%a_][%w_.]*):advance%(" do
      add(at, "advance", nil, state)
    end
  end
  table.sort(list, function(a, b)
    if a.line ~= b.line then return a.line < b.line end
    return a.at < b.at
  end)
  return list
end

-- A pipeline has two rings of mbarriers, "full" and "empty".
-- METHODS[ring][operation] is the pipeline's method that does the operation on
-- an mbarrier of the ring.
local METHODS = {
  full = {["mbarrier_wait"] = "consumer_wait",
          ["mbarrier_arrive"] = "producer_commit"},
  empty = {["mbarrier_wait"] = "producer_acquire",
           ["mbarrier_arrive"] = "consumer_release"},
}

--- Returns a call of the pipeline method that does operation `op` on an
-- mbarrier of `ring`. The call passes the pipeline state that the script uses
-- nearest to line n. Returns nil if the text has no such pipeline.
---@param lines string[]
---@param n integer
---@param ring string such as "pipe_full"
---@param op string "mbarrier_wait" or "mbarrier_arrive"
---@return string?
function pipelines.call(lines, n, ring, op)
  local prefix, side = ring:match "^(.-)_?(%l+)$"
  local method = METHODS[side] and METHODS[side][op]
  if not method then return nil end
  local role = CONSUMER[method] and CONSUMER or PRODUCER
  local best
  for _, o in ipairs(pipelines.operations(lines)) do
    local name = o.pipe and o.pipe:gsub("%.", "_")
    if role[o.op] and name:sub(-#prefix) == prefix
      and not (best and math.abs(best.line - n) <= math.abs(o.line - n)) then
      best = o
    end
  end
  return best and ("%s:%s(%s)"):format(best.pipe, method, best.state)
end

-- Divides the operations on one state in one block into rounds, each of which
-- ends with an advance. A round is {list of operations, last = the advance or
-- nil, of = set of operations' names}.
local function rounds_of(list)
  local rounds, now = {}, {of = {}}
  for _, o in ipairs(list) do
    now[#now + 1], now.of[o.op] = o, true
    if o.op == "advance" then
      now.last = o
      rounds[#rounds + 1], now = now, {of = {}}
    end
  end
  if now[1] then rounds[#rounds + 1] = now end
  return rounds
end

-- Returns the line after which code that uses expression `name` can be
-- inserted. It is the line that declares the expression's first name, or else
-- the block's first line.
local function start_of(lines, block, name, before)
  local first = name:match "^[%w_]+"
  for k = before - 1, block + 1, -1 do
    if lines[k]:find("^%s*local%s[^=]*%f[%w_]" .. first .. "%f[^%w_]") then
      return k
    end
  end
  return block
end

-- Returns the number of the line that ends the block in which line n is.
local function end_of(lines, block, n)
  local indent = block > 0 and indent_of(lines[block]) or -1
  for k = n + 1, #lines do
    if lines[k]:find "%S" and indent_of(lines[k]) <= indent then return k end
  end
  return #lines + 1
end

-- Calls add(line, code, behind) for each operation that is missing in a round
-- of a consumer or a producer. The code belongs after the line if `behind` is
-- true, else before it. If the round only advances a state, the kernel may have
-- released a copy of the state. `others` then names the pipelines to which the
-- state may belong: those with a consumer_release in the block.
local function complete_round(r, lines, others, add)
  local of, pipe = r.of, nil
  for _, o in ipairs(r) do pipe = pipe or o.pipe end
  local state, block, final = r[1].state, r[1].block, r[#r]
  if not pipe then
    for other in pairs(others) do
      add(start_of(lines, block, state, r[1].line),
          ("%s:consumer_wait(%s)"):format(other, state), true)
    end
    return
  end
  local function call(method)
    return ("%s:%s(%s)"):format(pipe, method, state)
  end
  local function early(method)
    add(start_of(lines, block, state, r[1].line), call(method), true)
  end
  if of.consumer_release or of.consumer_wait then
    if not of.consumer_wait then early "consumer_wait" end
    if not r.last then return add(final.line, state .. ":advance()", true) end
    if not of.consumer_release and not others[pipe] then
      add(r.last.line, call "consumer_release")
    end
  elseif of.producer_acquire or of.producer_commit
    or of.producer_get_barrier then
    if not of.producer_acquire then early "producer_acquire" end
    if not r.last then
      -- After a producer_commit, the advance belongs right behind it. Otherwise
      -- copies that use the state may follow, so it belongs at the block's end.
      return add(of.producer_commit and final.line
        or end_of(lines, block, final.line) - 1, state .. ":advance()", true)
    end
    if not of.producer_commit and not of.producer_get_barrier then
      add(r.last.line, call "producer_commit")
    end
  end
end

-- Returns the set of states that are clones of other states. Clones are
-- excluded from the search, because they have no complete rounds.
local function copies_of(lines)
  local set = {}
  for _, line in ipairs(lines) do
    local names = line:match "^%s*local%s+(.-)=.*:clone%("
    for name in (names or ""):gmatch "[%a_][%w_]*" do set[name] = true end
  end
  return set
end

--- Returns the missing operations of pipelines: {line =, behind = true if the
-- code belongs after the line, code =}.
---@param lines string[]
---@return table[]
function pipelines.lacks(lines)
  local groups, list, releases = {}, {}, {}
  local copies = copies_of(lines)
  for _, o in ipairs(pipelines.operations(lines)) do
    local key = o.block .. " " .. o.state
    local group = groups[key]
    if not group and not copies[o.state] then
      group = {}
      groups[key], groups[#groups + 1] = group, group
    end
    if group then group[#group + 1] = o end
    if o.op == "consumer_release" then
      releases[o.block] = releases[o.block] or {}
      releases[o.block][o.pipe] = true
    end
  end
  for _, group in ipairs(groups) do
    for _, r in ipairs(rounds_of(group)) do
      complete_round(r, lines, releases[r[1].block] or {},
        function(line, code, behind)
          list[#list + 1] = {line = line, code = code, behind = behind}
        end)
    end
  end
  return list
end

return pipelines
-- SPDX-License-Identifier: MIT
