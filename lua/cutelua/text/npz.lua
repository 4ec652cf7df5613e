--- Reads and writes .npz files, which are ZIP archives of .npy files.
--
--     local arrays = cute.npz.read "weights.npz"
--     local W = cute.npy.tensor(arrays.W)
--     cute.npz.write("out.npz", {W = arrays.W}, {compress = true})
--
-- An array is a table as in cute.npy. Members may be stored or deflated.
-- Archives of more than 4 GiB (ZIP64) are supported. npz.read verifies the
-- checksum of each member.
local core = require "cute.core"
local npy = require "cutelua.text.npy"
local output = require "cutelua.text.output"
local sign = require "cute.lang.signature"

local npz = {}

-- The maximum size in bytes of the record that ends a ZIP file, including its
-- comment.
local TAIL = 22 + 0xffff
local FULL16, FULL32 = 0xffff, 0xffffffff
local MOST_MEMBERS = 1000000
local MOST_DIRECTORY = 1 << 28  -- bytes

-- Returns n bytes of file f from position `at`. Returns nil if the file is
-- shorter.
local function bytes_at(f, at, n)
  if at < 0 or not f:seek("set", at) then return nil end
  local bytes = n == 0 and "" or f:read(n)
  return bytes and #bytes == n and bytes or nil
end

-- Finds the central directory of a ZIP file f of `size` bytes. Returns its
-- position, its size in bytes, and the number of members. Returns nil and a
-- reason if the file has no valid end record.
local function find_directory(f, size)
  local from = math.max(0, size - TAIL)
  local tail, at = bytes_at(f, from, size - from), nil
  -- The end record is the last one in the file whose comment ends at the end of
  -- the file.
  for i = #tail - 21, 1, -1 do
    if tail:sub(i, i + 3) == "PK\5\6"
      and i + 21 + ("<I2"):unpack(tail, i + 20) == #tail then
      at = i
      break
    end
  end
  if not at then return nil, "is not a ZIP archive (it has no end record)" end
  local count, bytes, place = ("<I2I4I4"):unpack(tail, at + 10)
  if count < FULL16 and bytes < FULL32 and place < FULL32 then
    return place, bytes, count
  end
  local locator = bytes_at(f, from + at - 1 - 20, 20)
  local record = locator and locator:sub(1, 4) == "PK\6\7"
    and bytes_at(f, (("<i8"):unpack(locator, 9)), 56)
  if not record or record:sub(1, 4) ~= "PK\6\6" then
    return nil, "has no end record of ZIP64"
  end
  count, bytes, place = ("<i8i8i8"):unpack(record, 33)
  return place, bytes, count
end

-- Reads those sizes and positions of member m that exceed 32 bits. They are in
-- the extra field of ZIP64. `extra` contains all extra fields of the member.
-- Returns m, or nil and a reason if a field is invalid.
local function read_zip64(m, extra)
  local at = 1
  while at + 3 <= #extra do
    local id, n = ("<I2I2"):unpack(extra, at)
    if at + 3 + n > #extra then return nil, "has a broken extra field" end
    local from, stop = at + 4, at + 4 + n
    for _, k in ipairs(id == 1 and {"size", "packed", "at"} or {}) do
      if m[k] == FULL32 then
        if from + 8 > stop then return nil, "has a broken field of ZIP64" end
        m[k], from = ("<i8"):unpack(extra, from)
      end
    end
    at = stop
  end
  return m
end

-- Parses the central directory record of a member at position `at` of text.
-- `place` is the file position of the directory. Returns the member and the
-- position of the next record, or nil and a reason.
local function read_member(text, at, place)
  local here = ("has a broken record at byte %d"):format(place + at - 1)
  if text:sub(at, at + 3) ~= "PK\1\2" or at + 45 > #text then
    return nil, here
  end
  local flags, method = ("<I2I2"):unpack(text, at + 8)
  local crc, packed, size, n, extra, comment = ("<I4I4I4I2I2I2")
    :unpack(text, at + 16)
  local first = ("<I4"):unpack(text, at + 42)
  local stop = at + 46 + n + extra + comment
  if stop - 1 > #text then return nil, here end
  local m, why = read_zip64({name = text:sub(at + 46, at + 45 + n),
    flags = flags, method = method, crc = crc, packed = packed, size = size,
    at = first}, text:sub(at + 46 + n, at + 45 + n + extra))
  if not m then return nil, why end
  if m.packed < 0 or m.size < 0 or m.at < 0 then return nil, here end
  return m, stop
end

-- Returns the members in the central directory of file f, as a list. Returns
-- nil and a reason if the directory is invalid.
local function members(f, size)
  local place, bytes, count = find_directory(f, size)
  if not place then return nil, bytes end
  if bytes < 0 or place < 0 or place > size - bytes or count < 0
    or count > MOST_MEMBERS or bytes > MOST_DIRECTORY then
    return nil, ("has a directory of %d members in %d bytes at byte %d")
      :format(count, bytes, place)
  end
  local text, list, at = bytes_at(f, place, bytes), {}, 1
  for i = 1, count do
    local m, after = read_member(text or "", at, place)
    if not m then return nil, after end
    list[i], at = m, after
  end
  return list
end

-- Returns the uncompressed contents of member m. Returns nil and a reason if
-- they cannot be read.
local function unpacked(f, m)
  if m.flags & 1 ~= 0 then return nil, "is encrypted" end
  if m.method ~= 0 and m.method ~= 8 then
    return nil, ("is compressed by method %d; stored and deflated members can "
      .. "be read"):format(m.method)
  end
  local head = bytes_at(f, m.at, 30)
  if not head or head:sub(1, 4) ~= "PK\3\4" then
    return nil, ("has no header at byte %d"):format(m.at)
  end
  local n, extra = ("<I2I2"):unpack(head, 27)
  local bytes = bytes_at(f, m.at + 30 + n + extra, m.packed)
  if not bytes then return nil, "is cut off" end
  local why
  if m.method == 8 then bytes, why = core.inflate(bytes, m.size) end
  if not bytes then return nil, why end
  if #bytes ~= m.size then
    return nil, ("has %d bytes instead of %d"):format(#bytes, m.size)
  elseif core.crc32(bytes) ~= m.crc then
    return nil, "has a wrong checksum"
  end
  return bytes
end

-- Returns the array that a member contains, or nil and a reason.
local function array_of(f, m, dtype)
  local bytes, why = unpacked(f, m)
  if not bytes then return nil, why end
  local array, from = npy.header(bytes, dtype)
  if not array then return nil, from end
  if #bytes - from + 1 < array.size then
    return nil, ("is too short: %d bytes of elements expected, got %d")
      :format(array.size, #bytes - from + 1)
  end
  array.bytes = bytes:sub(from, from + array.size - 1)
  return array
end

local function read_open(f, opt)
  local size = f:seek "end"
  if not size then return nil, "cannot be read: it is a pipe or a device" end
  local list, why = members(f, size)
  if not list then return nil, why end
  local wanted, met, arrays = opt.names and {}, {}, {}
  for _, name in ipairs(opt.names or {}) do wanted[name] = true end
  for _, m in ipairs(list) do
    local name = m.name:match "^(.*)%.npy$"
    if met[m.name] then
      return nil, ("has two members %s"):format(core.visible(m.name))
    end
    met[m.name] = true
    if name and (not wanted or wanted[name]) then
      local dtype = opt.dtype
      if type(dtype) == "table" then dtype = dtype[name] end
      arrays[name], why = array_of(f, m, dtype)
      if not arrays[name] then
        return nil, ("member %s %s"):format(core.visible(m.name), why)
      end
    end
  end
  for _, name in ipairs(opt.names or {}) do
    if not arrays[name] then
      return nil, ("has no array %s"):format(core.visible(name))
    end
  end
  return arrays
end

--- Reads the arrays of an archive. Returns a table of arrays by name. Members
-- that are not .npy files are ignored. opt.dtype is the expected element type,
-- or a table of types by name, for types that the file does not name (see
-- cute.npy.read). opt.names lists the arrays to read.
---@param path string
---@param opt? {dtype: string|table<string, string>?, names: string[]?}
---@return table<string, table>? arrays, string? message
function npz.read(path, opt)
  local f <close>, why = core.open_input(path)
  if not f then
    return nil, ("cannot open %s: %s [io]"):format(core.visible(path), why)
  end
  local arrays
  arrays, why = read_open(f, opt or {})
  if not arrays then
    return nil, ("%s %s [io]"):format(core.visible(path), why)
  end
  return arrays
end

-- Returns three values for the headers of member m. The first is the text that
-- the local and the central header have in common. The second is the extra
-- field of ZIP64, with the numbers that exceed 32 bits; it is "" if there is
-- none. The third is the value of the position field; it is returned only if
-- with_place is true.
local function shared_fields(m, with_place)
  local extra = ""
  local function small(n)
    if n < FULL32 then return n end
    extra = extra .. ("<i8"):pack(n)
    return FULL32
  end
  local size, packed = small(m.size), small(m.packed)
  local place = with_place and small(m.at)
  if extra ~= "" then extra = ("<I2I2"):pack(1, #extra) .. extra end
  -- The fields up to the file size are: version, flags (UTF-8 names),
  -- compression method, time and date (1980-01-01), checksum.
  local head = ("<I2I2I2I2I2I4I4I4I2I2"):pack(extra == "" and 20 or 45, 1 << 11,
    m.method, 0, 33, m.crc, packed, size, #m.name, #extra)
  return head, extra, place
end

-- Returns the end of an archive as text. It consists of the central directory
-- of the members in `list` and the end records. The directory begins at byte
-- `at`.
local function directory(list, at)
  local out, bytes = {}, 0
  for i, m in ipairs(list) do
    local head, extra, place = shared_fields(m, true)
    -- The numbers are: comment length, disk number, internal attributes,
    -- external attributes, position.
    out[i] = "PK\1\2" .. ("<I2"):pack(3 << 8 | 45) .. head
      .. ("<I2I2I2I4I4"):pack(0, 0, 0, 0x1a4 << 16, place) .. m.name .. extra
    bytes = bytes + #out[i]
  end
  local n = #list
  if n >= FULL16 or at >= FULL32 or bytes >= FULL32 then
    out[#out + 1] = "PK\6\6" .. ("<i8I2I2I4I4i8i8i8i8"):pack(44, 45, 45, 0, 0,
      n, n, bytes, at) .. "PK\6\7" .. ("<I4i8I4"):pack(0, at + bytes, 1)
  end
  local few = math.min(n, FULL16)
  out[#out + 1] = "PK\5\6" .. ("<I2I2I2I2I4I4I2"):pack(0, 0, few, few,
    math.min(bytes, FULL32), math.min(at, FULL32), 0)
  return table.concat(out)
end

local function check_names(arrays)
  local names = {}
  for name in pairs(arrays) do
    if type(name) ~= "string" or name == "" or #name > 60000
      or name:find "%z" then
      core.fail("bad-argument", ("npz.write: %s is not a name of an array")
        :format(core.show(name)))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- Writes arrays to an archive. Writes a temporary file first, and then
-- replaces the file.
---@param path string
---@param arrays table<string, table> name = {dtype =, shape =, fortran =, bytes
-- =}
---@param opt? {compress: boolean?} compress: deflate the members
---@return boolean? ok, string? message
function npz.write(path, arrays, opt)
  local pieces, list, at = {}, {}, 0
  for i, name in ipairs(check_names(arrays)) do
    local bytes = npy.text(arrays[name])
    local data = opt and opt.compress and core.deflate(bytes) or bytes
    local m = {name = name .. ".npy", method = data == bytes and 0 or 8,
               crc = core.crc32(bytes), packed = #data, size = #bytes, at = at}
    list[i] = m
    local head, extra = shared_fields(m)
    head = "PK\3\4" .. head .. m.name .. extra
    pieces[#pieces + 1] = head
    pieces[#pieces + 1] = data
    at = at + #head + #data
  end
  pieces[#pieces + 1] = directory(list, at)
  return output.write_file(path, table.concat(pieces))
end

return sign.public("npz.", npz, [[
  read(path: string, opts?: {dtype names})
  write(path: string, arrays: table, opts?: {compress})
]])
-- SPDX-License-Identifier: MIT
