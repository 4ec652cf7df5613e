-- irdoc.lua: writes the tables of docs/ir.md from core/ir/rows.h,
-- core/ir/ops.h, core/ir/fn.h and core/ir/intrin.h. `make docs` calls it;
-- tools/check.lua checks that the tables are current.
local irdoc = {}

local function read(path)
  local f <close> = assert(io.open(path, "rb"))
  return f:read "a"
end

-- Returns the parts of an argument list: splits it at commas outside of quotes
-- and parentheses.
local function arguments(text)
  local out, depth, quoted, from = {}, 0, false, 1
  for i = 1, #text do
    local c = text:sub(i, i)
    if c == '"' then quoted = not quoted end
    if not quoted then
      if c == "(" then depth = depth + 1 end
      if c == ")" then depth = depth - 1 end
      if c == "," and depth == 0 then
        out[#out + 1] = text:sub(from, i - 1):match "^%s*(.-)%s*$"
        from = i + 1
      end
    end
  end
  out[#out + 1] = text:sub(from):match "^%s*(.-)%s*$"
  return out
end

-- Returns the arguments that a row of ops.h would have if it used the macro OP
-- instead of SCALAR or LEAF. a: the arguments that the row has.
local function full(macro, a)
  if macro == "SCALAR" then
    return {a[1], a[2], a[3], "NONE", "NONE", a[4], "PURE", "LANE", a[5],
            "NONE", a[6], "NEVER"}
  elseif macro == "LEAF" then
    return {a[1], a[2], a[3], a[4], "NONE", "ANY", a[5], "LANE", "EXACT",
            a[6], "NONE", "NEVER"}
  end
  return a
end

-- Returns the rows of ops.h: {macro, id, name, operands, imm, flags, rule,
-- effect, who, fidelity, need, class, point, note}. The note of a row is the
-- comment before or after it.
local function operations(text)
  local rows, before = {}, {}
  text = text:match "\n#endif\n\n(//.-)#undef SCALAR"
  text = text:gsub("(%u+)(%b())", function(macro, inside)
    return macro .. inside:gsub("\n +", " ")
  end)
  for line in text:gmatch "[^\n]+" do
    local macro, inside, tail = line:match "^(%u+)(%b())%s*(.*)$"
    local comment = line:match "^// ?(.*)$"
    if macro then
      local a = full(macro, arguments(inside:sub(2, -2)))
      local row = {macro = macro, id = a[1], name = a[2]:sub(2, -2),
        operands = a[3]:sub(2, -2), imm = a[4], flags = a[5], rule = a[6],
        effect = a[7], who = a[8], fidelity = a[9], need = a[10],
        class = a[11], point = a[12], note = {}}
      table.move(before, 1, #before, 1, row.note)
      local said = tail:match "^// ?(.*)$"
      if said and #before > 0 then
        row.note[#before] = row.note[#before] .. ";"
      end
      row.note[#row.note + 1] = said
      rows[#rows + 1], before = row, {}
    elseif comment then
      before[#before + 1] = comment
    elseif rows[#rows] then
      table.insert(rows[#rows].note, line:match "^%s+// ?(.*)$")
    end
  end
  return rows
end

-- Returns the rows of intrin.h: {name, signature, class, fidelity, sm, text}.
local function intrinsics(text)
  local rows = {}
  text = text:match "#define INTRINS%(IN%)(.-)\n\n"
  for inside in text:gmatch "%f[%w]IN(%b())" do
    local a = arguments((inside:sub(2, -2):gsub("%s*\\\n%s*", " ")))
    rows[#rows + 1] = {a[2]:sub(2, -2), a[3]:sub(2, -2), a[4], a[5], a[6], a[7]}
  end
  return rows
end

-- Returns the rows of the table ROLES in rows.h: {name, synchronizes, meaning}.
local function roles(text)
  local rows = {}
  text = text:match "#define ROLES%(RO%)(.-)\ntypedef"
  for inside in text:gmatch "%f[%w]RO(%b())" do
    local a = arguments(inside:sub(2, -2))
    if a[2] ~= '""' then
      rows[#rows + 1] = {a[2]:sub(2, -2), a[3] == "true", a[4]:sub(2, -2)}
    end
  end
  return rows
end

-- Returns the rows of the table AGENTS in rows.h: {name, whether the agent uses
-- the async proxy, identifier of the operation that waits for it}.
local function agents(text)
  local rows = {}
  text = text:match "#define AGENTS%(AG%)(.-)\ntypedef"
  for inside in text:gmatch "%f[%w]AG(%b())" do
    local a = arguments(inside:sub(2, -2))
    if a[1] ~= "NONE" then rows[#rows + 1] = {a[1], a[3] == "true", a[4]} end
  end
  return rows
end

-- Returns the rows of table `name` in fn.h, whose row macro is `row`. Each row
-- is a list of its arguments, without quotes.
local function rows_of(text, name, row)
  local rows = {}
  text = text:match("#define " .. name .. "%(" .. row .. "%)(.-)\ntypedef")
  for inside in text:gmatch("%f[%w]" .. row .. "(%b())") do
    local a = arguments((inside:sub(2, -2):gsub("%s*\\\n%s*", " ")))
    for k, word in ipairs(a) do a[k] = word:match '^"(.*)"$' or word end
    rows[#rows + 1] = a
  end
  return rows
end

-- Returns a map from the first argument to the second argument of each row of a
-- table in fn.h.
local function texts(text, name, row)
  local out = {}
  for _, a in ipairs(rows_of(text, name, row)) do out[a[1]] = a[2] end
  return out
end

-- Returns the rows of the table SPACES in fn.h, for spaces whose objects an
-- operation declares: {name, identifier of the operation, memory, lifetime,
-- elements, granule}.
local function spaces(text)
  local rows = {}
  local exists = texts(text, "LIFETIMES", "LF")
  local granule = texts(text, "MEMORIES", "ME")
  for _, a in ipairs(rows_of(text, "SPACES", "SP")) do
    if a[4] ~= "NOP" then
      rows[#rows + 1] = {a[2], a[4], a[5]:lower(), exists[a[6]], a[7],
                         granule[a[5]]}
    end
  end
  return rows
end

local function cell(text)
  return (text:gsub("|", "\\|"))
end

local function code(text)
  return text == "" and "" or "`" .. cell(text) .. "`"
end

local function some(text) return text == "NONE" and "" or code(text) end

local function add_table(out, head, rows)
  out[#out + 1] = "| " .. table.concat(head, " | ") .. " |"
  out[#out + 1] = ("|---"):rep(#head) .. "|"
  for _, row in ipairs(rows) do
    out[#out + 1] = "| " .. table.concat(row, " | ") .. " |"
  end
end

-- Fails if an operand of operation r has a role that the table ROLES lacks.
local function check_roles(r, known)
  for role in r.operands:gmatch "([^%s:]*):" do
    if not known[role] then
      error(("core/ir/ops.h: %s has an operand '%s', which is no row of "
             .. "ROLES in core/ir/rows.h"):format(r.name, role), 0)
    end
  end
end

local function operation_table()
  local out, rows, known = {}, {}, {}
  for _, r in ipairs(roles(read "core/ir/rows.h")) do known[r[1]] = true end
  for i, r in ipairs(operations(read "core/ir/ops.h")) do
    check_roles(r, known)
    rows[i] = {code(r.name), code(r.operands),
      some(r.imm), some(r.flags), code(r.rule), code(r.effect), code(r.who),
      code(r.fidelity), some(r.need), some(r.class),
      r.point == "NEVER" and "" or code(r.point),
      cell(table.concat(r.note, " "))}
  end
  add_table(out, {"operation", "operands", "immediate", "flags", "result",
                  "effect", "threads", "fidelity", "needs", "class", "point",
                  "note"}, rows)
  return out
end

local function role_table()
  local out, rows = {}, {}
  for i, r in ipairs(roles(read "core/ir/rows.h")) do
    rows[i] = {code(r[1]), r[2] and "yes" or "", cell(r[3])}
  end
  add_table(out, {"role", "synchronizes", "operand"}, rows)
  return out
end

-- Returns the name of each operation, by its identifier.
local function names()
  local name = {}
  for _, r in ipairs(operations(read "core/ir/ops.h")) do
    name[r.id] = r.name
  end
  return name
end

local function space_table()
  local out, rows, name = {}, {}, names()
  for i, r in ipairs(spaces(read "core/ir/fn.h")) do
    rows[i] = {code(r[1]), code(name[r[2]]), cell(r[3]), cell(r[4]), cell(r[5]),
               cell(r[6])}
  end
  add_table(out, {"space", "declared by", "memory", "lifetime", "elements",
                  "granule"}, rows)
  return out
end

local function agent_table()
  local out, rows, name = {}, {}, names()
  for i, r in ipairs(agents(read "core/ir/rows.h")) do
    rows[i] = {code(r[1]), r[2] and "async" or "that of threads",
               code(name[r[3]])}
  end
  add_table(out, {"agent", "proxy", "completed by"}, rows)
  return out
end

local function intrinsic_table()
  local out, rows = {}, {}
  for i, r in ipairs(intrinsics(read "core/ir/intrin.h")) do
    rows[i] = {code(r[1]), code(r[2]), code(r[3]), code(r[4]),
      r[5] == "0" and "" or r[5],
      code(r[6]:gsub('" +"', ""):sub(2, -2):gsub("%%%%", "%%"))}
  end
  add_table(out, {"intrinsic", "signature", "class", "fidelity", "sm",
                  "text"}, rows)
  return out
end

--- Returns the text of docs/ir.md with the current tables of the headers.
function irdoc.page()
  local text = read "docs/ir.md"
  for name, lines in pairs {roles = role_table(), agents = agent_table(),
                            spaces = space_table(),
                            operations = operation_table(),
                            intrinsics = intrinsic_table()} do
    local _, from = text:find("<!%-%- " .. name .. ": [^\n]*\n")
    local to = text:find("<!%-%- " .. name .. " end", from)
    text = text:sub(1, from) .. table.concat(lines, "\n") .. "\n"
      .. text:sub(to)
  end
  return text
end

if arg and arg[0] and arg[0]:find "irdoc%.lua$" then
  local text = irdoc.page()
  local f <close> = assert(io.open("docs/ir.md", "wb"))
  assert(f:write(text))
end

return irdoc
-- SPDX-License-Identifier: MIT
