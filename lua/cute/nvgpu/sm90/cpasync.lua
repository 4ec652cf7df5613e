--- cute.nvgpu.cpasync: bulk copies of Hopper (sm_90). One thread starts a copy.
-- The TMA unit executes it, using a tensor map that describes the tensor in
-- global memory. The host makes an atom and a tensor of coordinates and passes
-- both to the kernel, which copies tiles with them:
--
--     local op = cpasync.CopyBulkTensorTileG2SOp()
--     local atom, coords = cpasync.make_tiled_tma_atom(op, A, sA_layout,
--                                                      {BM, BK})
--     -- in the kernel, with atom and coords:
--     local gA = cute.local_tile(coords, {BM, BK}, {bm, _})     -- (BM,BK,k)
--     local tAsA, tAgA = cpasync.tma_partition(atom, 0, cute.make_layout(1),
--       cute.group_modes(sA, 0, 2), cute.group_modes(gA, 0, 2))
--     cute.when(tid:eq(0), function()
--       cute.arch.mbarrier_arrive_and_expect_tx(bar, atom.tx_bytes)
--       cute.copy(atom, tAgA(_, k), tAsA(_, stage), {tma_bar_ptr = bar})
--     end)
--
-- Every thread that calls cute.copy issues the copy, so call it in one thread
-- only. Elements of a tile outside the tensor are loaded as zeros and never
-- stored; their bytes are still counted. A load signals its number of bytes to
-- its mbarrier. A thread that issues stores waits for the bulk groups of its
-- stores. Before a store, the threads that wrote the data must call
-- cute.arch.fence_view_async_shared(), and a barrier must follow.
local sign = require "cute.lang.signature"
local core = require "cute.core"

local cpasync = {}

---------------------------------------------------------------------------
-- Operations
---------------------------------------------------------------------------

-- With __closed, cute.lang.dependencies does not examine an operation's fields.
local Op = {__closed = true}
Op.__index = Op
function Op.__tostring(op) return op.name end

local function op_of(fields) return setmetatable(fields, Op) end

--- The PTX cache operators of cp.async and of loads.
cpasync.LoadCacheMode = {ALWAYS = "ca", GLOBAL = "cg", STREAMING = "cs",
                         LAST_USE = "lu", NONE = "cv"}

--- Makes the operation cp.async, with which each thread copies its own elements
-- from global to shared memory; for cute.make_copy_atom(op, dtype, bits).
---@param cache_mode? string from LoadCacheMode: ALWAYS (when absent) or GLOBAL
function cpasync.CopyG2SOp(cache_mode)
  local kind = cache_mode or "ca"
  if kind ~= "ca" and kind ~= "cg" then
    core.fail("unknown-name", ("CopyG2SOp: no cache mode '%s'; LoadCacheMode."
      .. "ALWAYS and LoadCacheMode.GLOBAL are possible"):format(kind))
  end
  return op_of {name = "CopyG2SOp", atom = "SM80_CP_ASYNC_CACHE"
    .. (kind == "ca" and "ALWAYS" or "GLOBAL")}
end

-- Makes a load by TMA. With cta_group 2 (tcgen05.CtaGroup.TWO), the mbarrier of
-- the even CTA in a pair of CTAs counts the bytes of the load.
local function tma_load(name, cta_group, fields)
  cta_group = cta_group or 1
  if cta_group ~= 1 and cta_group ~= 2 then
    core.fail("bad-argument", ("%s: cta_group must be CtaGroup.ONE or TWO, not "
      .. "%s"):format(name, core.show(cta_group)))
  end
  fields.name, fields.pair = name, cta_group == 2
  return op_of(fields)
end

--- Makes the operation that copies boxes from global to shared memory. With
-- CtaGroup.TWO (sm_100a and its family), CTAs of a cluster form pairs, and the
-- mbarrier at tma_bar_ptr of the pair's even CTA counts the bytes.
---@param cta_group? integer from tcgen05.CtaGroup, ONE when absent
function cpasync.CopyBulkTensorTileG2SOp(cta_group)
  return tma_load("CopyBulkTensorTileG2SOp", cta_group, {})
end

--- Makes the operation that copies boxes from global memory to the shared
-- memory of several CTAs of a cluster, which a mask selects. With CtaGroup.TWO,
-- the mbarrier of the even CTA of each pair counts the bytes.
---@param cta_group? integer from tcgen05.CtaGroup, ONE when absent
function cpasync.CopyBulkTensorTileG2SMulticastOp(cta_group)
  return tma_load("CopyBulkTensorTileG2SMulticastOp", cta_group,
                  {multicast = true})
end

--- Makes the operation that copies boxes from shared to global memory.
function cpasync.CopyBulkTensorTileS2GOp()
  return op_of {name = "CopyBulkTensorTileS2GOp", store = true}
end

--- Makes the operation that gathers rows of a matrix in global memory, four at
-- a time (tile::gather4, sm_100 and later). A tensor of i32 lists the rows: see
-- gmem_coord_tensor of make_tiled_tma_atom. Rows outside the matrix are loaded
-- as zeros.
---@param cta_group? integer as for CopyBulkTensorTileG2SOp
function cpasync.CopyBulkTensor2DGather4G2SOp(cta_group)
  return tma_load("CopyBulkTensor2DGather4G2SOp", cta_group, {rows = true})
end

--- Makes the operation that gathers rows of a matrix to the shared memory of
-- several CTAs of a cluster, which a mask selects.
---@param cta_group? integer as for CopyBulkTensorTileG2SOp
function cpasync.CopyBulkTensor2DGather4G2SMulticastOp(cta_group)
  return tma_load("CopyBulkTensor2DGather4G2SMulticastOp", cta_group,
                  {rows = true, multicast = true})
end

--- Makes the operation that scatters rows in shared memory to rows of a matrix
-- in global memory, four at a time (tile::scatter4). Rows outside the matrix
-- are not stored. If two row numbers are equal, PTX does not say which of the
-- two rows is stored.
function cpasync.CopyBulkTensor2DScatter4S2GOp()
  return op_of {name = "CopyBulkTensor2DScatter4S2GOp", store = true,
                rows = true}
end

--- Operations that combine the elements that a TMA reduction copies with the
-- elements in global memory.
cpasync.ReductionKind = {ADD = "add", MIN = "min", MAX = "max", AND = "and",
                         OR = "or", XOR = "xor"}

--- Makes the operation that combines boxes in shared memory with the elements
-- in global memory (a TMA reduction).
---@param reduction_kind? string from ReductionKind, "add" when absent
function cpasync.CopyReduceBulkTensorTileS2GOp(reduction_kind)
  local kind = reduction_kind or "add"
  if cpasync.ReductionKind[kind:upper()] ~= kind then
    core.fail("unknown-name", ("CopyReduceBulkTensorTileS2GOp: no reduction "
      .. "'%s' (add min max and or xor)"):format(kind))
  end
  return op_of {name = "CopyReduceBulkTensorTileS2GOp", store = true,
                reduction = kind}
end

--- Makes the operation that copies contiguous runs of bytes without a tensor
-- map, for cute.make_copy_atom(op, dtype). Loads and copies to another CTA take
-- mbar_ptr, the mbarrier that counts the bytes; copies to another CTA also take
-- cta_rank:
--     cute.copy(atom, src, dst, {mbar_ptr = bar})
function cpasync.CopyBulkG2SOp()
  return op_of {name = "CopyBulkG2SOp", runs = "G2S"}
end

--- Makes the operation that copies contiguous runs of bytes to the shared
-- memory of several CTAs of a cluster, which a mask (mcast_mask) selects.
function cpasync.CopyBulkG2SMulticastOp()
  return op_of {name = "CopyBulkG2SMulticastOp", runs = "G2S",
                multicast = true}
end

--- Makes the operation that copies contiguous runs of bytes from shared to
-- global memory.
function cpasync.CopyBulkS2GOp()
  return op_of {name = "CopyBulkS2GOp", runs = "S2G"}
end

--- Makes the operation that loads a convolution's operand, for
-- make_im2col_tma_atom.
---@param cta_group? integer as for CopyBulkTensorTileG2SOp
function cpasync.CopyBulkTensorIm2ColG2SOp(cta_group)
  return tma_load("CopyBulkTensorIm2ColG2SOp", cta_group, {im2col = true})
end

--- Makes the operation that loads a convolution's operand into the shared
-- memory of several CTAs of a cluster, which a mask selects.
---@param cta_group? integer as for CopyBulkTensorTileG2SOp
function cpasync.CopyBulkTensorIm2ColG2SMulticastOp(cta_group)
  return tma_load("CopyBulkTensorIm2ColG2SMulticastOp", cta_group,
                  {im2col = true, multicast = true})
end

--- Makes the operation that stores pixels of a result to an image. It is the
-- inverse of an im2col load whose filter has one position.
function cpasync.CopyBulkTensorIm2ColS2GOp()
  return op_of {name = "CopyBulkTensorIm2ColS2GOp", im2col = true,
                store = true}
end

--- Makes the operation that copies runs of bytes to the shared memory of
-- another CTA (cta_rank) and signals the mbarrier there.
function cpasync.CopyBulkS2SOp()
  return op_of {name = "CopyBulkS2SOp", runs = "S2S"}
end

--- Makes the operation that stores registers to the shared memory of another
-- CTA (cta_rank), in values of 32 or 64 bits. The mbarrier at mbar_ptr in that
-- CTA counts the bytes.
function cpasync.CopyDsmemStoreOp()
  return op_of {name = "CopyDsmemStoreOp", runs = "R2S"}
end

--- Returns both tensors, divided so that the first mode holds as many elements
-- as are contiguous in both.
---@param src table
---@param dst table
---@return table src, table dst
function cpasync.group_bulk_copy_modes(src, dst)
  local n = core.max_common_vector(src.layout, dst.layout)
  local function grouped(t)
    return core.make_tensor(t.iterator, core.logical_divide(
      core.coalesce(t.layout), n))
  end
  return grouped(src), grouped(dst)
end

--- L2 eviction policies for the data of a copy: the values of the option
-- cache_policy of cute.copy.
cpasync.CacheHint = {EVICT_NORMAL = 0x1000000000000000,
                     EVICT_FIRST = 0x12f0000000000000,
                     EVICT_LAST = 0x14f0000000000000}

---------------------------------------------------------------------------
-- Creation of atoms
---------------------------------------------------------------------------

-- The name of the public function that is running, for error messages of
-- `fail`.
local maker

local function fail(kind, text, ...)
  core.fail(kind, maker .. ": " .. text:format(...))
end

-- Returns the leaves of a layout as two lists: the extents, and the strides,
-- such as 64 or, for a layout with coordinates as values, 1@0.
local function leaves(layout)
  local shape = core.flatten_to_tuple(core.shape(layout))
  local stride = core.flatten_to_tuple(core.stride(layout))
  return shape, stride
end

-- Returns the code that a tensor map has for a shared-memory swizzle: n for
-- rows of 16 << n bytes, 0 for no swizzle.
local function swizzle_of(layout, dtype)
  local swizzle = core.get_swizzle_portion(layout)
  local bits, base, shift = tostring(swizzle):match "^Sw<(%d+),(%d+),(%d+)>$"
  bits, base, shift = tonumber(bits), tonumber(base), tonumber(shift)
  if not bits or bits == 0 then return 0 end
  if bits > 3 or shift ~= 3 or (dtype.bits << base) ~= 128 then
    local fits = {}
    for n = 1, 3 do
      local m = 0
      while dtype.bits << m < 128 do m = m + 1 end
      fits[n] = ("Sw<%d,%d,3>"):format(n, m)
    end
    fail("inadmissible", "%s of %s is not a TMA swizzle; possible are %s (32, "
      .. "64, 128 bytes)", swizzle, dtype, table.concat(fits, ", "))
  end
  return bits
end

-- Reports whether a tiler is a layout whose offsets are coordinates.
local function of_coordinates(tiler)
  return core.typename(tiler) == "layout"
    and tostring(core.stride(tiler)):find("@", 1, true) ~= nil
end

-- Returns the number of different elements of a layout.
local function distinct(layout)
  return core.size(core.filter_zeros(layout))
end

-- Raises an error unless the tensor repeats its elements wherever the layout in
-- shared memory does: along its modes of stride 0. `tile` is the layout from
-- elements of the tile to coordinates. `tensor` and `number` are the leaves of
-- the tensor, and the index of each leaf by its basis.
local function check_repeats(smem, tile, tensor, number)
  local shape, stride = leaves(smem)
  local at = 1
  for i, n in ipairs(shape) do
    if stride[i] == 0 and n > 1 then
      local extents, steps = leaves(core.composition(tile,
                                                     core.make_layout(n, at)))
      for j, step in ipairs(steps) do
        local leaf = number[(tostring(step):gsub("^%d+@", "1@"))]
        local t = tensor[leaf]
        if t and extents[j] > 1 and t.stride ~= 0 then
          fail("inadmissible", "%s repeats elements along mode %d of the "
            .. "tensor, whose stride is %d\n  use a tensor with stride 0 along "
            .. "this mode, or a layout without", smem, leaf - 1, t.stride)
        end
      end
    end
    at = at * n
  end
end

-- Splits a tile into modes, ordered by address in shared memory ("runs").
-- Returns the extent of each run, and its stride in the tensor's coordinates.
-- The first run is contiguous in shared memory. If `tensor` and `number` are
-- given, the layout in shared memory may repeat elements (see check_repeats).
local function runs_of(gmem, smem, tiler, tensor, number)
  local tile = tiler
  if not of_coordinates(tiler) then
    tile = core.composition(core.make_identity_layout(core.shape(gmem)), tiler)
  end
  local size = core.size(tile)
  if size ~= core.size(smem) then
    fail("shape-mismatch", "the tiler %s has %d elements, but the layout in "
      .. "shared memory has %d (%s)\n  pass the layout of %s",
      core.show(tiler), size, core.size(smem), smem, core.size(smem) > size
        and "one stage" or "the whole tile, with its modes of stride 0")
  end
  local inverse = core.right_inverse(smem)
  if core.size(inverse) ~= (tensor and distinct(smem) or size) then
    fail("inadmissible", "%s has gaps: TMA fills shared memory without gaps",
      smem)
  end
  if tensor then check_repeats(smem, tile, tensor, number) end
  return leaves(core.coalesce(core.composition(tile, inverse)))
end

-- Reports whether n elements along leaf t of the tensor join the first mode of
-- the map. They must continue this mode in memory. Leaves are joined only if
-- the map needs it: if the stride of one of them is not a multiple of 16 bytes.
local function joins(modes, t, n, ratio, bits)
  local first = modes[1]
  return #modes == 1 and first.whole and t.stride == first.box
    and first.box * n <= 256 * ratio
    and (modes.inner ~= 0 or t.stride * bits % 128 ~= 0)
end

-- Returns the modes of a box, as modes_of does, in the order of the tile's
-- runs. Removes the leaves of these modes from `number`.
local function box_modes(shape, stride, tensor, number, ratio, bits)
  local modes = {inner = 0}
  for i, n in ipairs(shape) do
    local leaf = number[tostring(stride[i])]
    if n > 1 then
      -- Only a run that steps by 1 along a leaf of the tensor can be a mode of
      -- the map. The box ends before any other run, and further boxes copy that
      -- run.
      if not leaf then break end
      number[tostring(stride[i])] = nil
      local first, t = modes[1], tensor[leaf]
      if joins(modes, t, n, ratio, bits) then
        first.box, first.whole = first.box * n, n == t.extent
        modes.inner = modes.inner | 1 << leaf - 1
      else
        local most = first and 256 or 256 * ratio
        if n > most and n % most ~= 0 then
          fail("limit", "%d elements of mode %d are contiguous in shared "
            .. "memory; at most %d, the limit of a box, or a multiple of it is "
            .. "needed", n, leaf - 1, most)
        end
        modes[#modes + 1] = {leaf = leaf, box = math.min(n, most),
                             whole = n == t.extent}
        if n > most then break end
      end
    end
  end
  return modes
end

-- Returns the modes of the tensor map as a list that begins with the modes that
-- a box covers. Each is {leaf = leaf of the tensor's layout, box = extent in
-- the box}. Field `inner` of the list is a bit mask of further leaves of its
-- first mode. Also returns the number of elements of a box, and the tensor's
-- leaves. `ratio` elements of the tensor form an element of the map.
local function modes_of(gmem, smem, tiler, ratio)
  local basis = core.flatten_to_tuple(core.make_basis_like(core.shape(gmem)))
  local tensor, number = core.tma_leaves(gmem), {}
  for i, e in ipairs(basis) do number[tostring(e)] = i end
  local shape, stride = runs_of(gmem, smem, tiler, tensor, number)
  local modes = box_modes(shape, stride, tensor, number, ratio, gmem.dtype.bits)
  local first, values, units = modes[1], 1, {}
  for _, m in ipairs(modes) do values = values * m.box end
  if first and first.box % ratio == 0 then first.box = first.box // ratio
  elseif ratio > 1 then
    fail("shape-mismatch", "%d elements are contiguous in global and shared "
      .. "memory; a multiple of %d, an element of internal_type, is needed",
      first and first.box or 1, ratio)
  end
  for i, e in ipairs(basis) do
    local t = tensor[i]
    if number[tostring(e)] then
      if t.unit then units[#units + 1] = {leaf = i, box = 1}
      elseif t.stride ~= 0 then modes[#modes + 1] = {leaf = i, box = 1} end
    end
  end
  -- Modes of extent 1 become modes of the map, too. A coordinate above 0 in
  -- such a mode is then outside the tensor, so TMA loads a zero.
  for _, m in ipairs(units) do
    if #modes > 0 and #modes < 5 then modes[#modes + 1] = m end
  end
  return modes, values, tensor
end

-- Checks the modes of a tensor map. If the list of modes is empty, because the
-- box has only one element, adds the tensor's first mode.
local function check_modes(gmem, modes, tensor)
  if #modes == 0 then modes[1] = {leaf = 1, box = 1} end
  if #modes > 5 then
    fail("limit", "%s has %d modes, but a tensor map has at most 5\n  merge "
      .. "contiguous modes with group_modes", gmem, #modes)
  end
  local first = tensor[modes[1].leaf]
  if first.stride ~= 1 and first.extent ~= 1 then
    local best = 1
    for i, t in ipairs(tensor) do if t.stride == 1 then best = i end end
    fail("inadmissible", "shared memory is contiguous along mode %d of the "
      .. "tensor, whose stride is %d: TMA needs the same contiguous mode on "
      .. "both sides\n  use a shared-memory layout that is contiguous along "
      .. "mode %d", modes[1].leaf - 1, first.stride, best - 1)
  end
end

-- Divides a box along its last modes among the CTAs that share it. Changes the
-- extents of the box to those of one CTA's part.
local function cut(modes, ctas)
  local left, i = ctas, #modes
  while left > 1 do
    local m = modes[i]
    if not m or m.box % left ~= 0 and left % m.box ~= 0 then
      fail("shape-mismatch", "%d CTAs cannot share a box of %s elements", ctas,
        m and m.box or 1)
    end
    m.box, left = math.max(m.box // left, 1), math.max(left // m.box, 1)
    i = i - 1
  end
end

local function check_slices(values, ctas, dtype, swizzle)
  local bytes, pattern = values // ctas * dtype.bits // 8,
    swizzle == 0 and 128 or 128 << swizzle
  if ctas > 1 and bytes % pattern ~= 0 then
    fail("misaligned", "each of %d CTAs copies %d bytes of a box; with %s a "
      .. "multiple of %d is needed", ctas, bytes, swizzle == 0 and "no swizzle"
      or ("a swizzle of %d bytes"):format(16 << swizzle), pattern)
  end
end

-- Returns the layout that maps coordinates of the tensor to coordinates of the
-- tensor map. Along mode 0, the map's coordinates count elements of the tensor.
-- `tensor` is the list of the tensor's leaves; only a map whose first mode has
-- several leaves needs it.
local function coordinates(gmem, modes, tensor)
  local shape = core.shape(gmem)
  local flat, zeros = core.flatten_to_tuple(core.make_basis_like(shape)), {}
  for i = 1, #flat do flat[i] = 0 end
  for j, m in ipairs(modes) do
    flat[m.leaf], zeros[j] = core.E(j - 1), 0
  end
  for i = 1, #flat do
    if (modes.inner or 0) >> i - 1 & 1 == 1 then
      flat[i] = core.E(0) * tensor[i].stride
    end
  end
  return core.tma_coordinates(gmem, core.make_layout(shape,
    core.unflatten(flat, shape)), zeros)
end

-- Returns the modes of the tensor map, as modes_of does, for an atom that
-- copies rows. Also returns the number of elements of a copy, which has four
-- rows. In `rows`, the tensor of row numbers, one mode has stride 0. The same
-- mode of the matrix is mode 0 of the map.
local function modes_of_rows(gmem, smem, tiler, rows)
  if core.typename(rows) ~= "tensor" or rows.dtype ~= core.i32 then
    fail("bad-argument", "gmem_coord_tensor, the tensor of i32 with the rows, "
      .. "is needed, got %s", core.show(rows))
  end
  local tensor, stride = core.tma_leaves(gmem), core.stride(rows.layout)
  local across = core.rank(rows) == 2 and #tensor == 2
    and (stride[1] == 0 and 0 or stride[2] == 0 and 1)
  if not across then
    fail("inadmissible", "the matrix needs two modes, and the rows a layout "
      .. "such as (m,n):(1,0)\n  matrix %s\n  rows   %s", gmem, rows)
  end
  local shape, order = runs_of(rows, smem, tiler)
  if tensor[across + 1].stride ~= 1 then
    fail("inadmissible", "the rows have stride 0 along mode %d; %s must be "
      .. "contiguous along this mode", across, gmem)
  elseif tostring(order[1]) ~= "1@" .. across
      or tostring(order[2]) ~= "1@" .. 1 - across then
    fail("inadmissible", "%s: in shared memory, each row must be contiguous, "
      .. "and the next row must follow it", smem)
  elseif shape[1] > 256 or shape[2] % 4 ~= 0 then
    fail("limit", "%d rows of %d elements are contiguous in shared memory; a "
      .. "multiple of 4 rows of at most 256 elements is needed",
      shape[2], shape[1])
  end
  return {{leaf = across + 1, box = shape[1]}, {leaf = 2 - across, box = 1}},
    4 * shape[1]
end

local OPTIONS = {l2_promotion = {[0] = 0, [64] = 1, [128] = 2, [256] = 3},
                 oob_fill = {zeros = 0, nan = 1}}

local function check_options(opts)
  for k, values in pairs(OPTIONS) do
    if opts[k] ~= nil and not values[opts[k]] then
      fail("unknown-name", "no %s = %s (l2_promotion: 0, 64, 128, 256; "
        .. "oob_fill: \"zeros\", \"nan\")", k, core.show(opts[k]))
    end
  end
end

--- Makes an atom for tiles of a tensor, and the tensor of its coordinates. Pass
-- both to the kernel. The layout in shared memory determines the swizzle. A box
-- is the largest part of a tile whose elements have the same order in global
-- and shared memory; a tile may take several boxes. With num_multicast, CTAs of
-- a cluster share a tile: each CTA loads a part, which all of them receive.
-- opts: l2_promotion; oob_fill = "nan" (for floats); internal_type, the element
-- type of the map, which must have as many bits as the tensor's, or be a wider
-- integer. A map of tf32 rounds loaded values to tf32, to nearest even. With a
-- wider integer, a box has more bytes: kernels load scale factors of 8 bits
-- with cute.i16, because the 512 bytes of 128 rows are then one box.
--
-- The layout in shared memory may repeat elements (stride 0) that the tensor
-- repeats, too. Layouts of scale factors do so. A box has each element once.
--
-- Operations that copy rows, such as CopyBulkTensor2DGather4G2SOp, need
-- gmem_coord_tensor, a tensor of i32 with the row numbers. Its layout is
-- (m,n):(1,0) for a matrix that is contiguous along mode 1. Element (i,j) of
-- the tile is element (rows[i],j) of the matrix.
---@param op table
---@param gmem_tensor table a host tensor, contiguous along one mode
---@param smem_layout table the layout of one stage
---@param cta_tiler any the tile, {BM, BK}, or a layout from the elements of the
-- tile, in the order of smem_layout, to coordinates of the tensor
---@param num_multicast? integer
---@param opts? table {l2_promotion: integer, oob_fill: string,
-- internal_type: cute.DType, gmem_coord_tensor: cute.Tensor}
---@return table atom, table coordinates
function cpasync.make_tiled_tma_atom(op, gmem_tensor, smem_layout, cta_tiler,
                                     num_multicast, opts)
  maker, opts = "make_tiled_tma_atom", opts or {}
  if getmetatable(op) ~= Op or op.runs or op.im2col or op.atom then
    fail("bad-argument", "an operation such as CopyBulkTensorTileG2SOp() is "
      .. "needed, got %s", core.show(op))
  end
  check_options(opts)
  local ctas, dtype = num_multicast or 1, gmem_tensor.dtype
  if ctas < 1 or ctas > 16 or (ctas > 1 and not op.multicast) then
    fail("bad-argument", "num_multicast = %d; with "
      .. "CopyBulkTensorTileG2SMulticastOp 1 to 16 CTAs can share a tile", ctas)
  end
  local swizzle = swizzle_of(smem_layout, dtype)
  local smem = core.get_nonswizzle_portion(smem_layout)
  local rows, modes, values, tensor = opts.gmem_coord_tensor
  if op.rows then
    modes, values = modes_of_rows(gmem_tensor, smem, cta_tiler, rows)
    if ctas > 1 then
      fail("bad-argument", "num_multicast = %d; for rows, 1 is needed: one "
        .. "CTA loads them for all CTAs of mcast_mask", ctas)
    end
  elseif rows then
    fail("bad-argument", "only CopyBulkTensor2DGather4G2SOp and "
      .. "CopyBulkTensor2DScatter4S2GOp take gmem_coord_tensor, not %s", op)
  else
    local internal = opts.internal_type or dtype
    modes, values, tensor = modes_of(gmem_tensor, smem, cta_tiler,
      math.max(internal.bits // dtype.bits, 1))
    check_modes(gmem_tensor, modes, tensor)
  end
  check_slices(values, ctas, dtype, swizzle)
  local coords = coordinates(rows or gmem_tensor, modes, tensor)
  cut(modes, ctas)
  local box, leaf = {}, {}
  for j, m in ipairs(modes) do box[j], leaf[j] = m.box, m.leaf - 1 end
  return core.tma_atom {
    tensor = gmem_tensor, internal = opts.internal_type, store = op.store,
    reduction = op.reduction, pair = op.pair, rows = op.rows,
    multicast = op.multicast, ctas = ctas, values = values,
    tile = distinct(smem), rank = #modes, box = box, leaf = leaf,
    inner = modes.inner, swizzle = swizzle,
    l2 = OPTIONS.l2_promotion[opts.l2_promotion or 128],
    fill = OPTIONS.oob_fill[opts.oob_fill or "zeros"]}, coords
end

---------------------------------------------------------------------------
-- im2col: a convolution's operand as a matrix
---------------------------------------------------------------------------

-- Returns the first n numbers of a list {w, h, d}, such as paddings. Replaces
-- missing numbers by `default`.
local function spatial(name, list, n, default)
  local out = {}
  for i = 1, n do
    out[i] = list and list[i] or default
    if math.type(out[i]) ~= "integer" then
      fail("bad-argument", "%s: %d integers (w, h, d) are needed, got %s",
        name, n, core.show(list))
    end
  end
  return out
end

-- Returns the numbers of channels and of pixels that one box copies. Raises an
-- error if the elements of a box are not consecutive in shared memory.
local function box_of_pixels(coords, smem, tiler)
  local shape, stride = runs_of(coords, smem, tiler)
  local channels, pixels = shape[1], shape[2] or 1
  if tostring(stride[1]) ~= "1@0@1" or (stride[2]
      and tostring(stride[2]) ~= "1@0") or pixels ~= core.size(tiler[1]) then
    fail("inadmissible", "%s: shared memory must hold a tile's pixels one "
      .. "after the other, and each pixel's channels contiguously", smem)
  end
  return channels, pixels
end

-- Checks the operation of an im2col atom. `ctas` CTAs of a cluster share its
-- tile.
local function check_im2col(op, ctas)
  if getmetatable(op) ~= Op or not op.im2col then
    fail("bad-argument", "an operation such as CopyBulkTensorIm2ColG2SOp() is "
      .. "needed, got %s", core.show(op))
  elseif ctas < 1 or ctas > 16 or (ctas > 1 and not op.multicast) then
    fail("bad-argument", "num_multicast = %d; with "
      .. "CopyBulkTensorIm2ColG2SMulticastOp 1 to 16 CTAs can share a tile",
      ctas)
  end
end

-- Returns the number of pixels that each CTA loads, if `ctas` CTAs share a box.
local function shared_pixels(channels, pixels, ctas, dtype, swizzle)
  if pixels % ctas ~= 0 then
    fail("shape-mismatch", "%d CTAs cannot share a box of %d pixels", ctas,
      pixels)
  end
  check_slices(channels * pixels, ctas, dtype, swizzle)
  return pixels // ctas
end

--- Makes an atom that loads tiles (pixels,K) of a convolution's im2col matrix,
-- and the tensor of coordinates ((Q P Z N),(C,S,R,T)). Element (m,k) is channel
-- c of the image at filter position (s,r,t) for output pixel m, or 0 outside
-- the image. The image has modes (C,W,N), (C,W,H,N) or (C,W,H,D,N). The
-- filter's first position moves in steps of `stride` from lower_corner, which
-- counts from the image's first pixel, to upper_corner, which counts from its
-- last pixel. The filter's last position reaches upper_padding beyond the last
-- pixel. The filter's extents follow from upper_padding - upper_corner.
---@param op table CopyBulkTensorIm2ColG2SOp(),
-- CopyBulkTensorIm2ColG2SMulticastOp() or CopyBulkTensorIm2ColS2GOp()
---@param gmem_tensor table a host tensor, contiguous along C
---@param smem_layout table the layout of one stage
---@param cta_tiler table {pixels, channels}
---@param lower_corner_whd integer[]
---@param upper_corner_whd integer[]
---@param lower_padding_whd? integer[] default -lower_corner
---@param upper_padding_whd? integer[] default upper_corner: a 1x1 filter
---@param stride_whd? integer[] default 1
---@param lower_srt? integer[] the first filter position, default 0
---@param stride_srt? integer[] distance between filter positions, default 1
---@param num_multicast? integer CTAs that share a tile, default 1
---@param opts? table the options of make_tiled_tma_atom
---@return table atom, table coordinates
function cpasync.make_im2col_tma_atom(op, gmem_tensor, smem_layout, cta_tiler,
    lower_corner_whd, upper_corner_whd, lower_padding_whd, upper_padding_whd,
    stride_whd, lower_srt, stride_srt, num_multicast, opts)
  maker, opts = "make_im2col_tma_atom", opts or {}
  check_options(opts)
  local image, dtype = core.tma_leaves(gmem_tensor), gmem_tensor.dtype
  local n, ctas = #image - 2, num_multicast or 1
  check_im2col(op, ctas)
  if n < 1 or n > 3 then
    fail("shape-mismatch", "an image has modes (C,W,N) to (C,W,H,D,N), "
      .. "not %s", gmem_tensor)
  end
  local lower = spatial("lower_corner_whd", lower_corner_whd, n)
  local upper = spatial("upper_corner_whd", upper_corner_whd, n)
  local padding = spatial("upper_padding_whd", upper_padding_whd or upper, n)
  spatial("lower_padding_whd", lower_padding_whd, n, 0)
  local stride = spatial("stride_whd", stride_whd, n, 1)
  local apart = spatial("stride_srt", stride_srt, n, 1)
  local pixels, leaf, step = image[#image].extent, {0}, {1}
  local filter, places, out = {image[1].extent}, {core.E(0)}, {}
  for i = 1, n do
    out[i] = (image[i + 1].extent + upper[i] - lower[i] - 1) // stride[i] + 1
    pixels, leaf[i + 1], step[i + 1] = pixels * out[i], i, stride[i]
    filter[i + 1] = (padding[i] - upper[i]) // apart[i] + 1
    places[i + 1] = core.E(i + 1)
    if out[i] < 1 or filter[i + 1] < 1 then
      fail("shape-mismatch", "spatial mode %d: the corners give a filter of "
        .. "extent %d and %d output pixels; both must be positive", i - 1,
        filter[i + 1], out[i])
    elseif op.store and filter[i + 1] > 1 then
      fail("shape-mismatch", "spatial mode %d: the corners give a filter of "
        .. "%d; a store needs 1", i - 1, filter[i + 1])
    elseif op.store and (lower[i] < 0 or upper[i] > 0) then
      fail("inadmissible", "spatial mode %d: corners %d and %d; a store needs "
        .. "a lower corner of at least 0 and an upper corner of at most 0",
        i - 1, lower[i], upper[i])
    end
  end
  leaf[n + 2], step[n + 2] = n + 1, 1
  local zeros = {}
  for i = 1, n + 2 do zeros[i] = 0 end
  local coords = core.tma_coordinates(gmem_tensor, core.make_layout(
    {pixels, filter}, {core.E(1), places}), zeros)
  local channels, box = box_of_pixels(coords,
    core.get_nonswizzle_portion(smem_layout), cta_tiler)
  if image[1].extent % core.size(cta_tiler[2]) ~= 0 then
    fail("shape-mismatch", "tiles of %d channels do not divide the image's %d "
      .. "channels", core.size(cta_tiler[2]), image[1].extent)
  end
  local swizzle = swizzle_of(smem_layout, dtype)
  return core.tma_atom {
    tensor = gmem_tensor, internal = opts.internal_type, im2col = true,
    store = op.store, pair = op.pair,
    multicast = op.multicast, ctas = ctas, values = channels * box,
    tile = core.size(smem_layout), rank = n + 2, leaf = leaf, step = step,
    lower = lower, upper = upper, channels = channels,
    pixels = shared_pixels(channels, box, ctas, dtype, swizzle), out = out,
    dilation = apart, first = spatial("lower_srt", lower_srt, n, 0),
    swizzle = swizzle,
    l2 = OPTIONS.l2_promotion[opts.l2_promotion or 128],
    fill = OPTIONS.oob_fill[opts.oob_fill or "zeros"]}, coords
end

---------------------------------------------------------------------------
-- In kernels
---------------------------------------------------------------------------

-- Reorders the first mode of t by address in shared memory, as `order`
-- describes, and splits it into ((TMA,TMA_Iter)). The swizzle is part of t's
-- iterator, so the layout is used without it.
local function by_place(t, order)
  local tiler = {order}
  for i = 1, core.rank(t) - 1 do tiler[i + 1] = core._ end
  return core.make_tensor(t.iterator, core.coalesce(core.composition(
    core.get_nonswizzle_portion(t.layout), tiler), {{1, 1}}))
end

-- Returns the text of a call, for error messages, that merges the first modes
-- of a tensor into one mode of `size` elements. Returns nil if no number of
-- modes has this size.
local function grouped(name, t, size)
  local n = 1
  for i = 0, core.rank(t) - 1 do
    local extent = core.size(t, i)
    n = math.type(extent) == "integer" and n * extent or 0
    if i > 0 and n == size then
      return ("cute.group_modes(%s, 0, %d)"):format(name, i + 1)
    end
  end
end

-- Raises an error because mode 0 of the shared tensor, of the global tensor, or
-- of both is not the atom's whole tile.
local function no_tile(atom, smem_tensor, gmem_tensor)
  local tile, few, advice = atom.values, {}, {}
  local rows = {{"smem_tensor", smem_tensor}, {"gmem_tensor", gmem_tensor}}
  for _, row in ipairs(rows) do
    row.size = core.size(row[2], 0)
    if math.type(row.size) == "integer" then tile = math.max(tile, row.size) end
  end
  for _, row in ipairs(rows) do
    if row.size ~= tile then
      few[#few + 1] = ("%s in %s"):format(core.show(row.size), row[1])
      advice[#advice + 1] = grouped(row[1], row[2], tile)
    end
  end
  core.fail("shape-mismatch", ("tma_partition: mode 0 must be the whole tile "
    .. "of %d elements, but has %s\n  %s%s\n  %s"):format(tile,
    few[1] and table.concat(few, " and ") or "gaps in shared memory",
    advice[1] and "write " .. table.concat(advice, " and ") .. "\n  " or "",
    smem_tensor, gmem_tensor))
end

-- Raises an error if the tile in shared memory and the tile's coordinates have
-- modes of different extents, as in (32,16) and (16,32).
local function check_tiles(smem_tensor, gmem_tensor)
  local s, g = core.get(smem_tensor.layout, 0), core.get(gmem_tensor.layout, 0)
  local n, extents = core.rank(s), {{}, {}}
  if n ~= core.rank(g) then return end
  for i = 0, n - 1 do
    local a, b = core.size(s, i), core.size(g, i)
    if math.type(a) ~= "integer" or math.type(b) ~= "integer" then return end
    extents[1][i + 1], extents[2][i + 1] = a, b
  end
  local a, b = table.concat(extents[1], ","), table.concat(extents[2], ",")
  if a ~= b then
    core.fail("shape-mismatch", ("tma_partition: the tile is (%s) in "
      .. "smem_tensor, but (%s) in gmem_tensor\n  %s\n  %s"):format(a, b,
      smem_tensor, gmem_tensor))
  end
end

--- Partitions a tile in shared memory and the tile's coordinates into the parts
-- that one instruction of an atom copies: ((TMA,TMA_Iter),Rest...). The first
-- mode of both tensors must be the tile (see cute.group_modes). cta_coord in
-- cta_layout is this CTA's position among the CTAs that share the tile. For an
-- atom that copies rows, gmem_tensor is a list {coordinates, rows}. The result
-- then has three tensors; pass the last two to cute.copy as a list.
---@param atom table
---@param cta_coord any
---@param cta_layout any
---@param smem_tensor table
---@param gmem_tensor table
---@return table smem, table gmem, table? rows
function cpasync.tma_partition(atom, cta_coord, cta_layout, smem_tensor,
                               gmem_tensor)
  local rows
  if core.typename(gmem_tensor) == "table" then
    gmem_tensor, rows = gmem_tensor[1], gmem_tensor[2]
    check_tiles(smem_tensor, rows)
  end
  local tile = core.get_nonswizzle_portion(
    core.get(smem_tensor.layout, 0))
  local inverse = core.right_inverse(tile)
  if core.size(inverse) ~= distinct(tile)
      or core.size(gmem_tensor, 0) ~= core.size(tile) then
    no_tile(atom, smem_tensor, gmem_tensor)
  end
  check_tiles(smem_tensor, gmem_tensor)
  local order = core.logical_divide(inverse, atom.values)
  local s, g = by_place(smem_tensor, order), by_place(gmem_tensor, order)
  if rows then return s, g, by_place(rows, order) end
  if atom.num_multicast == 1 then return s, g end
  local ctas = core.make_layout(cta_layout)
  if core.cosize(ctas) ~= atom.num_multicast then
    core.fail("shape-mismatch", ("tma_partition: cta_layout = %s, but %d CTAs "
      .. "share tiles of %s"):format(ctas, atom.num_multicast, atom))
  end
  local part = ctas(cta_coord) * (atom.values // atom.num_multicast)
  local function shifted(t)
    local at = {{part, 0}}
    for i = 2, core.rank(t) do at[i] = 0 end
    return core.domain_offset(at, t)
  end
  return shifted(s), shifted(g)
end

--- Returns a mask of the cluster's CTAs whose coordinates agree with
-- cta_coord_vmnk in all modes except `mcast_mode`.
---@param cta_layout_vmnk table
---@param cta_coord_vmnk any
---@param mcast_mode integer
---@return any mask
function cpasync.create_tma_multicast_mask(cta_layout_vmnk, cta_coord_vmnk,
                                           mcast_mode)
  local n, at, mask = core.rank(cta_layout_vmnk), {}, 0
  if mcast_mode < 0 or mcast_mode >= n then
    core.fail("bad-argument", ("create_tma_multicast_mask: %s has no mode %d")
      :format(cta_layout_vmnk, mcast_mode))
  end
  if core.size(cta_layout_vmnk) > 16 then
    core.fail("bad-argument", ("create_tma_multicast_mask: a cluster has at "
      .. "most 16 blocks, but %s has more"):format(cta_layout_vmnk))
  end
  for i = 1, n do at[i] = i == mcast_mode + 1 and 0 or cta_coord_vmnk[i] end
  local along = core.get(cta_layout_vmnk, mcast_mode)
  for i = 0, core.size(along) - 1 do mask = mask | 1 << along(i) end
  local from = cta_layout_vmnk(table.unpack(at))
  return math.type(from) and mask << from or core.cvt(mask, core.i32) << from
end

--- Prefetches an atom's tensor map, so that the first copy need not wait for
-- it.
---@param tma_atom table
function cpasync.prefetch_descriptor(tma_atom) core.tma_prefetch(tma_atom) end

--- Prefetches into L2 the boxes of global memory that a coordinate tensor
-- names.
---@param tma_atom table
---@param gmem_tensor table
function cpasync.prefetch(tma_atom, gmem_tensor)
  core.tma_prefetch(tma_atom, gmem_tensor)
end

---------------------------------------------------------------------------
-- Tensor maps made by the kernel
---------------------------------------------------------------------------

--- Copies an atom's tensor map to shared or global memory, which must have 16
-- elements of i64 and be aligned to 128 bytes. To use the new map, pass
-- tma_desc_ptr = tensormap_ptr to cute.copy. The boxes and the swizzle stay
-- those of the atom.
---@param tma_atom table
---@param tensormap_ptr table
function cpasync.copy_tensormap(tma_atom, tensormap_ptr)
  core.tma_map("copy", tensormap_ptr, tma_atom)
end

--- Makes the tensor map at tma_desc_ptr describe another tensor with the same
-- modes. Replaces the address, extents and strides in the map.
---@param tma_atom table
---@param gmem_tensor table
---@param tma_desc_ptr table
function cpasync.update_tma_descriptor(tma_atom, gmem_tensor, tma_desc_ptr)
  core.tma_map("update", tma_desc_ptr, tma_atom, gmem_tensor)
end

--- Releases this thread's earlier writes to tensor maps: threads that acquire
-- the maps afterwards see these writes.
function cpasync.fence_tma_desc_release() core.fence "tensormap" end

--- Acquires a tensor map: later copies through it use the contents that its
-- writer released.
---@param tma_desc_ptr table
function cpasync.fence_tma_desc_acquire(tma_desc_ptr)
  core.tma_map("acquire", tma_desc_ptr)
end

--- Copies a tensor map from shared to global memory and releases the writes to
-- it. All lanes of a warp must call this function.
---@param tma_desc_global_ptr table
---@param tma_desc_shared_ptr table
function cpasync.cp_fence_tma_desc_release(tma_desc_global_ptr,
                                           tma_desc_shared_ptr)
  core.tma_map("publish", tma_desc_global_ptr, tma_desc_shared_ptr)
end

return sign.public("cute.nvgpu.cpasync.", cpasync, [[
  CopyG2SOp(cache_mode?: string)
  CopyBulkTensorTileG2SOp(cta_group?: integer)
  CopyBulkTensorTileG2SMulticastOp(cta_group?: integer)
  CopyBulkTensorTileS2GOp()
  CopyBulkTensor2DGather4G2SOp(cta_group?: integer)
  CopyBulkTensor2DGather4G2SMulticastOp(cta_group?: integer)
  CopyBulkTensor2DScatter4S2GOp()
  CopyReduceBulkTensorTileS2GOp(reduction_kind?: string)
  CopyBulkG2SOp() CopyBulkG2SMulticastOp() CopyBulkS2GOp() CopyBulkS2SOp()
  CopyDsmemStoreOp()
  CopyBulkTensorIm2ColG2SOp(cta_group?: integer)
  CopyBulkTensorIm2ColG2SMulticastOp(cta_group?: integer)
  CopyBulkTensorIm2ColS2GOp()
  group_bulk_copy_modes(src: tensor, dst: tensor)
  make_tiled_tma_atom(op, gmem_tensor: tensor, smem_layout: layout, cta_tiler,
    num_multicast?: integer,
    opts?: {gmem_coord_tensor internal_type l2_promotion oob_fill})
  make_im2col_tma_atom(op, gmem_tensor: tensor, smem_layout: layout,
    cta_tiler: table, lower_corner_whd: table, upper_corner_whd: table,
    lower_padding_whd?: table, upper_padding_whd?: table, stride_whd?: table,
    lower_srt?: table, stride_srt?: table, num_multicast?: integer,
    opts?: {internal_type l2_promotion oob_fill})
  tma_partition(atom, cta_coord, cta_layout, smem_tensor: tensor, gmem_tensor)
  create_tma_multicast_mask(cta_layout_vmnk: layout, cta_coord_vmnk,
    mcast_mode: integer)
  prefetch_descriptor(tma_atom) prefetch(tma_atom, gmem_tensor)
  copy_tensormap(tma_atom, tensormap_ptr: tensor)
  update_tma_descriptor(tma_atom, gmem_tensor: tensor, tma_desc_ptr: tensor)
  fence_tma_desc_release() fence_tma_desc_acquire(tma_desc_ptr: tensor)
  cp_fence_tma_desc_release(tma_desc_global_ptr: tensor,
    tma_desc_shared_ptr: tensor)
]])
-- SPDX-License-Identifier: MIT
