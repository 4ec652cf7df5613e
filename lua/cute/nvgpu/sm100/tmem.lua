--- Layouts of operands in tensor memory.
--
-- Tensor memory has 128 lanes and 512 columns of 32 bits. An offset of a layout
-- counts elements of its type. In addresses, neighbouring lanes are 2^16
-- columns apart, so they are 2^16 * 32 / bits elements apart.
--
-- The functions take the shape of a partition ((M,N),Rest...). The further
-- tiles that the rest modes count are in the columns after the first tile.
local core = require "cute.core"

local tmem = {}

local LANES = 1 << 16  -- distance of neighbouring lanes, in columns
-- The extent of a mode without an end: a power of two larger than tensor
-- memory.
local ENDLESS = 1 << 22

local function refuse(what, text, ...)
  core.fail("shape-mismatch", ("%s: "):format(what) .. text:format(...))
end

-- Returns M, N, and the list of the rest modes, for a partition's shape
-- ((M,N),Rest...).
local function split(what, shape)
  shape = core.typename(shape) == "tuple" and shape or core.shape(shape)
  local n = core.rank(shape)
  if n < 2 or core.rank(core.get(shape, 0)) ~= 2 then
    refuse(what, "%s is not the shape ((M,N),Rest...) of a partition",
           core.show(shape))
  end
  local rest = {}
  for i = 1, n - 1 do rest[i] = core.get(shape, i) end
  local first = core.get(shape, 0)
  return core.get(first, 0), core.get(first, 1), rest
end

-- Appends the modes `rest` to the layout `first`. places(i) is the offset of
-- element i of the rest modes.
local function with_rest(first, rest, places)
  local modes = {first}
  local inside = core.make_layout(rest)
  for i = 1, #rest do
    local one = core.composition(places, core.get(inside, i - 1))
    modes[i + 1] = core.size(one) == 1 and core.make_layout(rest[i], 0)
      or core.coalesce(one)
  end
  return core.make_layout(table.unpack(modes))
end

local function columns(stride) return core.make_layout({ENDLESS}, {stride}) end

local function lane_stride(bits) return LANES * 32 // bits end

-- Maps 64 rows to lanes. Rows 16 i to 16 i + 15 are in the first 16 of the 32
-- lanes that warp i accesses.
local function rows_of_64(lane)
  return core.make_layout({16, 4}, {lane, 32 * lane})
end

local function of_rows(what, m, allowed)
  if not allowed[m] then
    refuse(what, "no instruction has %s rows", core.show(m))
  end
end

--- Returns the layout of one CTA's accumulators. Each element occupies a
-- column, even if it is narrower than 32 bits. Accumulators of 64 rows use 16
-- of the 32 lanes that a warp accesses. Two such accumulators share their
-- columns: the second one is in the other 16 lanes.
---@param shape table ((64 or 128,N),Rest...)
---@param bits integer width of an element
---@param apart? boolean whether each accumulator has columns of its own
---@return cute.Layout
function tmem.accumulators(shape, bits, apart)
  local m, n, rest = split("tmem.accumulators", shape)
  of_rows("tmem.accumulators", m, {[64] = true, [128] = true})
  local lane, step = lane_stride(bits), 32 // bits
  local cols = core.make_layout(n, step)
  local rows = m == 128 and core.make_layout(128, lane) or rows_of_64(lane)
  local places = columns(n * step)
  if m == 64 and not apart then
    places = core.make_layout({2, ENDLESS}, {16 * lane, n * step})
  end
  return with_rest(core.make_layout(rows, cols), rest, places)
end

--- Returns the layout of one CTA's accumulators for an instruction that uses
-- all lanes: a .ws instruction, or an instruction of a pair of CTAs. With 64
-- rows, the columns are divided into 2 halves, and the second half is in the
-- lanes from 64 on. With 32 rows there are 4 quarters, each in 32 lanes.
---@param shape table ((32, 64 or 128,N),Rest...)
---@param bits integer width of an element
---@return cute.Layout
function tmem.all_lanes(shape, bits)
  local m, n, rest = split("tmem.all_lanes", shape)
  of_rows("tmem.all_lanes", m, {[32] = true, [64] = true, [128] = true})
  local lane, step, parts = lane_stride(bits), 32 // bits, 128 // m
  if n % parts ~= 0 then
    refuse("tmem.all_lanes", "%d columns do not divide into %d parts", n, parts)
  end
  local own = n // parts
  local cols = parts == 1 and core.make_layout(n, step)
    or core.make_layout({own, parts}, {step, m * lane})
  return with_rest(core.make_layout(core.make_layout(m, lane), cols), rest,
                   columns(own * step))
end

--- Returns the layout of operand A, whose elements are packed in columns. In a
-- pair of CTAs, each CTA stores 128 rows of A, even if it computes only 64 of
-- them.
---@param shape table ((64 or 128,K),Rest...)
---@param bits integer width of an element
---@param pair? boolean whether a pair of CTAs executes the MMA
---@return cute.Layout
function tmem.operand(shape, bits, pair)
  local m, k, rest = split("tmem.operand", shape)
  of_rows("tmem.operand", m, {[64] = true, [128] = true})
  local lane = lane_stride(bits)
  local rows = (m == 128 or pair) and core.make_layout(128, lane)
    or rows_of_64(lane)
  return with_rest(core.make_layout(rows, core.make_layout(k, 1)), rest,
                   columns(k))
end

-- For each width of A's elements in bits: {n, d, half}. The metadata has n / d
-- bits for each element of K. With `half`, rows are interleaved, and half a
-- column of 32 bits holds the metadata of `half` elements of K.
local METADATA = {[32] = {2, 1, 8}, [16] = {1, 1, 16}, [8] = {1, 1},
                  [4] = {1, 2}}

--- Returns the layout of a sparse A's metadata. Its offsets count elements of
-- K. The metadata of an element has 2 bits for tf32, half a bit for e2m1, and 1
-- bit for other types.
---@param shape table ((M,K),Rest...); K counts the elements of a dense row
---@param bits integer width of A's elements: 32, 16, 8, 4
---@param ws? boolean whether the instruction is .ws, for which the rows are
-- repeated to fill the 128 lanes
---@return cute.Layout
function tmem.metadata(shape, bits, ws)
  local m, k, rest = split("tmem.metadata", shape)
  local how = METADATA[bits]
  of_rows("tmem.metadata", how and m,
          {[128] = true, [64] = ws, [32] = ws})
  local lane, times = LANES * 32 * how[2] // how[1], 128 // m
  local half = how[3]
  local repeats = times > 1 and core.make_layout(times, m * lane)
  local first
  if half then
    if k ~= 2 * half then
      refuse("tmem.metadata", "K must be %d, not %d", 2 * half, k)
    end
    local rows = core.make_layout({8, 2, m // 16}, {lane, half, 16 * lane})
    local cols = core.make_layout({half, 2}, {1, 8 * lane})
    first = repeats and core.make_layout(rows, cols, repeats)
      or core.make_layout(rows, cols)
  else
    local cols = core.make_layout(k, 1)
    if repeats then
      cols = core.make_layout({k, times}, {1, m * lane})
    end
    first = core.make_layout(core.make_layout(m, lane), cols)
  end
  return with_rest(first, rest, columns(k))
end

--- Returns the layout of scale factors, which have 8 bits. One column of a lane
-- holds the factors of 4 blocks of one row. Lanes 0 to 31 hold 32 rows, and the
-- next columns hold further rows. The other lanes hold copies of these values.
-- With `halves`, the lanes from 64 on hold the second half of the rows instead.
---@param shape table ((MN,(elements of a block,blocks)),Rest...)
---@param halves? boolean whether these are B's factors for a pair of CTAs
---@return cute.Layout
function tmem.scale_factors(shape, halves)
  local mn, vs, rest = split("tmem.scale_factors", shape)
  local per, blocks = core.get(vs, 0), core.get(vs, 1)
  local lane, parts = lane_stride(8), halves and 2 or 1
  if mn % (32 * parts) ~= 0 or 4 % blocks ~= 0 then
    refuse("tmem.scale_factors", "%d rows must be a multiple of %d, and %d "
      .. "blocks 1, 2 or 4", mn, 32 * parts, blocks)
  end
  local own = mn // (32 * parts)
  local rows = core.make_layout({32, own}, {lane, 4})
  local all = core.make_layout(rows, core.make_layout(4, 32 * lane))
  if halves then
    all = core.make_layout(rows, core.make_layout(2, 64 * lane),
                           core.make_layout(2, 32 * lane))
  end
  local places = columns(4 * own)
  if blocks < 4 then
    places = core.make_layout({4 // blocks, ENDLESS}, {blocks, 4 * own})
  end
  local along_k = core.make_layout({per, blocks}, {0, 1})
  return with_rest(core.make_layout(all, along_k), rest, places)
end

--- Returns the layout from the bits that an atom copies to bit addresses of
-- tensor memory. The bits have the order of the atom's own layouts.
-- Neighbouring lanes are 2^21 bits apart.
---@param name string name of the atom, such as "SM100_TMEM_LOAD_32dp32b4x"
---@return cute.Layout
function tmem.bits_of(name)
  if name:find "^SM100_UTCCP_" then
    return core.make_copy_atom(name, core.b1).layout_tmem
  end
  local lanes = math.tointeger(tonumber(name:match "_(%d+)dp%d+b%d+x"))
  if not lanes then
    core.fail("bad-argument", ("%s does not copy tensor memory"):format(name))
  end
  local atom = core.make_copy_atom(name, core.b1)
  local bits = core.size(atom.layout_ref_tv, 1) // lanes
  local row = core.make_layout(bits, 1)
  -- The two 16-bit values that share a register are in two columns of tensor
  -- memory.
  if name:find "_16b$" then
    row = core.make_layout({16, bits // 16}, {1, 32})
  end
  return core.make_layout(row, core.make_layout(lanes, 1 << 21))
end

-- Reports whether neighbouring elements of a layout are packed in one column.
-- They are if a mode has stride 1.
local function is_dense(layout)
  local strides = core.flatten(layout).stride
  for _, d in ipairs(type(strides) == "table" and strides or {strides}) do
    if d == 1 then return true end
  end
  return false
end

--- Makes a tiled copy of a tensor in tensor memory by four warps. Each warp
-- copies the 32 lanes that it can access.
---@param copy_atom cute.CopyAtom
---@param layout cute.Layout the layout of the tensor
---@return cute.TiledCopy of 128 threads
function tmem.make_copy(copy_atom, layout)
  local bits, name = copy_atom.value_type.bits, copy_atom.name
  local packs = name:find "_16b$" ~= nil
  if bits == 16 and packs == is_dense(layout) then
    refuse("make_tmem_copy", packs
      and "columns have two values each, but %s copies one: give the "
        .. "operation Pack.NONE"
      or "values have a column each, but %s copies two values of a column: "
        .. "give the operation Pack.PACK_16b_IN_32b (a store, "
        .. "Unpack.UNPACK_32b_IN_16b)", name)
  end
  local values = core.coalesce(core.upcast(tmem.bits_of(name), bits))
  local warps = core.make_layout({32, 4}, {0, 32 * lane_stride(bits)})
  return core.make_cotiled_copy(copy_atom, core.make_layout(warps, values),
                                layout)
end

return tmem
-- SPDX-License-Identifier: MIT
