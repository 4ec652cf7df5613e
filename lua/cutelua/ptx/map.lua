--- Encodes and decodes tensor maps that are passed as 128 bytes, and binds them
-- to the memory of a tensor.
local core = require "cute.core"
local cute = require "cute"

local map = {}

map.BYTES = 128

local function fail(what, ...)
  core.fail("bad-argument", what .. ": " .. string.format(...))
end

-- Returns the address of a tensor's memory and its number of bytes.
local function memory_of(t)
  local _, _, bytes = core.param_memory(t)
  return t.iterator.address, bytes
end

local function is_tensor(t)
  return core.typename(t) == "tensor" and pcall(core.param_memory, t)
end

-- Returns the first argument whose memory contains an address, and the byte
-- offset of the address in this memory.
local function containing(address, args)
  for i = 1, args.n do
    if is_tensor(args[i]) then
      local first, bytes = memory_of(args[i])
      if address >= first and address < first + bytes then
        return args[i], address - first
      end
    end
  end
end

-- Returns a tensor of the elements that map p describes, in the memory of
-- tensor t from byte `at` on.
local function view(p, t, at, what)
  local bits = p.dtype.bits
  local last, strides = 0, {1}
  for i, n in ipairs(p.extent) do
    if i > 1 then strides[i] = p.stride[i - 1] * 8 // bits end
    last = last + (n - 1) * strides[i]
  end
  local _, have = memory_of(t)
  local need = (last + 1) * bits // 8
  if at + need > have then
    fail(what, "the map describes %d bytes, but its tensor has %d", need,
         have - at)
  end
  local pointer = cute.recast_ptr(t.iterator, p.dtype)
  return cute.make_tensor(pointer + at * 8 // bits,
                          cute.make_layout(p.extent, strides))
end

--- Returns the TMA atom that an encoded tensor map describes.
---@param bytes string 128 bytes from cuTensorMapEncodeTiled or
-- cuTensorMapEncodeIm2col
---@param t table? the tensor whose memory replaces the map's address
---@param args table? if t is nil: the arguments of the call; the map's address
-- must be in one of these tensors
---@param what string beginning of error messages
---@return table atom
function map.atom(bytes, t, args, what)
  local p, why = core.decode_tensor_map(bytes)
  if not p then fail(what, "%s", (why:gsub(" %[[%l-]+%]$", ""))) end
  local at = 0
  if not t then
    t, at = containing(p.address, args)
    if not t then
      fail(what, "the map's address 0x%x is in no tensor of this call\n  name "
        .. "the tensor: {map = bytes, tensor = x}", p.address)
    end
  elseif not is_tensor(t) then
    fail(what, "the field `tensor` of {map =, tensor =} is %s, not a tensor",
         core.show(t))
  end
  p.tensor, p.leaf = view(p, t, at, what), {}
  for i = 1, p.rank do p.leaf[i] = i - 1 end
  p.values = p.im2col and p.channels * p.pixels or cute.product(p.box)
  p.tile = p.values
  return core.tma_atom(p)
end

--- Returns the bytes of a tensor map.
---@param p table of core.encode_tensor_map
---@return string
function map.encode(p)
  return ("<" .. ("i8"):rep(16)):pack(table.unpack(core.encode_tensor_map(p)))
end

--- Replaces the tensor maps among the arguments of a call by TMA atoms. Such a
-- map is a string of bytes, or a table {map = bytes, tensor = t}.
---@param entry table of core.ptx_entry
---@param args table the arguments, with their number n
function map.resolve(entry, args)
  for i, p in ipairs(entry.parameters) do
    local a = args[i]
    local what = ("entry %s: parameter %s"):format(entry.name, p.name)
    if map.takes(p) and type(a) == "string" then
      args[i] = map.atom(a, nil, args, what)
    elseif map.takes(p) and type(a) == "table" and a.map then
      for k in pairs(a) do
        if k ~= "map" and k ~= "tensor" then
          fail(what, "{map =, tensor =} has no field %s", core.show(k))
        end
      end
      args[i] = map.atom(a.map, a.tensor, args, what)
    end
  end
end

--- Reports whether a parameter has the size and alignment of a tensor map.
---@param p table of entry.parameters
---@return boolean
function map.takes(p)
  return p.array and p.bits // 8 * p.count == map.BYTES and p.align >= 64
end

return map
-- SPDX-License-Identifier: MIT
