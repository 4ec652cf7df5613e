--- Finds the lines in which two texts differ.
local report = require "cute.lang.report"

local lines = {}

-- The largest number of edits that the search finds. If two texts differ by
-- more, all lines count as changed.
local MOST = 1000

--- Returns the lines of a text.
---@param text string
---@return string[]
function lines.of(text)
  local out = {}
  for line in text:gmatch "([^\n]*)\n?" do out[#out + 1] = line end
  if out[#out] == "" then out[#out] = nil end
  return out
end

-- Searches for the fewest edits, by the algorithm of Myers (1986). Returns a
-- table `all` and a number d. all[k] has the ends of the furthest paths of k
-- edits, by diagonal; d is the least number of edits that reaches the ends of
-- both texts. Returns nil if MOST edits are not enough.
local function furthest(a, b, from, m, n)
  local at, all = {[1] = 0}, {}
  for d = 0, MOST do
    local now = {}
    for k, x in pairs(at) do now[k] = x end
    all[d] = now
    for k = -d, d, 2 do
      local down = k == -d or k ~= d and at[k - 1] < at[k + 1]
      local x = down and at[k + 1] or at[k - 1] + 1
      while x < m and x - k < n and a[from + x + 1] == b[from + x - k + 1] do
        x = x + 1
      end
      at[k] = x
      if x >= m and x - k >= n then return all, d end
    end
  end
end

-- Adds to `out` the edits that convert m lines of text a to n lines of text b.
-- In each text, these lines begin after the first `from` lines.
local function middle(out, a, b, from, m, n)
  local all, d = furthest(a, b, from, m, n)
  if not all then
    for i = 1, m do out[#out + 1] = {"-", a[from + i]} end
    for i = 1, n do out[#out + 1] = {"+", b[from + i]} end
    return
  end
  local back, x, y = {}, m, n
  for step = d, 1, -1 do
    local at, k = all[step], x - y
    local down = k == -step or k ~= step and at[k - 1] < at[k + 1]
    local before = down and k + 1 or k - 1
    local x0 = at[before]
    local y0 = x0 - before
    while x > x0 and y > y0 and x > 0 and y > 0
      and a[from + x] == b[from + y] do
      x, y = x - 1, y - 1
      back[#back + 1] = {" ", a[from + x + 1]}
    end
    if down then back[#back + 1] = {"+", b[from + y]}
    else back[#back + 1] = {"-", a[from + x]} end
    x, y = x0, y0
  end
  for i = x, 1, -1 do back[#back + 1] = {" ", a[from + i]} end
  for i = #back, 1, -1 do out[#out + 1] = back[i] end
end

--- Returns the edits that convert a into b: {{" ", line}, {"-", line}, {"+",
-- line}, ...}. Unchanged lines have " ".
---@param a string[]
---@param b string[]
---@return table[]
function lines.diff(a, b)
  local first, last = 0, 0
  while first < #a and first < #b and a[first + 1] == b[first + 1] do
    first = first + 1
  end
  while last < #a - first and last < #b - first
    and a[#a - last] == b[#b - last] do
    last = last + 1
  end
  local out = {}
  for i = 1, first do out[i] = {" ", a[i]} end
  middle(out, a, b, first, #a - first - last, #b - first - last)
  for i = #a - last + 1, #a do out[#out + 1] = {" ", a[i]} end
  return out
end

-- Returns the edits that remove or add lines. If there are more than `limit`,
-- removed and added lines of each run alternate, so that the first `limit`
-- edits include added lines.
local function changed(edits, limit)
  local out, runs, run = {}, {}, nil
  for _, e in ipairs(edits) do
    if e[1] == " " then
      run = nil
    else
      run = run or {["-"] = {}, ["+"] = {}, from = #out}
      runs[#runs + 1], out[#out + 1] = run, e
      table.insert(run[e[1]], e)
    end
  end
  if #out <= limit then return out end
  for _, one in ipairs(runs) do
    local old, new, n = one["-"], one["+"], one.from
    for k = 1, math.max(#old, #new) do
      for _, e in ipairs {old[k] or new[k], old[k] and new[k]} do
        n = n + 1
        out[n] = e
      end
    end
  end
  return out
end

--- Returns the changed lines as text, "- old" and "+ new", each after `indent`.
-- At most `limit` lines are shown, followed by the number of the others.
-- Returns nil if no line differs.
---@param a string
---@param b string
---@param indent string
---@param limit integer
---@return string?
function lines.changes(a, b, indent, limit)
  local out = {}
  local edits = changed(lines.diff(lines.of(a), lines.of(b)), limit)
  if #edits == 0 then return nil end
  for k = 1, math.min(#edits, limit) do
    out[k] = indent .. edits[k][1] .. " " .. edits[k][2]
  end
  local left = #edits - #out
  if left > 0 then
    out[#out + 1] = indent .. "... " .. report.plural(left,
      "more line differs", "more lines differ")
  end
  return table.concat(out, "\n")
end

return lines
-- SPDX-License-Identifier: MIT
