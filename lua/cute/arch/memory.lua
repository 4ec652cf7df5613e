--- The functions of cute.arch for memory: atomics, loads and stores with hints,
-- allocation of shared memory, and inline PTX.
--
-- A pointer is an iterator: `t.iterator`, or `t.iterator + i` for element i. A
-- tensor can be passed instead, and stands for its first element. Options of
-- accesses:
-- sem: memory order: "relaxed" "acquire" "release" "acq_rel".
-- scope: scope of the order: "cta" "cluster" "gpu" "sys". Loads and stores with
--   a scope need an order, too.
-- cop: cache operator: loads "ca" "cg" "cs" "lu" "cv", stores "wb" "cg" "cs"
--   "wt".
-- level1_eviction_priority: "evict_normal" "evict_first" "evict_last"
--   "evict_no_allocate" "evict_unchanged".
-- level_prefetch_size: memory that a load prefetches into L2: "size_64b"
--   "size_128b" "size_256b" (sm_80; ignored for older targets).
-- level2_eviction_priority: which lines L2 evicts sooner or later than others,
--   for loads: "evict_normal" "evict_first" "evict_last" (likewise).
--
-- Accesses with a memory order do not race with each other, and order other
-- accesses according to the PTX memory model (docs/errors.md, "race"). The
-- simulator executes them in the order of its schedule, and ignores the cache
-- hints.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local memory = {}

---------------------------------------------------------------------------
-- Hints of accesses. core/ir/kinds.h defines their fields.
---------------------------------------------------------------------------

local FIELDS = core.hints()
local ALLOWED = {
  load = {sem = "relaxed acquire", cop = "ca cg cs lu cv",
          level_prefetch_size = "size_64b size_128b size_256b",
          level2_eviction_priority = "evict_normal evict_first evict_last"},
  store = {sem = "relaxed release", cop = "wb cg cs wt"},
  atomic = {sem = "relaxed acquire release acq_rel"},
}

local function names(t)
  local list = {}
  for name in pairs(t) do list[#list + 1] = name end
  table.sort(list)
  return table.concat(list, ", ")
end

local function refuse(what, key, value, allowed)
  core.fail("unknown-name", ("%s: no %s '%s' (%s)"):format(what, key,
    tostring(value), allowed))
end

local function has(list, word)
  return (" " .. list .. " "):find(" " .. word .. " ", 1, true)
end

local function hints(what, opts)
  local flags = 0
  for key, value in pairs(opts or {}) do
    local field, allowed = FIELDS[key], ALLOWED[what][key]
    local bits = field[value]
    if not bits or allowed and not has(allowed, value) then
      refuse(what, key, value, allowed or names(field))
    end
    flags = flags | bits
  end
  if opts and opts.cop and opts.sem then
    core.fail("bad-argument", what .. ": pass either cop or sem, not both")
  elseif opts and opts.scope and not opts.sem and what ~= "atomic" then
    core.fail("bad-argument", ("%s: scope = %q has no effect without an order; "
      .. "add sem = \"%s\", or leave out the scope"):format(what, opts.scope,
      what == "load" and "acquire" or "release"))
  end
  return flags
end

---------------------------------------------------------------------------
-- Atomics
---------------------------------------------------------------------------

local function atomic(kind)
  return function(ptr, value, opts)
    return core.atomic(kind, ptr, value, nil, hints("atomic", opts))
  end
end

--- Adds a value to the element at a pointer, atomically. Returns the element's
-- old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_add = atomic "add"
--- Replaces the element at a pointer by min(element, value), atomically.
-- Returns the old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_min = atomic "min"
--- Replaces the element at a pointer by max(element, value), atomically.
-- Returns the old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_max = atomic "max"
--- Replaces the element at a pointer by element & value, atomically. Returns
-- the old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_and = atomic "and"
--- Replaces the element at a pointer by element | value, atomically. Returns
-- the old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_or = atomic "or"
--- Replaces the element at a pointer by element ~ value (exclusive or),
-- atomically. Returns the old value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_xor = atomic "xor"
--- Replaces the element at a pointer by a value, atomically. Returns the old
-- value.
---@param pointer table an iterator of global or shared memory
---@param value any
---@param opts? {sem: string, scope: string} "relaxed" and "gpu" if absent
memory.atomic_exch = atomic "exch"
--- Replaces the f32 at a pointer by the larger of this f32 and `value`,
-- atomically. If one of the two is a NaN, stores the other. Returns the old
-- value.
---@param pointer table an iterator
---@param value any
---@param opts? {sem: string, scope: string}
memory.atomic_fmax = atomic "max"
--- Replaces the f32 at a pointer by the smaller of this f32 and `value`,
-- atomically. If one of the two is a NaN, stores the other. Returns the old
-- value.
---@param pointer table an iterator
---@param value any
---@param opts? {sem: string, scope: string}
memory.atomic_fmin = atomic "min"
--- The older name of atomic_fmax.
memory.atomic_max_float32 = memory.atomic_fmax

--- Stores `val` at a pointer if the element there equals `cmp`, atomically.
-- Returns the old value of the element.
---@param ptr table an iterator
---@param opts {cmp: any, val: any, sem: string?, scope: string?}
function memory.atomic_cas(ptr, opts)
  if opts.cmp == nil or opts.val == nil then
    core.fail("bad-argument", ("atomic_cas: {cmp = x, val = y} is needed, got "
      .. "%s"):format(core.show(opts)))
  end
  return core.atomic("cas", ptr, opts.val, opts.cmp,
    hints("atomic", {sem = opts.sem, scope = opts.scope}))
end

local REDUCTIONS = {add = true, min = true, max = true, ["and"] = true,
                    ["or"] = true, xor = true}

--- Performs an atomic operation without returning the old value. op is "add",
-- "min", "max", "and", "or" or "xor".
---@param ptr table an iterator
---@param value any
---@param opts {op: string, sem: string?, scope: string?}
function memory.red(ptr, value, opts)
  local op = opts.op
  local kind = op and op:gsub("^u(m)", "%1")
  if not REDUCTIONS[kind] then
    refuse("red", "op", op, "add, min, max, and, or, xor")
  end
  core.atomic(kind, ptr, value, nil,
    hints("atomic", {sem = opts.sem, scope = opts.scope}))
end

---------------------------------------------------------------------------
-- Loads and stores
---------------------------------------------------------------------------

--- Loads the element at a pointer as type `dtype`, or as the pointer's type if
-- dtype is absent.
---@param ptr table an iterator
---@param dtype? cute.DType
---@param opts? {sem: string, scope: string, cop: string}
function memory.load(ptr, dtype, opts)
  return core.access_load(ptr, dtype, hints("load", opts))
end

--- Stores a value of the pointer's type (use recast_ptr for another type).
---@param ptr table an iterator
---@param value any
---@param opts? {sem: string, scope: string, cop: string}
function memory.store(ptr, value, opts)
  core.access_store(ptr, value, hints("store", opts))
end

---------------------------------------------------------------------------
-- Shared memory
---------------------------------------------------------------------------

--- Allocates n elements of shared memory, and returns a pointer to them.
---@param dtype cute.DType
---@param n integer
---@param alignment? integer bytes
function memory.alloc_smem(dtype, n, alignment)
  return core.make_smem_tensor(dtype, core.make_layout(n), alignment).iterator
end

--- Allocates n elements of dynamic shared memory, and returns a pointer to
-- them. All shared memory of a kernel is dynamic. The simulator reports
-- accesses outside of an allocation.
---@param dtype cute.DType
---@param alignment? integer bytes
---@param n? integer 1 if absent
function memory.get_dyn_smem(dtype, alignment, n)
  return memory.alloc_smem(dtype, n or 1, alignment)
end

---------------------------------------------------------------------------
-- PTX
---------------------------------------------------------------------------

-- Replaces operands such as {$r0}, {$w1}, {$rw0} in PTX text by %n, where n is
-- the operand's number. Doubles each % that the text already contains.
local function operand_places(text, count)
  local first = {w = 0, rw = count.w, r = count.w + count.rw}
  text = text:gsub("%%", "%%%%")
  return (text:gsub("{%$(r?w?)(%d+)}", function(kind, i)
    i = math.tointeger(i)
    if not first[kind] or i >= count[kind] then
      core.fail("bad-argument", ("inline_ptx: {$%s%d} names no operand")
        :format(kind, i))
    end
    return "%" .. first[kind] + i
  end))
end

-- Raises an error for PTX that atomically adds two packed 16-bit floats in
-- another block's shared memory. ptxas 13.0 compiles such an addition to a
-- load, an integer add and a store, which is not atomic.
local function check_sums(text)
  for op in text:gmatch "[%a][%w_:%.]*" do
    if (op:find "^atom%." or op:find "^red%.") and op:find "f16x2"
        and op:find("shared::cluster", 1, true) then
      core.fail("type-mismatch", ("inline_ptx: %s: ptxas compiles it to an "
        .. "integer add that is not atomic\n  use two 16-bit atomics: "
        .. "cute.arch.atomic_add(pointer, value)"):format(op))
    end
  end
end

local function typed(x)
  if core.typename(x) == "value" then return x end
  return core.cvt(x, math.type(x) == "float" and core.f32
    or type(x) == "boolean" and core.boolean or core.i32)
end

--- Emits PTX written by the user. {$w0}, {$w1} ... name outputs, whose types
-- are in opts.write_only_types. {$r0} ... name inputs (opts.read_only_args).
-- {$rw0} ... name operands that are both (opts.read_write_args). Returns the
-- outputs: first {$w0}, {$w1} ..., then {$rw0} ... A kernel with inline PTX
-- runs only on a GPU; the simulator raises an error.
---@param text string
---@param opts? table {write_only_types: table, read_only_args: table,
---   read_write_args: table, predicate: any}
function memory.inline_ptx(text, opts)
  opts = opts or {}
  local w, rw = opts.write_only_types or {}, opts.read_write_args or {}
  local r = opts.read_only_args or {}
  local outs, operands = {}, {}
  for _, t in ipairs(w) do outs[#outs + 1] = core.var(core.cvt(0, t)) end
  for _, x in ipairs(rw) do outs[#outs + 1] = core.var(typed(x)) end
  for i, v in ipairs(outs) do operands[i] = v end
  for _, x in ipairs(r) do operands[#operands + 1] = typed(x) end
  check_sums(text)
  local ptx = operand_places(text, {w = #w, rw = #rw, r = #r})
  if opts.predicate ~= nil then
    operands[#operands + 1] = typed(opts.predicate)
    local at = #operands - 1
    ptx = ("{.reg .pred p; setp.ne.b32 p, %%%d, 0; @p %s}"):format(at, ptx)
  end
  core.inline_ptx(ptx, #outs, table.unpack(operands))
  local values = {}
  for i, v in ipairs(outs) do values[i] = core.vget(v) end
  return table.unpack(values)
end

--- Reports whether the version of the available NVRTC is within these limits.
-- The simulator uses the same result, so that simulator and GPU run the same
-- kernel. Without NVRTC the result is false.
---@param opts table {min_version: string?, max_version: string?,
---   exact_version: string?}
---@return boolean
function memory.target_version(opts)
  local version = require "cute.jit".version()
  local function number(v)
    local major, minor = tostring(v):match "^(%d+)%.?(%d*)"
    if not major then
      core.fail("bad-argument", ("target_version: '%s' is not a version")
        :format(tostring(v)))
    end
    return tonumber(major) * 1000 + (tonumber(minor) or 0)
  end
  if not version then return false end
  local have = number(version)
  local exact, lo, hi = opts.exact_version, opts.min_version, opts.max_version
  return (not exact or have == number(exact))
    and (not lo or have >= number(lo)) and (not hi or have <= number(hi))
end

local POINTED = "(pointer: tensor, value: number|value, opts?: {scope sem})"

return sign.public("cute.arch.", memory, (([[
  atomic_add@ atomic_min@ atomic_max@ atomic_and@ atomic_or@ atomic_xor@
  atomic_exch@ atomic_fmax@ atomic_fmin@ atomic_max_float32@
  atomic_cas(pointer: tensor, opts: {cmp scope sem val})
  red(pointer: tensor, value: number|value, opts: {op scope sem})
  load(pointer: tensor, dtype?: dtype|string,
    opts?: {cop level1_eviction_priority level2_eviction_priority
    level_prefetch_size scope sem})
  store(pointer: tensor, value: number|boolean|value,
    opts?: {cop level1_eviction_priority scope sem})
  alloc_smem(dtype: dtype|string, n: integer, alignment?: integer)
  get_dyn_smem(dtype: dtype|string, alignment?: integer, n?: integer)
  inline_ptx(text: string,
    opts?: {predicate read_only_args read_write_args write_only_types})
  target_version(opts: {exact_version max_version min_version})
]]):gsub("@", POINTED)))
-- SPDX-License-Identifier: MIT
