--- Reads tensors of GGUF files, the format of llama.cpp and ggml. Versions 2
-- and 3 in little-endian order are supported.
--
--     local f = cute.gguf.open {"model.gguf"}
--     f.metadata["general.architecture"]
--     local w = f:tensor "output_norm.weight"     -- a host tensor
--     local b = f:blocks "blk.0.attn_q.weight"    -- bytes of quantised rows
--     local v = f:values "blk.0.attn_q.weight"    -- f32, for some types
--
-- A file begins with the number of tensors, the number of metadata entries, and
-- the metadata. The name, extents, type and offset of each tensor follow, and
-- then the data.
--
-- Only the metadata is kept in memory. f:tensor maps a tensor's data, and reads
-- the data only if the system cannot map it. GGUF lists the fastest extent
-- first. The tensors here have contiguous rows and the slowest extent first.
local core = require "cute.core"
local cute = require "cute"
local mapped = require "cutelua.text.mapped"
local sign = require "cute.lang.signature"

local gguf = {}

local DEEPEST = 8  -- maximum nesting depth of arrays

-- The maximum number of array elements in a file's metadata, and the maximum
-- number of bytes of a string. Without these limits, a sparse file of zeros
-- could exhaust the memory.
local MOST_ELEMENTS, MOST_BYTES = 1 << 24, 1 << 26

-- The element types by GGUF's type number: {name, elements per block, bytes per
-- block, cute's dtype}. Types without a dtype are quantised.
local TYPES = {[0] = {"F32", 1, 4, "f32"}, {"F16", 1, 2, "f16"},
  {"Q4_0", 32, 18}, {"Q4_1", 32, 20}, nil, nil, {"Q5_0", 32, 22},
  {"Q5_1", 32, 24}, {"Q8_0", 32, 34}, {"Q8_1", 32, 40}, {"Q2_K", 256, 84},
  {"Q3_K", 256, 110}, {"Q4_K", 256, 144}, {"Q5_K", 256, 176},
  {"Q6_K", 256, 210}, {"Q8_K", 256, 292}, {"IQ2_XXS", 256, 66},
  {"IQ2_XS", 256, 74}, {"IQ3_XXS", 256, 98}, {"IQ1_S", 256, 50},
  {"IQ4_NL", 32, 18}, {"IQ3_S", 256, 110}, {"IQ2_S", 256, 82},
  {"IQ4_XS", 256, 136}, {"I8", 1, 1, "i8"}, {"I16", 1, 2, "i16"},
  {"I32", 1, 4, "i32"}, {"I64", 1, 8, "i64"}, {"F64", 1, 8, "f64"},
  {"IQ1_M", 256, 56}, {"BF16", 1, 2, "bf16"}, [34] = {"TQ1_0", 256, 54},
  [35] = {"TQ2_0", 256, 66}, [39] = {"MXFP4", 32, 17},
  [40] = {"NVFP4", 64, 36}, [41] = {"Q1_0", 128, 18}}

-- The string.unpack formats of the metadata types that are numbers, by GGUF's
-- type number.
local PLAIN = {[0] = "<B", "<b", "<H", "<h", "<I4", "<i4", "<f", [10] = "<I8",
               [11] = "<i8", [12] = "<d"}
local BOOL, STRING, ARRAY = 7, 8, 9
-- The minimum number of bytes of a metadata value, by GGUF's type number.
local LEAST = {[BOOL] = 1, [STRING] = 8, [ARRAY] = 12}
for i, f in pairs(PLAIN) do LEAST[i] = f:packsize() end

local function fail(path, text, ...)
  core.fail("io", ("gguf.open: %s: %s"):format(core.visible(path),
    text:format(...)))
end

---------------------------------------------------------------------------
-- The head of a file
---------------------------------------------------------------------------

local Reader = {}
Reader.__index = Reader

function Reader:fail(text, ...)
  fail(self.path, "byte %d: " .. text, self.at, ...)
end

-- Reads and returns the next n bytes.
function Reader:bytes(n)
  if not math.ult(n, self.total - self.at + 1) then
    self:fail("%u bytes are needed, but the file has %d", n, self.total)
  end
  local s = n == 0 and "" or self.file:read(n)
  if not s or #s < n then self:fail("%d bytes could not be read", n) end
  self.at = self.at + n
  return s
end

function Reader:number(format)
  return (format:unpack(self:bytes(format:packsize())))
end

-- Reads and returns the number of entries of a list. `least` is the minimum
-- number of bytes per entry. Raises an error if the rest of the file is too
-- short for the entries.
function Reader:count(what, least)
  local n = self:number "<I8"
  if not math.ult(n, (self.total - self.at) // least + 1) then
    self.at = self.at - 8
    self:fail("the file claims to have %u %s, but has only %d bytes", n, what,
              self.total)
  end
  return n
end

function Reader:text()
  local n = self:count("bytes of a text", 1)
  if n > MOST_BYTES then
    self:fail("a text has %d bytes; %d is the limit", n, MOST_BYTES)
  end
  return self:bytes(n)
end

function Reader:value(type_, depth)
  if PLAIN[type_] then
    return self:number(PLAIN[type_])
  elseif type_ == STRING then
    return self:text()
  elseif type_ == BOOL then
    local n = self:number "<B"
    if n > 1 then
      self:fail("a boolean has the value %d; 0 or 1 is needed", n)
    end
    return n == 1
  elseif type_ ~= ARRAY then
    self:fail("a value of the metadata has type %d; types 0 to 12 are defined",
              type_)
  elseif depth == DEEPEST then
    self:fail("arrays have more than %d levels of nesting", DEEPEST)
  end
  local of = self:number "<I4"
  local list, n = {}, self:count("elements", LEAST[of] or 1)
  self.elements = self.elements + n
  if self.elements > MOST_ELEMENTS then
    self:fail("the metadata have more than %d elements", MOST_ELEMENTS)
  end
  for i = 1, n do
    list[i] = self:value(of, depth + 1)
  end
  return list
end

-- Reads the description of a tensor. Returns the tensor's name and its entry, a
-- table.
function Reader:entry()
  local at, name = self.at, self:text()
  local what = ("%s (byte %d)"):format(core.visible(name), at)
  local rank = self:number "<I4"
  if rank > 4 then
    fail(self.path, "%s has %d extents; at most 4 are defined", what, rank)
  end
  local shape, room = {}, self.total
  for i = rank, 1, -1 do
    local n = self:number "<i8"
    if n < 0 or n > 0 and room // n == 0 then
      fail(self.path, "%s: extent %u is %u, more than the file can hold", what,
           rank - i, n)
    end
    if n > 0 then room = room // n end
    shape[i] = n
  end
  local number, from = self:number "<I4", self:number "<i8"
  local t = TYPES[number]
  if not t then
    fail(self.path, "%s has the type %d, which is not supported", what, number)
  end
  local first = rank == 0 and 1 or shape[rank]
  if first % t[2] ~= 0 then
    fail(self.path, "%s: rows of %d elements are not a whole number of blocks "
      .. "of %s, which have %d", what, first, t[1], t[2])
  end
  return name, {file = self.file, path = self.path, type = t[1], dtype = t[4],
    shape = shape, block = t[2], block_bytes = t[3], at = from, what = what,
    bytes = cute.product(rank == 0 and {1} or shape) // t[2] * t[3]}
end

-- Converts the tensors' offsets to positions in the file. The offsets count
-- from byte `from` of the file, where the data begins. Raises an error for an
-- offset that is not a multiple of `align`, for data beyond the end of the
-- file, and for tensors that overlap.
local function place(self, list, from, align)
  for _, e in ipairs(list) do
    local size = self.total - from
    if e.at < 0 or e.at % align ~= 0 or e.at > size or e.bytes > size - e.at
    then
      fail(self.path, "%s has %d bytes at offset %d of the data; the offset "
        .. "must be a multiple of %d, and the end within the file's %d bytes "
        .. "of data", e.what, e.bytes, e.at, align, math.max(size, 0))
    end
    e.at = from + e.at
  end
  table.sort(list, function(a, b)
    if a.at ~= b.at then return a.at < b.at end
    return a.bytes < b.bytes
  end)
  for i = 2, #list do
    local a, b = list[i - 1], list[i]
    if a.at + a.bytes > b.at then
      fail(self.path, "%s overlaps %s", b.what, a.what)
    end
  end
end

-- Adds the tensors and the metadata of one file to `files`.
local function add(files, path)
  local f, why = core.open_input(path)
  if not f then fail(path, "%s", why) end
  local total = f:seek "end"
  if not total then fail(path, "a file is needed; this is a pipe or device") end
  f:seek("set", 0)
  local r = setmetatable({file = f, path = path, at = 0, total = total,
    elements = 0}, Reader)
  if total < 24 or r:bytes(4) ~= "GGUF" then
    fail(path, "not a GGUF file: it does not begin with GGUF and two counts")
  end
  local version = r:number "<I4"
  if version ~= 2 and version ~= 3 then
    fail(path, (">I4"):unpack(("<I4"):pack(version)) <= 3
      and "it is big-endian; a little-endian file is needed"
      or "it has version %u; 2 and 3 are supported", version)
  end
  local tensors = r:number "<I8"
  local own = {}
  for _ = 1, r:count("metadata", 13) do
    local key = r:text()
    if own[key] ~= nil then r:fail("%s occurs twice", core.visible(key)) end
    own[key] = r:value(r:number "<I4", 0)
  end
  local align = own["general.alignment"]
  if align == nil then align = 32 end
  if math.type(align) ~= "integer" or align < 1 or align & align - 1 ~= 0 then
    fail(path, "general.alignment is %s; a power of two is needed",
         core.show(align))
  end
  if not math.ult(tensors, total // 24 + 1) then
    fail(path, "the file claims to have %u tensors, but has only %d bytes",
         tensors, total)
  end
  local list = {}
  for i = 1, tensors do
    local name, e = r:entry()
    if files.entries[name] then fail(path, "%s occurs twice", e.what) end
    files.entries[name], list[i] = e, e
  end
  place(r, list, (r.at + align - 1) // align * align, align)
  for k, v in pairs(own) do files.metadata[k] = v end
end

---------------------------------------------------------------------------
-- Values of blocks
---------------------------------------------------------------------------

local E2M1 = {[0] = 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0,
              -1.5, -2.0, -3.0, -4.0, -6.0}

local function decoded(dtype, byte)
  return cute.buffer_from(dtype, string.char(byte))[0]
end

-- The number that each byte encodes, by the dtype of the scale factors. Byte
-- 255 of E8M0 is a NaN, and so is byte 127 of E4M3.
local scale = setmetatable({}, {__index = function(t, dtype)
  t[dtype] = {}
  for i = 0, 255 do t[dtype][i] = decoded(dtype, i) end
  return t[dtype]
end})

-- Decodes n bytes of block s, from byte `from` on. Each byte holds two 4-bit
-- values. Stores f(low 4 bits) of all bytes in `out` from index `at` on, and
-- f(high 4 bits) of all bytes after them.
local function halves(s, from, n, out, at, f)
  for i = 0, n - 1 do
    local b = s:byte(from + i)
    out[at + i], out[at + n + i] = f(b & 15), f(b >> 4)
  end
end

local f16 = setmetatable({}, {__index = function(_, text)
  return cute.buffer_from("f16", text)[0]
end})

-- For each quantised type, a function that decodes the block s and stores its
-- values in the list `out`.
local DECODE = {}

function DECODE.MXFP4(s, out)
  local d = scale.ue8m0[s:byte(1)]
  halves(s, 2, 16, out, 1, function(q) return d * E2M1[q] end)
end

-- A block has 4 scale factors. Each applies to 16 elements, which are 8 bytes.
function DECODE.NVFP4(s, out)
  for k = 0, 3 do
    local d = scale.e4m3[s:byte(k + 1)]
    halves(s, 5 + 8 * k, 8, out, 1 + 16 * k, function(q) return d * E2M1[q] end)
  end
end

function DECODE.Q4_0(s, out)
  local d = f16[s:sub(1, 2)]
  halves(s, 3, 16, out, 1, function(q) return d * (q - 8) end)
end

function DECODE.Q4_1(s, out)
  local d, m = f16[s:sub(1, 2)], f16[s:sub(3, 4)]
  halves(s, 5, 16, out, 1, function(q) return d * q + m end)
end

function DECODE.Q8_0(s, out)
  local d = f16[s:sub(1, 2)]
  for i = 1, 32 do out[i] = d * ("<b"):unpack(s, i + 2) end
end

---------------------------------------------------------------------------
-- Files
---------------------------------------------------------------------------

local Files = {}
Files.__index = Files

--- Opens files, such as the parts of one model. Raises an error if a file is
-- not valid GGUF, or if two tensors have the same name.
---@param paths string[]
---@return table files with the fields `entries` (the tensors by name) and
-- `metadata` (the values by name)
function gguf.open(paths)
  local files = setmetatable({entries = {}, metadata = {}}, Files)
  for _, path in ipairs(paths) do add(files, path) end
  return files
end

local function entry(self, name)
  return self.entries[name]
    or core.fail("io", "no file has a tensor " .. core.visible(tostring(name)))
end

--- Returns a tensor on the host, with contiguous rows. Raises an error if its
-- elements are quantised in blocks.
---@param name string
---@return any
function Files:tensor(name)
  local e = entry(self, name)
  if not e.dtype then
    core.fail("type-mismatch", ("%s has the type %s, blocks of %d elements; "
      .. "f:blocks returns their bytes"):format(e.what, e.type, e.block))
  end
  return mapped.tensor(e, e.what, e.dtype, e.shape)
end

--- Returns the bytes of a tensor's blocks as a host tensor of u8. The last
-- extent is the number of bytes of a row.
---@param name string
---@return any
function Files:blocks(name)
  local e = entry(self, name)
  local shape = table.move(e.shape, 1, #e.shape, 1, {})
  local rank = math.max(#shape, 1)
  shape[rank] = (shape[rank] or 1) // e.block * e.block_bytes
  return mapped.tensor(e, e.what, "u8", shape)
end

--- Returns a tensor on the host. Quantised elements are converted to f32. The
-- supported quantised types are MXFP4, NVFP4, Q4_0, Q4_1 and Q8_0.
---@param name string
---@return any
function Files:values(name)
  local e = entry(self, name)
  if e.dtype then return self:tensor(name) end
  local decode = DECODE[e.type]
  if not decode then
    core.fail("type-mismatch", ("%s has the type %s, whose values this reader "
      .. "does not know; f:blocks returns its bytes"):format(e.what, e.type))
  end
  local format = "<" .. ("f"):rep(e.block)
  local out, pieces = {}, {}
  e.file:seek("set", e.at)
  for i = 1, e.bytes // e.block_bytes do
    decode(mapped.read(e, e.block_bytes, e.what), out)
    pieces[i] = format:pack(table.unpack(out, 1, e.block))
  end
  return cute.make_tensor(cute.buffer_from("f32", table.concat(pieces)),
                          cute.make_layout(e.shape, cute.LayoutRight))
end

sign.class("gguf", Files, [[
  tensor(name: string) blocks(name: string) values(name: string)
]])

return sign.public("gguf.", gguf, [[
  open(paths: table)
]])
-- SPDX-License-Identifier: MIT
