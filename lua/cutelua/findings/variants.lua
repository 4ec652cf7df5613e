--- Finds small changes of statements that may repair a fault: an argument taken
-- from another call of the same function, exchanged coordinates, a similar
-- name, another number or comparison, registers that are cleared. Whether a
-- change repairs the fault is unknown until cutelua.findings.trials tries it.
--
-- Each function in `variants.ALL` is called as f(c, near, add). c is the
-- script's text (cutelua.findings.code). near(s) returns the distance of
-- statement s from the fault, or nil if s must not change. add(first, last,
-- text, weight, description) adds the change that replaces the tokens from
-- `first` to `last` by `text`. Changes are tried in order of the distance plus
-- the weight, which is large for unlikely changes.
local changes = require "cutelua.findings.changes"

local variants = {}

---------------------------------------------------------------------------
-- Names
---------------------------------------------------------------------------

-- Letters that distinguish similar names: capitals anywhere, as in tAgA and
-- tBgB, and small letters at the end, as in tma_a and tma_b.
local UPPER, LOWER = "[A-DSX]", {"[abc]", "[mnk]", "[ij]", "[xy]", "[st]",
                                 "[01]"}

-- Returns patterns of a name: its distinguishing letters are replaced by their
-- class. Two names are similar if they share a pattern.
local function skeletons(name)
  local list = {}
  local upper, n = name:gsub(UPPER, "?")
  if n > 0 and #name > 1 then list[1] = upper end
  for _, letters in ipairs(LOWER) do
    local head = name:match("^(.*)" .. letters .. "$")
    if head then list[#list + 1] = head .. letters end
  end
  return list
end

-- Returns the set of all names in a text, except names of fields.
local function names_of(c)
  if c.names then return c.names end
  c.names = {}
  for i, t in ipairs(c.tokens) do
    local before = c.tokens[i - 1] and c.tokens[i - 1].text
    if t.name and before ~= "." and before ~= ":" then
      c.names[t.text] = true
    end
  end
  return c.names
end

-- Returns the names in the text that are similar to `name`, in the order of the
-- text.
local function similar(c, name)
  if not c.similar then
    c.similar = {}
    local known = {}
    for i, t in ipairs(c.tokens) do
      local before = c.tokens[i - 1] and c.tokens[i - 1].text
      if t.name and not known[t.text] and before ~= "." and before ~= ":" then
        known[t.text] = true
        for _, key in ipairs(skeletons(t.text)) do
          c.similar[key] = c.similar[key] or {}
          table.insert(c.similar[key], t.text)
        end
      end
    end
  end
  local list = {}
  for _, key in ipairs(skeletons(name)) do
    for _, other in ipairs(c.similar[key] or {}) do
      if other ~= name then list[#list + 1] = other end
    end
  end
  return list
end

-- Changes the names in a text as `from` was changed to `to`: replaces each
-- letter of `from` that differs from the letter of `to` at the same position.
-- Only names whose new form occurs in the script c are changed.
local function renamed(c, text, from, to)
  if #from ~= #to then return text end
  local map = {}
  for i = 1, #from do
    local a, b = from:sub(i, i), to:sub(i, i)
    if a ~= b then map[a] = b:find "%w" and b or nil end
  end
  return (text:gsub("%f[%w_][%a_][%w_]*", function(name)
    local new = name:gsub(".", map)
    return new ~= name and names_of(c)[new] and new or nil
  end))
end

-- Returns the set of names that the script defines: locals and parameters.
local function defined(c)
  local set = {}
  for _, s in ipairs(c.statements) do
    for name in pairs(s.defines) do set[name] = true end
  end
  for list in c.text:gmatch "function[^()]*%(([^()]*)%)" do
    for name in list:gmatch "[%w_]+" do set[name] = true end
  end
  return set
end

-- Reports whether one name may be a misspelling of the other: after their
-- common beginning and end are removed, at most two characters are left.
local function is_misspelt(a, b)
  local n, most = 0, math.min(#a, #b) < 4 and 1 or 2
  if math.abs(#a - #b) > 2 or #a < 2 or #b < 2 then return false end
  while n < #a and a:byte(n + 1) == b:byte(n + 1) do n = n + 1 end
  local k = 0
  while k < #a - n and k < #b - n and a:byte(-k - 1) == b:byte(-k - 1) do
    k = k + 1
  end
  return math.max(#a, #b) - n - k <= most
end

-- Replaces names by similar names. If a name has no definition, either the name
-- or its definition is misspelt, so both are tried.
local function add_names(c, near, add)
  local known, unknown = defined(c), {}
  local function is_unknown(name) return not known[name] and _G[name] == nil end
  for i, t in ipairs(c.tokens) do
    local before, after = c.tokens[i - 1], c.tokens[i + 1]
    if t.name and near(t.statement) and not (before and (before.text == "."
      or before.text == ":")) then
      local lost = is_unknown(t.text) and not (after and after.text == "=")
      local defines = t.statement.defines[t.text]
      for k, other in ipairs(similar(c, t.text)) do
        local weight = defines and 20 or lost and known[other] and 0 or 12
        if k <= 4 then add(i, i, other, weight + k, "use " .. other) end
      end
      if lost then unknown[#unknown + 1] = {t.text, i} end
    end
  end
  for _, one in ipairs(unknown) do
    local name, at = one[1], one[2]
    for other in pairs(known) do
      if is_misspelt(name, other) then
        add(at, at, other, 1, "use " .. other)
      end
    end
    for i, t in ipairs(c.tokens) do
      local s = t.statement
      if t.name and s and s.defines[t.text] and i <= s.first + 8
        and (is_misspelt(name, t.text) or skeletons(name)[1]
             and skeletons(name)[1] == skeletons(t.text)[1]) then
        add(i, i, name, 2 - (near(s) or 30), "use " .. name)
      end
    end
  end
end

-- Calls f(index, token, field) for each name that precedes a field or method.
local function each_owner(c, f)
  for i, t in ipairs(c.tokens) do
    local mark, field = c.tokens[i + 1], c.tokens[i + 2]
    local before = c.tokens[i - 1] and c.tokens[i - 1].text
    if t.name and mark and (mark.text == "." or mark.text == ":") and field
      and before ~= "." and before ~= ":" then
      f(i, t, mark.text .. field.text)
    end
  end
end

-- Returns, for each field or method, the names that precede it in the script.
local function owners_of(c)
  if c.owners then return c.owners end
  c.owners = {}
  each_owner(c, function(_, t, key)
    local list = c.owners[key] or {}
    c.owners[key] = list
    if not list[t.text] then
      list[t.text] = true
      table.insert(list, t.text)
    end
  end)
  return c.owners
end

-- Replaces the name before a field or method by another name, one that precedes
-- the same field or method elsewhere.
local function add_owners(c, near, add)
  local owners = owners_of(c)
  each_owner(c, function(i, t, key)
    for k, other in ipairs(near(t.statement) and owners[key] or {}) do
      if other ~= t.text and k <= 4 then
        add(i, i, other, 9, ("use %s%s"):format(other, key))
      end
    end
  end)
end

-- Returns the names that precede the same fields and methods as `name` does.
-- Names with more of them in common come first.
local function companions(c, name)
  local list, shared = {}, {}
  for _, names in pairs(owners_of(c)) do
    for _, other in ipairs(names[name] and names or {}) do
      if not shared[other] then list[#list + 1] = other end
      shared[other] = (shared[other] or 0) + 1 / #names
    end
  end
  table.sort(list, function(a, b)
    if shared[a] ~= shared[b] then return shared[a] > shared[b] end
    return a < b
  end)
  return list
end

---------------------------------------------------------------------------
-- Arguments
---------------------------------------------------------------------------

-- Returns the keys of a call. Arguments are taken only from calls that share a
-- key.
local function keys_of(c, call)
  if call.name == "{" or call.name == "(" then return {} end
  local keys = {call.name}
  if call.index then keys[2] = "[" end
  local first = call.arguments[1]
  local sliced = first and c:text_of(first[1], first[2])
  for _, key in ipairs(skeletons(call.name)) do keys[#keys + 1] = "?" .. key end
  if sliced == "_" then
    keys[#keys + 1] = "_" .. #call.arguments
  end
  return keys
end

local function line_of(c, call) return c.tokens[call.first].line end

-- Adds changes that replace arguments of a call by those of the call `other`.
local function borrow(c, call, other, add, weight)
  local n, m = #call.arguments, #other.arguments
  local function own(text)
    local new = renamed(c, text, other.name, call.name)
    if new == text and other.arguments[1] and call.arguments[1] then
      new = renamed(c, text, c:text_of(table.unpack(other.arguments[1])),
                    c:text_of(table.unpack(call.arguments[1])))
    end
    return new
  end
  for k = 1, math.min(n, m) do
    local a, b = call.arguments[k], other.arguments[k]
    local was, text = c:text_of(a[1], a[2]), c:text_of(b[1], b[2])
    if #text <= 60 and #was <= 60 and not text:find "\n" then
      local new = own(text)
      for j, one in ipairs {new, text ~= new and text or nil} do
        if one ~= was then
          add(a[1], a[2], one, weight + 3 * j - 3, ("use %s"):format(one))
        end
      end
    end
  end
  if m > n and n > 0 then
    local from, to = other.arguments[n + 1][1], other.arguments[m][2]
    local text, last = c:text_of(from, to), call.arguments[n][2]
    if #text <= 100 and not text:find "\n" then
      add(last, last, ("%s, %s"):format(c.tokens[last].text, own(text)),
          weight + (text:find "^pred" and -3 or text:find "^{" and -2 or 5),
          "add " .. own(text))
    end
  elseif n > m and m > 0 then
    local from, to = call.arguments[m][2], call.arguments[n][2]
    add(from, to, c.tokens[from].text, weight + 8, "leave out "
      .. c:text_of(call.arguments[m + 1][1], to))
  end
end

-- The largest number of other calls from which a call takes arguments.
local COMPARED = 6

-- Returns the calls of each key in the order of the text: {[key] = list of
-- calls}, and the index of a call in its list: {[key] = {[call] = index}}.
local function calls_by_key(c)
  local by, index = {}, {}
  for _, call in ipairs(c.calls) do
    for _, key in ipairs(keys_of(c, call)) do
      by[key] = by[key] or {}
      table.insert(by[key], call)
    end
  end
  for key, list in pairs(by) do
    table.sort(list, function(a, b) return a.first < b.first end)
    index[key] = {}
    for i, call in ipairs(list) do index[key][call] = i end
  end
  return by, index
end

-- Returns at most COMPARED calls of `list` that are nearest to line `here`, the
-- nearest first. Of two calls at the same distance, the earlier one is first.
-- `list` is in the order of the text, and its call i is on line `here`.
local function nearest(c, list, i, here)
  local from, to = math.max(1, i - COMPARED), math.min(#list, i + COMPARED)
  while from > 1 and line_of(c, list[from - 1]) == line_of(c, list[from]) do
    from = from - 1
  end
  local out = table.move(list, from, to, 1, {})
  table.sort(out, function(a, b)
    local x, y = math.abs(line_of(c, a) - here), math.abs(line_of(c, b) - here)
    if x ~= y then return x < y end
    return a.first < b.first
  end)
  return table.move(out, 1, COMPARED, 1, {})
end

local function add_arguments(c, near, add)
  local by, index = calls_by_key(c)
  for _, call in ipairs(c.calls) do
    for nth, key in ipairs(near(call.statement) and keys_of(c, call) or {}) do
      local here = line_of(c, call)
      for _, other in ipairs(nearest(c, by[key], index[key][call], here)) do
        if other ~= call then
          borrow(c, call, other, add, 3 + 3 * nth
            + math.min(math.abs(line_of(c, other) - here) / 8, 6))
        end
      end
    end
  end
end

local function add_swaps(c, near, add)
  for _, call in ipairs(c.calls) do
    local list = near(call.statement) and call.arguments or {}
    for k = 1, #list - 1 do
      local a, b = list[k], list[k + 1]
      local one, two = c:text_of(a[1], a[2]), c:text_of(b[1], b[2])
      if one ~= two and #one + #two <= 60 and not (one .. two):find "[\n=]" then
        local weight = call.name == "{" and 6
          or (one == "_" or two == "_") and 8 or 11
        add(a[1], b[2], ("%s, %s"):format(two, one), weight,
            ("swap %s and %s"):format(one, two))
      end
    end
  end
end

---------------------------------------------------------------------------
-- Numbers and operators
---------------------------------------------------------------------------

-- Tokens that are often confused, each with the tokens that may replace it.
local CONFUSED = {lt = {"le"}, le = {"lt"}, ge = {"gt"}, gt = {"ge"},
  min = {"max"}, max = {"min"}, ["<"] = {"<="}, ["<="] = {"<"},
  [">"] = {">="}, [">="] = {">"}, ["+"] = {"-"}, ["-"] = {"+"},
  ["//"] = {"%", "*"}, ["%"] = {"//"}, ["*"] = {"//", "+"},
  ["&"] = {"|"}, ["|"] = {"&"}, floor_div = {"ceil_div"},
  partition_S = {"partition_D"}, partition_D = {"partition_S"},
  partition_A = {"partition_B", "partition_C"},
  partition_B = {"partition_A", "partition_C"},
  partition_C = {"partition_A", "partition_B"},
  block_idx = {"block_idx_in_cluster"}, block_idx_in_cluster = {"block_idx"}}
local LIKELY = {block_idx = 7, lt = 5, le = 3, gt = 5, ge = 3, floor_div = 4,
                partition_S = 8, partition_D = 8, partition_A = 8,
                partition_B = 8, partition_C = 8}

local function add_operators(c, near, add)
  for i, t in ipairs(c.tokens) do
    local text, first = t.text, i
    if text == "/" and c.tokens[i + 1] and c.tokens[i + 1].text == "/" then
      text, i = "//", i + 1
    elseif text == "/" then
      text = ""
    end
    -- Without clusters, every block has the index 0 in its cluster, so that
    -- `block_idx_in_cluster` is of no use.
    local alone = text == "block_idx" and not c.text:find "cluster%s*="
    for _, new in ipairs(near(t.statement) and not alone and CONFUSED[text]
                         or {}) do
      add(first, i, new, LIKELY[text] or 13, ("%s in place of %s"):format(new,
                                                                          text))
    end
  end
end

-- Returns numbers that may replace a number, such as its neighbours.
local function other_numbers(text)
  local n = math.tointeger(tonumber(text))
  if not n then return {} end
  if text:find "^0[xX]" then
    local bits = 4 * (#text - 2)
    local list = {("0x%x"):format(n << bits | n)}
    list[2] = ("0x%x"):format(n >> (bits // 2))
    return bits < 64 and list or {}
  end
  local list = {n + 1, n > 0 and n - 1 or nil}
  if n > 1 then
    list[#list + 1] = 2 * n
    if n % 2 == 0 then list[#list + 1] = n // 2 end
  end
  if n > 2 then list[#list + 1] = 0 end
  return list
end

local function add_numbers(c, near, add)
  for i, t in ipairs(c.tokens) do
    if near(t.statement) and t.text:find "^%d" then
      for k, new in ipairs(other_numbers(t.text)) do
        local before = c.tokens[i - 1].text
        local weight = before:find "^[%%/&]$" and 8 or 12
        add(i, i, tostring(new), weight + k, ("%s in place of %s"):format(new,
          t.text))
      end
    end
  end
end

local COUNTING = {["("] = true, ["{"] = true, lt = true, le = true, gt = true,
                  ge = true, range = true, min = true, max = true}

-- Reports whether the arguments of a call are likely to be numbers, such as
-- coordinates and bounds.
local function counts(c, call)
  local first = call.arguments[1]
  return COUNTING[call.name] or first and c:text_of(first[1], first[2]) == "_"
end

-- Makes waits for groups of asynchronous operations leave fewer groups pending.
local function add_waits(c, near, add)
  for _, call in ipairs(c.calls) do
    local a = near(call.statement) and call.name:find "wait_group$"
      and call.arguments[1]
    local text = a and c:text_of(a[1], a[2])
    local n = text and math.tointeger(tonumber(text))
    local less = n and n > 0 and {n - 1, 0} or text and not n
      and {text .. " - 1", "0"}
    for _, new in ipairs(less or {}) do
      add(a[1], a[2], tostring(new), 6, ("wait until %s groups are pending")
        :format(new))
    end
  end
end

-- Removes a constant term of a sum or a remainder. Also adds 1 to an argument,
-- or subtracts 1 from it.
local function add_terms(c, near, add)
  for i, t in ipairs(c.tokens) do
    local after, before = c.tokens[i + 1], c.tokens[i - 1]
    if near(t.statement) and before and after and before.line == after.line
      and (before.name or before.text:find "^[%d)%]]") then
      local term = (t.text == "+" or t.text == "-" or t.text == "~")
        and after.text:find "^%d+$"
      if term or t.text == "%" and (after.name or after.text:find "^%d") then
        add(i - 1, i + 1, before.text, term and 8 or 15, ("leave out %s %s")
          :format(t.text, after.text))
      end
    end
  end
  for _, call in ipairs(c.calls) do
    local list = near(call.statement) and counts(c, call) and call.arguments
      or {}
    for k, a in ipairs(list) do
      local text = c:text_of(a[1], a[2])
      local name = text:match "^[%a_][%w_]*%s*=%s*(.+)$"
      if #text <= 40 and not text:find "[\n\"]" and text ~= "_"
        and (name or not text:find "=") and not text:find "function" then
        local last = c.tokens[a[2]]
        for _, more in ipairs {" + 1", " - 1"} do
          add(a[2], a[2], last.text .. more, k == #list and 15 or 18,
              ("%s%s"):format(name or text, more))
        end
      end
    end
  end
end

-- Changes the last value of a loop that counts by 1 up or down.
local function add_bounds(c, near, add)
  for i, t in ipairs(c.tokens) do
    local s = t.statement
    if t.text == "do" and near(s) and c.tokens[s.first].text == "for"
      and c.tokens[s.first + 2].text == "=" then
      local last = c.tokens[i - 1]
      for _, more in ipairs {" - 1", " + 1"} do
        add(i - 1, i - 1, last.text .. more, 8, "count to" .. more)
      end
    end
  end
end

-- In a table constructor, replaces a field's value by the local that has the
-- field's name.
local function add_fields(c, near, add)
  for _, call in ipairs(c.calls) do
    for _, a in ipairs(call.name == "{" and near(call.statement)
                       and call.arguments or {}) do
      local name, value = c:text_of(a[1], a[2]):match
        "^([%a_][%w_]*)%s*=%s*(.+)$"
      if name and value ~= name and names_of(c)[name] then
        add(a[1], a[2], ("%s = %s"):format(name, name), 7,
            ("use %s = %s"):format(name, name))
      end
    end
  end
end

-- Makes integer divisions round up.
local function add_round_ups(c, near, add)
  for i, t in ipairs(c.tokens) do
    local one, two = c.tokens[i + 1], c.tokens[i + 2]
    local before = c.tokens[i - 1]
    if near(t.statement) and t.text == "/" and one and one.text == "/" and two
      and before and before.name and (two.name or two.text:find "^%d") then
      add(i - 1, i + 2, ("cute.ceil_div(%s, %s)"):format(before.text, two.text),
          8, "round up " .. c:text_of(i - 1, i + 2))
    end
  end
end

---------------------------------------------------------------------------
-- Statements
---------------------------------------------------------------------------

local REGISTERS = {make_fragment_C = true, make_rmem_tensor = true,
  make_fragment_like = true, partition_fragment_C = true,
  make_fragment = true}

-- Returns the loop in which the registers that statement s declares are first
-- used. Returns nil unless this loop is in the same block as s.
local function first_loop(c, s, name)
  local indent, loop = changes.indent(c.lines[s.line]), nil
  for _, other in ipairs(c.statements) do
    if other.line > s.last_line then
      if changes.indent(c.lines[other.line]) == indent then loop = other end
      if c:text_of(other.first, other.last):find("%f[%w_]" .. name
        .. "%f[^%w_]") then
        return loop and c.tokens[loop.first].text == "for" and loop or nil
      end
    end
  end
end

-- Adds statements that fill registers with 0: one just after the registers'
-- declaration, and one before the first loop that uses them.
local function add_fills(c, near, add)
  local function insert(s, text, weight)
    local indent = changes.indent(c.lines[s.line])
    add(s.first, s.first, ("%s\n%s%s"):format(text, indent,
      c.tokens[s.first].text), weight, "insert " .. text)
  end
  for _, call in ipairs(c.calls) do
    local s = call.statement
    if s and REGISTERS[call.name] then
      for name in pairs(s.defines) do
        local fill = name .. ":fill(0)"
        local loop = first_loop(c, s, name)
        if loop then insert(loop, fill, near(s) and 0 or 10) end
        for k, other in ipairs(c.statements) do
          local after = c.statements[k + 1]
          if other == s and after and after.line > s.last_line then
            insert(after, fill, near(s) and 4 or 12)
          end
        end
      end
    end
  end
end

-- Returns the call that statement s consists of, if it is in one line; else a
-- false value.
local function call_of(c, s)
  if not s.call then
    s.call = false
    for _, call in ipairs(s.line == s.last_line and c.calls or {}) do
      if call.last == s.last and call.name ~= "{"
        and c.tokens[s.first].from + #call.chain == c.tokens[call.first].from
      then
        s.call = call
      end
    end
  end
  return s.call
end

-- Adds statements before and after each statement that is only a call. A new
-- statement copies another of the script's calls of the same function, or it
-- repeats the call with a similar operand.
local function add_companions(c, near, add)
  local by = {}
  for _, s in ipairs(c.statements) do
    local call = call_of(c, s)
    if call then
      by[call.name] = by[call.name] or {}
      table.insert(by[call.name], s)
    end
  end
  local function insert(s, text, weight)
    local indent = "\n" .. changes.indent(c.lines[s.line])
    add(s.first, s.first, text .. indent .. c.tokens[s.first].text, weight,
        "insert " .. text)
    add(s.last, s.last, c.tokens[s.last].text .. indent .. text, weight + 0.5,
        "insert " .. text)
  end
  for _, s in ipairs(c.statements) do
    local call = near(s) and call_of(c, s)
    local own, known = c:text_of(s.first, s.last), {}
    for _, other in ipairs(call and by[call.name] or {}) do
      local text = c:text_of(other.first, other.last)
      if text ~= own and not known[text] then
        known[text] = true
        insert(s, text, 7 + math.min(math.abs(other.line - s.line) / 8, 8))
      end
    end
    local first = call and call.arguments[1]
    local name = first and c:text_of(first[1], first[2])
    local function more(text)
      if text ~= own and not known[text] then
        known[text] = true
        insert(s, text, 9)
      end
    end
    for _, sibling in ipairs(name and similar(c, name) or {}) do
      more(renamed(c, own, name, sibling))
    end
    local owner = call and call.chain:match "^([%a_][%w_]*):"
    local others = owner and companions(c, owner) or {}
    for k = 1, math.min(#others, 4) do
      more(others[k] .. own:sub(#owner + 1))
    end
  end
end

-- Exchanges statements in adjacent lines.
local function add_exchanges(c, near, add)
  for k = 1, #c.statements - 1 do
    local a, b = c.statements[k], c.statements[k + 1]
    if near(a) and near(b) and b.line == a.last_line + 1
      and a.line == a.last_line and b.line == b.last_line
      and changes.indent(c.lines[a.line]) == changes.indent(c.lines[b.line])
    then
      add(a.first, b.last, ("%s\n%s%s"):format(c:text_of(b.first, b.last),
        changes.indent(c.lines[a.line]), c:text_of(a.first, a.last)), 16,
        ("exchange lines %d and %d"):format(a.line, b.line))
    end
  end
end

--- The functions that add changes. WEIGHTS in cutelua.findings.likely uses the
-- same keys.
variants.ALL = {
  names = add_names, owners = add_owners, arguments = add_arguments,
  swaps = add_swaps, operators = add_operators, numbers = add_numbers,
  waits = add_waits, terms = add_terms, bounds = add_bounds,
  fields = add_fields, round_ups = add_round_ups, fills = add_fills,
  companions = add_companions, exchanges = add_exchanges}

return variants
-- SPDX-License-Identifier: MIT
