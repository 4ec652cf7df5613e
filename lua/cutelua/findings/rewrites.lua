--- Rewrites code that has a known mistake: memory that nothing sets to zero, a
-- barrier within a branch, sums that threads update without atomics, an access
-- without a bound, a wrong index. The functions have the same parameters as
-- those of cutelua.findings.variants. Each is called only for kinds of faults
-- with a weight for it in cutelua.findings.likely.
local changes = require "cutelua.findings.changes"

local rewrites = {}

-- Replaces a call that makes a tensor with undefined elements by one that makes
-- zeros.
function rewrites.zeros(c, _, add)
  for i, t in ipairs(c.tokens) do
    local before, after = c.tokens[i - 1], c.tokens[i + 1]
    local new = t.text == "empty" and "zeros"
      or t.text == "empty_like" and "zeros_like"
    if new and before and before.text == "." and after
      and after.text:find "^[({]" then
      add(i, i, new, 12, ("%s in place of %s"):format(new, t.text))
    end
  end
end

-- Reports whether the text adds to elements of the tensor `name`.
local function accumulates(c, name)
  return c.text:find("atomic_%l+%(" .. name .. "%.iterator%f[%W]")
    or c.text:find("%f[%w_]" .. name .. "(%b[]) = " .. name .. "%1 %+ ")
end

-- Inserts code by which one thread clears a shared tensor that accumulates
-- sums.
function rewrites.cleared(c, _, add)
  for _, call in ipairs(c.calls) do
    local s = call.name == "make_smem_tensor" and call.statement
    for name in pairs(s and s.last_line == s.line and s.defines or {}) do
      if accumulates(c, name) then
        local indent = "\n" .. changes.indent(c.lines[s.line])
        local fill = ("cute.when(cute.arch.thread_idx():eq(0), function() "
          .. "%s:fill(0) end)"):format(name)
        add(s.last, s.last, table.concat({c.tokens[s.last].text, fill,
          "cute.arch.sync_threads()"}, indent), 12, "clear " .. name)
      end
    end
  end
end

local BARRIERS = {sync_threads = true, barrier = true, sync_warp = true,
  cluster_arrive = true, cluster_wait = true, cluster_arrive_relaxed = true}

-- Moves a barrier out of a branch, to the line after the branch's end.
function rewrites.unbranched(c, near, add)
  for _, call in ipairs(c.calls) do
    local s, branch = call.statement, nil
    for _, other in ipairs(BARRIERS[call.name] and near(s) and c.calls or {}) do
      if other.name == "when" and other.first < s.first and other.last > s.last
        and not (branch and branch.first > other.first) then
        branch = other
      end
    end
    if branch and s.last == call.last then
      local text = c:text_of(s.first, s.last)
      add(s.first, branch.last, ("%s\n%s%s"):format(
        c:text_of(s.last + 1, branch.last),
        changes.indent(c.lines[branch.statement.line]), text), 4,
        ("move %s behind the branch"):format(text))
    end
  end
end

-- Returns the index of the first token of the expression that a bracket
-- follows: of x in x.y[i].
local function owner(c, call)
  local k = call.first - 1
  while c.tokens[k - 1] and c.tokens[k - 1].text == "." do k = k - 2 end
  return k
end

-- Returns the index of the last token of a value that begins at token i. The
-- value ends at the end of the line at the latest.
local function value_end(c, i)
  local line = c.tokens[i].line
  while c.tokens[i + 1] and c.tokens[i + 1].line == line
    and c.tokens[i + 1].text ~= "end" and c.tokens[i + 1].text ~= ";" do
    i = i + 1
  end
  return i
end

-- If `value` is computed from `element` by an operation that can be atomic,
-- returns the operation's name and its other operand; else nil.
local function operation(value, element)
  if value:sub(1, #element + 3) == element .. " + " then
    return "add", value:sub(#element + 4)
  end
  local op, first, other = value:match "^cute%.(m%l%l)%((.-%]), (.+)%)$"
  if first == element then return op, other end
end

-- Makes updates of an element, such as x[i] = x[i] + y, atomic.
function rewrites.atomics(c, near, add)
  for _, call in ipairs(c.calls) do
    local mark, value = c.tokens[call.last + 1], c.tokens[call.last + 2]
    if call.index and near(call.statement) and mark and mark.text == "="
      and value and #call.arguments == 1 then
      local from, last = owner(c, call), value_end(c, call.last + 2)
      local op, operand = operation(c:text_of(call.last + 2, last),
                                    c:text_of(from, call.last))
      local index = c:text_of(table.unpack(call.arguments[1]))
      if op and not index:find "^{" then
        local new = ("cute.arch.atomic_%s(%s.iterator%s, %s)"):format(op,
          c:text_of(from, call.first - 1),
          index == "0" and "" or (" + (%s)"):format(index), operand)
        add(from, last, new, 0, "use " .. new)
      end
    end
  end
end

-- Returns the condition, as text, under which an index or coordinate is within
-- a tensor; nil if it consists only of constants.
local function bounds(c, call, tensor)
  local first, last = table.unpack(call.arguments[1])
  local list = {}
  local function add(index, extent)
    if not index:find "^%d+$" then
      list[#list + 1] = ("cute.lt(%s, %s)"):format(index, extent)
    end
  end
  if c.tokens[first].text ~= "{" then
    add(c:text_of(first, last), ("cute.size(%s)"):format(tensor))
  end
  for _, modes in ipairs(c.calls) do
    for k, a in ipairs(modes.first == first and modes.arguments or {}) do
      add(c:text_of(a[1], a[2]), ("%s.shape[%d]"):format(tensor, k))
    end
  end
  return list[1] and table.concat(list, " & ")
end

-- Executes a statement only if the element that it accesses is within its
-- tensor.
function rewrites.guards(c, near, add)
  local known = {}
  for _, call in ipairs(c.calls) do
    local s = call.statement
    local begin = near(s) and call.index and #call.arguments == 1
      and c.tokens[s.first].text
    local is_plain = begin and begin ~= "local" and begin ~= "for"
      and begin ~= "return" and s.line == s.last_line
    local condition = is_plain
      and bounds(c, call, c:text_of(owner(c, call), call.first - 1))
    local key = condition and ("%d %s"):format(s.first, condition)
    if condition and not known[key] then
      known[key] = true
      add(s.first, s.last, ("cute.when(%s, function() %s end)"):format(
        condition, c:text_of(s.first, s.last)), 2, "only where " .. condition)
    end
  end
end

-- Adds a lower bound of 0 to a condition with an upper bound, such as i:lt(n)
-- or cute.lt(i, n).
function rewrites.lower_bounds(c, near, add)
  for _, call in ipairs(c.calls) do
    local compares = (call.name == "lt" or call.name == "le")
      and near(call.statement)
    local index = compares and call.chain:match "^([%a_][%w_]*):%l+$"
    local a = compares and call.chain:find "^cute%.%l+$" and call.arguments[1]
    index = index or a and c:text_of(a[1], a[2])
    if index and #index <= 40 then
      local first = call.first - 3
      add(first, call.last, ("(cute.ge(%s, 0) & %s)"):format(index,
        c:text_of(first, call.last)), 0, ("require %s >= 0"):format(index))
    end
  end
end

-- Exchanges the last arguments of two calls of the same function in a
-- statement, such as the bounds m and n in lt(i, m) & lt(j, n).
function rewrites.crossed(c, near, add)
  local last = {}
  for _, call in ipairs(c.calls) do
    local s, n = call.statement, #call.arguments
    local other = near(s) and n > 1 and call.chain and last[call.chain]
    if other and other.statement == s and #other.arguments == n
      and other.last < call.first then
      local a, b = other.arguments[n], call.arguments[n]
      local one, two = c:text_of(a[1], a[2]), c:text_of(b[1], b[2])
      if one ~= two then
        add(a[1], b[2], two .. c.text:sub(c.tokens[a[2]].to + 1,
          c.tokens[b[1]].from - 1) .. one, 5,
          ("exchange %s and %s"):format(one, two))
      end
    end
    last[call.chain or 0] = call
  end
end

-- Reports whether token i is an index: i in x[i], x(_, i) or i % stages.
local function is_index(c, i)
  local before, after = c.tokens[i - 1], c.tokens[i + 1]
  if not (c.tokens[i].name and before and after) then return false end
  return after.text == "%" or before.text == "[" and after.text == "]"
    or before.text == "," and after.text == ")"
       and c.tokens[i - 2].text == "_"
end

-- Returns the names in the text that are used as indices, or that hold the
-- index of a thread or block. They are in the order of the text.
local function indices(c)
  if not c.indices then
    c.indices = {}
    for i, t in ipairs(c.tokens) do
      local is_number = t.statement and t.statement.defines[t.text]
        and c.lines[t.line]:find "_idx"
      if (is_number or is_index(c, i)) and not c.indices[t.text] then
        c.indices[t.text] = true
        table.insert(c.indices, t.text)
      end
    end
  end
  return c.indices
end

-- Replaces an index by another index of the text.
function rewrites.indices(c, near, add)
  for i, t in ipairs(c.tokens) do
    for _, other in ipairs(near(t.statement) and is_index(c, i) and indices(c)
                           or {}) do
      if other ~= t.text then add(i, i, other, 4, "index by " .. other) end
    end
  end
end

-- Doubles the bound in a comparison.
function rewrites.doubles(c, near, add)
  for _, call in ipairs(c.calls) do
    local a = near(call.statement) and (call.name == "lt" or call.name == "le")
      and call.arguments[#call.arguments]
    if a and a[1] == a[2] and c.tokens[a[1]].name then
      local text = c:text_of(a[1], a[2])
      add(a[1], a[2], "2 * " .. text, 6, "up to 2 * " .. text)
    end
  end
end

return rewrites
-- SPDX-License-Identifier: MIT
