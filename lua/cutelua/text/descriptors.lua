--- Finds descriptors in SASS with a half that was never written. A descriptor
-- is a pair of uniform registers, as in desc[UR4] or gdesc[UR4]. NVRTC 13.0
-- generated such code for sm_100 in rare cases; NVRTC 13.2 does not.
local descriptors = {}

-- Returns the mnemonic of an instruction and the text of its operands.
local function parts(line)
  local code = line:gsub("^%s*@!?U?P[%dT]+%s+", ""):gsub("^%s+", "")
  return code:match "^(%S+)%s*(.*)$"
end

-- Returns the number of 32-bit registers in an instruction's result.
local function width(op)
  local n = 1
  for bits in op:gmatch "%.(%d+)%f[%.%z]" do n = math.max(n, bits // 32) end
  if op:find "%.WIDE" or op:find "^CS2UR" then n = math.max(n, 2) end
  return n
end

-- Returns the first uniform register that an instruction writes, and the number
-- of registers that it writes.
local function written(op, rest)
  if op:find "SETP" then return nil end
  local first = rest:gsub("^U?P[%dT]+,%s*", ""):match "^UR(%d+)%f[%D]"
  return first and math.tointeger(first), width(op)
end

-- Returns the indices of the instructions that may follow instruction i; nil if
-- they are unknown. joins: indices of the labels where threads may reconverge.
local function following(lines, labels, i, joins)
  local op, rest = parts(lines[i])
  op = op or ""
  local guarded = lines[i]:find "^%s*@" ~= nil
  local to = labels[rest and rest:match "`%((%.L[%w_]+)%)"]
  if op:find "^BRX" or op:find "^JMX" then return nil end
  if op:find "^BSYNC" then
    return table.move(joins, 1, #joins, 2, {i + 1})
  elseif op:find "^EXIT" or op:find "^RET" then
    return guarded and {i + 1} or {}
  elseif op:find "^BRA" or op:find "^JMP" then
    local always = not guarded and rest:find "^`" ~= nil
    return always and {to} or {i + 1, to}
  end
  -- Execution may continue after a call, or in the called function.
  return {i + 1, op:find "^CALL" and to or nil}
end

-- Returns the line index of each label. Also returns the line indices of the
-- labels at which threads reconverge after BSSY instructions.
local function targets(lines)
  local labels, joins = {}, {}
  for i, line in ipairs(lines) do
    local label = line:match "^(%.L[%w_]*):"
    if label then labels[label] = i end
  end
  for _, line in ipairs(lines) do
    local label = line:match "BSSY.*`%((%.L[%w_]+)%)"
    if labels[label] then joins[#joins + 1] = labels[label] end
  end
  return labels, joins
end

-- Returns, for each instruction, the set of uniform registers that are written
-- on some path to it. Returns nil if a path is unknown.
local function reaching(lines)
  local labels, joins = targets(lines)
  local sets, work = {[1] = {}}, {1}
  while #work > 0 do
    local i = table.remove(work)
    local op, rest = parts(lines[i])
    local after = {}
    for r in pairs(sets[i]) do after[r] = true end
    local first, n = nil, 0
    if op then first, n = written(op, rest) end
    for k = 0, first and n - 1 or -1 do after[first + k] = true end
    local next_ones = following(lines, labels, i, joins)
    if not next_ones then return nil end
    for _, j in ipairs(next_ones) do
      local set, news = sets[j] or {}, not sets[j]
      for r in pairs(after) do
        if not set[r] then set[r], news = true, true end
      end
      if lines[j] and news then
        sets[j] = set
        work[#work + 1] = j
      end
    end
  end
  return sets
end

--- Returns the halves of descriptors that are written on no path to the
-- instruction that uses them, as a list of {index of the instruction,
-- register}.
---@param lines string[] the instructions and labels of a kernel, as in a
-- listing of cutelua.text.asm
---@return {index: integer, register: integer}[]
function descriptors.unwritten(lines)
  local list, sets = {}, lines[1] and reaching(lines) or {}
  for i, set in pairs(sets or {}) do
    for first in lines[i]:gmatch "%f[%w]g?desc%[UR(%d+)%]" do
      local low = math.tointeger(first)
      for r = low, low + 1 do
        if not set[r] then list[#list + 1] = {index = i, register = r} end
      end
    end
  end
  table.sort(list, function(a, b)
    return a.index < b.index or a.index == b.index and a.register < b.register
  end)
  return list
end

return descriptors
-- SPDX-License-Identifier: MIT
