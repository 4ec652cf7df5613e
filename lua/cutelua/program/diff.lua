--- Compares two versions of a kernel: cute.diff(k1, k2). Each argument
-- is a kernel that was launched or compiled before, a call of a kernel, a
-- prepared launch or a program.
--
--     print(cute.diff(old, new))       -- a summary
--     print(cute.diff(old, new).cuda)  -- all lines; also .ptx and .sass
local asm = require "cutelua.text.asm"
local core = require "cute.core"
local devices = require "cute.lang.devices"
local jit = require "cute.jit"
local events = require "cutelua.program.events"
local lines = require "cutelua.program.lines"
local show = require "cutelua.program.show"
local sign = require "cute.lang.signature"

local diff = {}

local Diff = {}

-- The largest number of changed CUDA C lines that are shown.
local MOST_LINES = 16
-- The largest number of instructions with changed counts that are shown.
local MOST_NAMES = 6

---------------------------------------------------------------------------
-- Two programs
---------------------------------------------------------------------------

local function class_of(x)
  local mt = debug.getmetatable(x)
  return type(mt) == "table" and sign.classes[mt] and rawget(mt, "__name")
end

-- Returns the program of a kernel, a call or a prepared launch. A program is
-- returned as it is.
local function program_of(x)
  local class = class_of(x)
  if class == "program" then return x end
  if class == "prepared" then return x.program end
  local k = class == "call" and x.kernel or class == "kernel" and x
  if not k then
    core.fail("bad-argument", ("diff: %s: a kernel, a call, a prepared launch "
      .. "or a program is needed"):format(core.show(x)))
  end
  local program = show.programs(k)[1]
  if not program then
    core.fail("bad-argument", ("diff: kernel %s was neither launched nor "
      .. "compiled, so there is no program to compare"):format(k.name))
  end
  return program
end

local function arch_of(program)
  local last = program.runs.last
  return program.arch or last and last.arch or devices.ARCH
end

--- Returns the CUDA C of a program, without the comments that name source
-- lines.
---@param program table
---@return string
function diff.cuda(program)
  local out = {}
  for _, line in ipairs(lines.of((program:cuda(arch_of(program))))) do
    if not line:find "^%s*//" then out[#out + 1] = line end
  end
  return table.concat(out, "\n") .. "\n"
end

local function compiled(program)
  return core.nvrtc_version() and program:compile(arch_of(program)) or nil
end

local function ptx_of(program)
  local c = compiled(program)
  return c and c.ptx and c.ptx:gsub("\n%s*//[^\n]*", "")
end

-- Returns a program's machine instructions, one per line; nil if there is no
-- disassembler.
local function sass_of(program)
  local c = compiled(program)
  if not (c and c.cubin) then return nil end
  local name = select(3, program:cuda(arch_of(program)))
  local found = asm.of_cubin(c.cubin, name)
  return found and table.concat(found.text, "\n") .. "\n"
end

---------------------------------------------------------------------------
-- Differences
---------------------------------------------------------------------------

-- Returns all lines of two texts as one text in which changed lines are marked.
local function marked(a, b)
  local out = {}
  for i, e in ipairs(lines.diff(lines.of(a), lines.of(b))) do
    out[i] = e[1] .. " " .. e[2]
  end
  return table.concat(out, "\n")
end

local MADE = {cuda = diff.cuda, ptx = ptx_of, sass = sass_of}

function Diff.__index(d, k)
  local make = MADE[k]
  if not make then return Diff[k] end
  local a, b = make(d.before), make(d.now)
  local text = a and b and marked(a, b) or false
  d[k] = text
  return text
end

-- Counts each instruction in a text of PTX or SASS.
local function instructions(text)
  local count, all = {}, 0
  for _, line in ipairs(lines.of(text)) do
    local name = line:gsub("^%s*{?%s*@!?%%?%w+%s+", ""):gsub("^%s*{?%s*", "")
      :match "^([%a][%w_%.:]*)[%s;]?"
    local label = line:find "^%s*[%.%$]" or line:find ":%s*$"
      or line:find "^%s*[{}()]%s*$"
    if name and not label then
      count[name] = (count[name] or 0) + 1
      all = all + 1
    end
  end
  return count, all
end

-- Returns text on the changed counts of instructions, such as "41 -> 44
-- instructions: +3 fma.rn.f32, -1 add.f32"; nil if there is nothing to compare.
local function instruction_text(a, b)
  if not (a and b) then return nil end
  local ca, na = instructions(a)
  local cb, nb = instructions(b)
  local changed = {}
  for name in pairs(ca) do cb[name] = cb[name] or 0 end
  for name, n in pairs(cb) do
    local by = n - (ca[name] or 0)
    if by ~= 0 then changed[#changed + 1] = {name, by} end
  end
  table.sort(changed, function(x, y)
    local p, q = math.abs(x[2]), math.abs(y[2])
    return p > q or p == q and x[1] < y[1]
  end)
  local words = {}
  for i = 1, math.min(#changed, MOST_NAMES) do
    words[i] = ("%+d %s"):format(changed[i][2], changed[i][1])
  end
  if #changed > MOST_NAMES then
    words[#words + 1] = ("%d more"):format(#changed - MOST_NAMES)
  end
  local text = na == nb and ("%d instructions"):format(na)
    or ("%d -> %d instructions"):format(na, nb)
  return text .. (#words > 0 and ": " .. table.concat(words, ", ")
    or a == b and ", the same" or ", different operands or order")
end

-- Returns text that compares the SASS of two versions. Without a disassembler,
-- it compares only the numbers of instructions.
local function sass_text(d)
  local text = instruction_text(sass_of(d.before), sass_of(d.now))
  if text then return text end
  local a, b = compiled(d.before), compiled(d.now)
  if not (a and b and a.cubin and b.cubin) then return nil end
  local function size(c, program)
    local name = select(3, program:cuda(arch_of(program)))
    return jit.code_size(c.cubin, name) // 16
  end
  local na, nb = size(a, d.before), size(b, d.now)
  return (na == nb and "%d instructions" or "%d -> %d instructions")
    :format(na, nb) .. " (no nvdisasm here)"
end

local RESOURCES = {{"registers", "registers"}, {"stack", "bytes of stack"},
                   {"spill_stores", "bytes of spill stores"},
                   {"spill_loads", "bytes of spill loads"}}
local COUNTERS = {{"bytes", "bytes of memory"}, {"sectors", "sectors"},
                  {"requests", "requests"},
                  {"wavefronts", "passes of shared memory"},
                  {"conflicts", "bank conflicts"},
                  {"instructions", "instructions run"}}

-- Compares the numbers `names` of a and b. Numbers that differ are added to
-- `out` as text; numbers that are equal are added to `same`.
local function add_numbers(out, same, names, a, b)
  for _, n in ipairs(names) do
    local x, y = a[n[1]], b[n[1]]
    if x and y and x ~= y then
      out[#out + 1] = ("  %s: %d -> %d"):format(n[2], x, y)
    elseif x and y and x ~= 0 then
      same[#same + 1] = ("%s %d"):format(n[2], x)
    end
  end
end

local function add_same(out, same)
  if #same > 0 then
    out[#out + 1] = "  as before: " .. table.concat(same, ", ")
  end
end

--- Returns lines about the counters of two runs (see cute.lang.history): one
-- for each counter that differs, and a last line with the unchanged counters.
---@param a table?
---@param b table?
---@return string[] out
function diff.counters(a, b)
  local out, same = {}, {}
  if not (a and b) then return out end
  add_numbers(out, same, COUNTERS, a, b)
  add_same(out, same)
  return out
end

local function add(out, list) table.move(list, 1, #list, #out + 1, out) end

local function head(d)
  local a, b = d.before.info.name, d.now.info.name
  return a == b and ("kernel %s, before and after"):format(a)
    or ("kernel %s, and %s"):format(a, b)
end

local function add_compiled(out, d)
  local a, b = compiled(d.before), compiled(d.now)
  if not (a and b) then return end
  local same = {}
  add_numbers(out, same, RESOURCES, a.resources, b.resources)
  add_same(out, same)
  out[#out + 1] = "  PTX: " .. (instruction_text(ptx_of(d.before),
    ptx_of(d.now)) or "not there")
  out[#out + 1] = "  SASS: " .. (sass_text(d) or "not there")
end

function Diff.__tostring(d)
  local out = {head(d)}
  local a, b = diff.cuda(d.before), diff.cuda(d.now)
  local changed = lines.changes(a, b, "  ", MOST_LINES)
  out[2] = changed or "  the same CUDA C"
  add_numbers(out, {}, {{"smem", "bytes of shared memory"}}, d.before.info,
              d.now.info)
  if changed then add_compiled(out, d) end
  local x, y = d.before.runs.last, d.now.runs.last
  if x and y then
    add(out, diff.counters(x, y))
    local was, is = events.seconds(x), events.seconds(y)
    if was and is then
      out[#out + 1] = ("  %s on %s: %s -> %s"):format(y.first
        and "first runs" or "time", y.device, show.seconds(was),
        show.seconds(is))
    end
  end
  return table.concat(out, "\n")
end

--- Compares two versions of a kernel. As text, the result shows changes of the
-- CUDA C and of the counters of the last runs. If NVRTC is installed, it also
-- shows changes of registers and instructions. Its fields .cuda, .ptx and .sass
-- are whole texts with changed lines marked. .ptx and .sass are false if
-- there is no compiler. .sass also needs nvdisasm.
---@param before table a kernel that ran, a call, a prepared launch, a program
---@param now table
---@return table
function diff.diff(before, now)
  return setmetatable({before = program_of(before), now = program_of(now)},
                      Diff)
end

return diff
-- SPDX-License-Identifier: MIT
