--- Structures in shared memory: named fields with offsets and alignments.
--
--     local Storage = cute.struct {
--       {"sA", cute.bf16, 128 * 64, align = 128},  -- or 128 after the count
--       {"sum", cute.f32},
--     }
--     local s = cute.utils.SmemAllocator():allocate(Storage)
--     local sA = cute.make_tensor(s.sA, layout)
--
-- A field's type can be a structure. In a union all fields begin at offset 0.
-- Fields are in the order of the list. A plain table, `{sum = cute.f32, sA =
-- {cute.bf16, 128}}`, has no order, so its fields are sorted by name.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local structs = {}

-- The field __closed tells cute.lang.dependencies that the fields of a
-- structure never change: no field is written after the structure was made.
local Struct = {__closed = true}
Struct.__index = Struct

local function round_up(n, to) return (n + to - 1) // to * to end

local function is_struct(x)
  return type(x) == "table" and getmetatable(x) == Struct
end

-- Returns a field's declaration. If its type is a result of MemRange or Align,
-- merges the type, count and alignment of this result into the declaration.
local function spliced(d)
  local t = d[2]
  if type(t) ~= "table" or getmetatable(t) then return d end
  local all = {d[1]}
  for k, v in pairs(t) do all[math.type(k) and k + 1 or k] = v end
  for k, v in pairs(d) do
    if k ~= 1 and k ~= 2 and all[k] == nil then all[k] = v end
  end
  return all
end

-- Returns entry i of declaration d. The user may have given the entry by name,
-- as d[name] instead of d[i].
local function entry(what, d, i, name)
  if d[i] ~= nil and d[name] ~= nil then
    core.fail("bad-argument", ("%s: field '%s' has the %s %s and also %s = %s")
      :format(what, tostring(d[1]), name, core.show(d[i]), name,
      core.show(d[name])))
  end
  if d[i] == nil then return d[name] end
  return d[i]
end

local ENTRIES = {count = true, align = true, true, true, true, true}

-- The largest size and the largest alignment of a field, in bytes.
local MOST = 1 << 40

-- Converts one declaration {name, type, count, align} of a field to the table
-- that a structure stores for the field.
local function field(what, d)
  d = spliced(type(d) == "table" and d or {d})
  for key in pairs(d) do
    if not ENTRIES[key] then
      core.fail("unknown-name", ("%s: field '%s' has %s\n  write a field as "
        .. "{\"name\", type, count = 1, align = bytes}"):format(what,
        tostring(d[1]), type(key) == "string" and sign.no_such("option", key,
        {count = true, align = true})
        or "an entry too many, " .. core.show(d[key])))
    end
  end
  local name, t, count = d[1], d[2], entry(what, d, 3, "count") or 1
  if type(t) == "string" then t = core.find_dtype(t) end
  if type(name) ~= "string" or math.type(count) ~= "integer" or count < 1
    or not (is_struct(t) or core.typename(t) == "dtype") then
    core.fail("bad-argument", ("%s: a field must be {\"name\", type, count}, "
      .. "with an element type or a structure as type, not %s"):format(what,
      core.show(d)))
  end
  local one = is_struct(t) and t.size or (t.bits + 7) // 8
  local align = entry(what, d, 4, "align") or is_struct(t) and t.align or one
  if math.type(align) ~= "integer" or align < 1 or align & (align - 1) ~= 0 then
    core.fail("bad-argument", ("%s: an alignment of %s bytes is not a power "
      .. "of two"):format(what, core.show(align)))
  end
  if count > MOST // math.max(one, 1) or align > MOST then
    core.fail("limit", ("%s: field '%s' of %d entries, aligned to %d bytes, is "
      .. "larger than any memory"):format(what, name, count, align))
  end
  return {name = name, type = t, count = count, align = align,
          size = is_struct(t) and one * count or (t.bits * count + 7) // 8}
end

-- Returns the declarations of fields as a list. Declarations in a plain table
-- are sorted by name.
local function listed(what, fields)
  local names, list = {}, {}
  for name, t in pairs(type(fields) == "table" and fields or {}) do
    if type(name) == "string" then names[#names + 1] = name end
    if type(name) == "string" and (type(t) ~= "table" or is_struct(t)) then
      list[name] = {name, t}
    elseif type(name) == "string" then
      list[name] = spliced {name, t}
    end
  end
  if #names == 0 then return sign.list(what, fields) end
  if fields[1] ~= nil then
    core.fail("bad-argument", what .. ": pass a list of fields, {\"name\", "
      .. "type, count}, or a table of them by name, not both")
  end
  table.sort(names)
  for i, name in ipairs(names) do list[i] = list[name] end
  return list
end

local function build(what, fields, union)
  local s = {fields = {}, size = 0, align = 1, what = what}
  for i, d in ipairs(listed(what, fields)) do
    local f = field(what, d)
    if s.fields[f.name] then
      core.fail("bad-argument", ("%s: two fields '%s'"):format(what, f.name))
    end
    f.offset = union and 0 or round_up(s.size, f.align)
    s.size = math.max(s.size, f.offset + f.size)
    s.align = math.max(s.align, f.align)
    s.fields[i], s.fields[f.name] = f, f
  end
  s.size = round_up(s.size, s.align)
  return setmetatable(s, Struct)
end

--- Makes a structure: consecutive fields, each at its alignment.
---@param fields table a list of {name, type, count?, align?}, where count and
-- align can also be given by name (align = 128); or a table that maps names to
-- types or to {type, count?, align?}
function structs.struct(fields) return build("struct", fields, false) end

sign.with(structs.struct, {
  -- MemRange and Align are the Python DSL's notation for the type of a field:
  -- {"sA", Align(MemRange(f16, 64), 128)}.
  MemRange = sign.guard("cute.struct.MemRange(dtype: dtype|string|struct, "
    .. "count: integer)", function(dtype, count) return {dtype, count} end),
  Align = sign.guard("cute.struct.Align(field: dtype|string|struct|table, "
    .. "bytes: integer)", function(field_, bytes)
      local range = type(field_) == "table" and not getmetatable(field_)
      return {range and field_[1] or field_, range and field_[2] or 1,
              align = bytes}
    end)})

--- Makes a union: all fields begin at 0.
---@param fields table[]
function structs.union(fields) return build("union", fields, true) end

--- Returns the structure's size in bytes, including padding at its end.
function Struct:size_in_bytes() return self.size end

--- Returns the structure's alignment in bytes.
function Struct:align_in_bytes() return self.align end

--- Returns the offset of a field in bytes.
---@param name string
function Struct:offsetof(name)
  local f = self.fields[name]
  if not f then
    core.fail("unknown-name", ("%s: no field '%s'"):format(self.what, name))
  end
  return f.offset
end

function Struct:__tostring()
  local parts = {}
  for i, f in ipairs(self.fields) do
    parts[i] = ("%s at %d: %s[%d]"):format(f.name, f.offset,
      is_struct(f.type) and f.type.what or tostring(f.type), f.count)
  end
  return ("%s of %d bytes {%s}"):format(self.what, self.size,
                                        table.concat(parts, "; "))
end

-- Returns a table with a value for each field. If the field has an element
-- type, one(field) computes its value. If it consists of structures,
-- some(field, k) computes a value for structure k, counted from 0. The values
-- of several structures are a list.
local function each_field(self, one, some)
  local out = {}
  for _, f in ipairs(self.fields) do
    if is_struct(f.type) then
      local list = {}
      for k = 0, f.count - 1 do list[k + 1] = some(f, k) end
      out[f.name] = f.count == 1 and list[1] or list
    else
      out[f.name] = one(f)
    end
  end
  return out
end

--- Returns pointers to the fields of a structure that begins at `bytes` (an
-- iterator of u8). For a field that is a structure, returns a table of
-- pointers.
---@param bytes table
---@return table
function Struct:at(bytes)
  return each_field(self, function(f)
    local view = core.make_tensor(bytes + f.offset, core.make_layout(f.size))
    return core.recast_tensor(view, f.type).iterator
  end, function(f, k)
    return f.type:at(bytes + (f.offset + k * f.type.size))
  end)
end

--- Allocates a structure in the shared memory of a kernel.
-- Returns pointers to its fields, like `at`. Each field is a separate
-- allocation, so that reports name the field and count its elements. The fields
-- of a union share one allocation.
---@param align? integer minimum alignment in bytes
---@return table
function Struct:allocate(align)
  local arch = require "cute.arch"
  align = math.max(align or 1, self.align)
  if self.what == "union" then
    return self:at(arch.alloc_smem(core.u8, self.size, align))
  end
  local function of(f) return f == self.fields[1] and align or f.align end
  return each_field(self, function(f)
    return arch.alloc_smem(f.type, f.count, of(f))
  end, function(f) return f.type:allocate(of(f)) end)
end

sign.class("struct", Struct, [[
  size_in_bytes() align_in_bytes() offsetof(name: string) at(bytes: tensor)
  allocate(align?: integer)
]])

--- Reports whether a value is a structure or union.
structs.is = is_struct

return structs
-- SPDX-License-Identifier: MIT
