--- Kernels that Triton compiled, from their metadata (NAME.json) and the PTX
-- beside it.
--
--     local k = cute.triton "softmax.json"
--     k(x, out, 1000, 1000):launch {grid = 64}
--
-- The metadata has the number of threads, the cluster, the size of dynamic
-- shared memory, options, and the sizes of scratch memory. The PTX entry has
-- hidden parameters after the kernel's own ones: pointers to the scratch
-- memory.
local core = require "cute.core"
local cute = require "cute"
local files = require "cute.lang.files"
local json = require "cutelua.text.json"
local kernel = require "cute.lang.kernel"
local map = require "cutelua.ptx.map"
local ptx = require "cutelua.ptx"
local sign = require "cute.lang.signature"

local triton = {}

local function fail(path, ...)
  core.fail("bad-argument", core.visible(path) .. ": " .. string.format(...))
end

local WARP = 32  -- threads

---------------------------------------------------------------------------
-- Metadata
---------------------------------------------------------------------------

-- Fields of the metadata that a launch needs: {name, type, value to use if the
-- field is absent, as in older versions of Triton}. A field without such a
-- value is required.
local FIELDS = {
  {"name", "string"}, {"num_warps", "integer"}, {"target", "table"},
  {"shared", "integer", 0}, {"num_ctas", "integer", 1},
  {"global_scratch_size", "integer", 0}, {"global_scratch_align", "integer", 1},
  {"profile_scratch_size", "integer", 0},
  {"profile_scratch_align", "integer", 1}, {"tensordesc_meta", "table", {}},
  {"launch_pdl", "boolean", false},
  {"launch_cooperative_grid", "boolean", false},
  {"instrumentation_mode", "string", ""}}

-- Adds fields that older versions of Triton lack, and checks the types of all
-- fields.
local function check_fields(path, meta)
  for _, field in ipairs(FIELDS) do
    local name, want, old = table.unpack(field)
    if meta[name] == nil then meta[name] = old end
    local v = meta[name]
    if v == nil then
      fail(path, "this is not Triton's metadata: it has no '%s'", name)
    elseif (math.type(v) or type(v)) ~= want or want == "integer" and v < 0 then
      fail(path, "'%s' must be %s, not %s", name, want == "integer"
        and "an integer of at least 0" or "a " .. want, core.show(v))
    end
  end
  for _, name in ipairs {"num_warps", "num_ctas", "global_scratch_align",
                         "profile_scratch_align"} do
    if meta[name] < 1 then
      fail(path, "'%s' must be at least 1, not %d", name, meta[name])
    end
  end
end

-- Raises an error if the kernel needs a feature that the simulator does not
-- have.
local function check_supported(path, meta)
  if meta.target.backend ~= "cuda" then
    fail(path, "the kernel was compiled for the backend %s; only cuda has PTX",
         core.show(meta.target.backend))
  elseif meta.instrumentation_mode ~= "" then
    fail(path, "instrumentation_mode '%s' adds hidden parameters that are not "
      .. "supported; compile without it", meta.instrumentation_mode)
  end
end

-- Reads the metadata in a file. Returns it with all FIELDS, and the sizes of
-- scratch memory that the file states.
local function metadata_of(path)
  local text, why = files.read(path)
  if not text then
    core.fail("io", ("cute.triton: %s: %s"):format(core.visible(path), why))
  end
  local meta, message = json.decode(text)
  if message then
    fail(path, "not valid JSON: %s", (message:gsub("^no JSON: ", "")))
  elseif type(meta) ~= "table" then
    fail(path, "this is not Triton's metadata, but %s", core.show(meta))
  elseif meta.child_paths then
    fail(path, "this file lists the files of a compiled kernel; give the file "
      .. "NAME.json beside it")
  end
  local given = {global_scratch = meta.global_scratch_size,
                 profile_scratch = meta.profile_scratch_size}
  check_fields(path, meta)
  check_supported(path, meta)
  return meta, given
end

---------------------------------------------------------------------------
-- Parameters
---------------------------------------------------------------------------

-- Returns the hidden parameters at the end of the PTX entry's parameters, as a
-- list {size = bytes for each block, align}. Triton 3.3 introduced
-- global_scratch, and Triton 3.4 profile_scratch.
local function hidden_of(meta, given)
  local list = {}
  for _, name in ipairs {"global_scratch", "profile_scratch"} do
    if given[name] then
      list[#list + 1] = {size = meta[name .. "_size"], name = name,
                         align = meta[name .. "_align"]}
    end
  end
  return list
end

-- Returns the kernel's own parameters as a list {at = position of its first
-- parameter in the PTX, n = number of its parameters in the PTX}. A tensor
-- descriptor has one PTX parameter for the map, and one for each extent and
-- each stride. Its `desc` is its description in the metadata.
local function own_parameters(path, entry, meta, last)
  local list, at, nth = {}, 1, 0
  while at <= last do
    local p = {at = at, n = 1}
    if map.takes(entry.parameters[at]) then
      nth = nth + 1
      p.desc = meta.tensordesc_meta[nth]
      if type(p.desc) ~= "table" or type(p.desc.block_size) ~= "table" then
        fail(path, "the metadata describes %d tensor descriptors, but the PTX "
          .. "has more", nth - 1)
      end
      p.n = 1 + 2 * #p.desc.block_size
    end
    list[#list + 1] = p
    at = at + p.n
  end
  if nth ~= #meta.tensordesc_meta or at ~= last + 1 then
    fail(path, "the metadata describes %d tensor descriptors, but the PTX has "
      .. "parameters for %d", #meta.tensordesc_meta, nth)
  end
  return list
end

-- Maps the metadata's number of an element type to CU_TENSOR_MAP_DATA_TYPE,
-- where the two numbers differ.
local MAP_TYPE = {[8] = 10, [9] = 8, [10] = 9}

-- Returns the extents and strides of a tensor as two lists.
local function modes(t)
  local shape, stride = t.shape, t.stride
  if type(shape) == "number" then return {shape}, {stride} end
  return shape, stride
end

-- Checks the tensor of a descriptor. `what` begins error messages.
local function check_described(t, desc, what)
  local rank = #desc.block_size
  if core.typename(t) ~= "tensor" then
    core.fail("bad-argument", ("%s is a tensor descriptor: write {map = x} "
      .. "with a tensor x"):format(what))
  end
  local shape, stride = modes(t)
  local size = t.element_type.bits // 8
  if #shape ~= rank or stride[rank] ~= 1 then
    core.fail("bad-argument", ("%s: the descriptor's tensor needs %d modes, "
      .. "with stride 1 in the last one; its layout is %s"):format(what, rank,
      tostring(t.layout)))
  elseif size ~= desc.elem_size then
    core.fail("bad-argument", ("%s: elements of %d bytes are needed, not %s")
      :format(what, desc.elem_size, t.element_type.name))
  elseif desc.is_im2col or desc.fp4_padded then
    core.fail("bad-argument", ("%s: descriptors of im2col and of fp4 are not "
      .. "supported"):format(what))
  end
end

-- Appends the PTX parameters of a tensor descriptor to a list: the map, which
-- moves boxes of block_size elements, the extents, and the strides.
local function add_descriptor(list, given, desc, what)
  local t, padding = given.map, given.padding or "zero"
  if padding ~= "zero" and padding ~= "nan" then
    core.fail("bad-argument", ("%s: padding = %s; \"zero\" or \"nan\" is "
      .. "needed"):format(what, core.show(padding)))
  end
  check_described(t, desc, what)
  local shape, stride = modes(t)
  local rank, size = #shape, desc.elem_size
  local p = {type = MAP_TYPE[desc.elem_type] or desc.elem_type, rank = rank,
             swizzle = desc.swizzle, fill = padding == "nan" and 1 or 0,
             address = t.iterator.address, extent = {}, stride = {}, box = {},
             l2 = 2}
  -- A tensor map lists the modes in reverse order: the contiguous mode first.
  for i = 1, rank do
    p.extent[i] = shape[rank + 1 - i]
    p.box[i] = desc.block_size[rank + 1 - i]
    if i > 1 then p.stride[i - 1] = stride[rank + 1 - i] * size end
  end
  list[#list + 1] = {tensor = t, map = map.encode(p)}
  for i = 1, rank do list[#list + 1] = shape[i] end
  for i = 1, rank do list[#list + 1] = stride[i] end
end

-- Returns n bytes of scratch memory, where blocks keep temporary data.
local function scratch(n) return cute.zeros({math.max(n, 1)}, cute.u8) end

-- Returns the arguments for all parameters of the PTX entry. The parameters
-- `...` are the arguments for the kernel's own parameters.
local function expanded(k, ...)
  local args = table.pack(...)
  if args.n ~= #k.own then
    core.fail("bad-argument", ("Triton's kernel %s takes %d arguments, not %d")
      :format(k.entry.name, #k.own, args.n))
  end
  local list = {}
  for i, p in ipairs(k.own) do
    if p.desc then
      local what = ("Triton's kernel %s: argument %d"):format(k.entry.name, i)
      local given = args[i]
      if type(given) ~= "table" or getmetatable(given) then
        given = {map = given}
      end
      for key in pairs(given) do
        if key ~= "map" and key ~= "padding" then
          core.fail("bad-argument", ("%s: {map =, padding =} has no field %s")
            :format(what, core.show(key)))
        end
      end
      add_descriptor(list, given, p.desc, what)
    else
      list[p.at] = args[i]
    end
  end
  for i = 1, #k.hidden do list[k.last + i] = scratch(0) end
  list.n = k.last + #k.hidden
  return list
end

---------------------------------------------------------------------------
-- Kernels
---------------------------------------------------------------------------

-- Raises an error unless the PTX belongs to the metadata.
local function check_entry(path, file, module, meta)
  local names = module:entries()
  local found = false
  for _, name in ipairs(names) do found = found or name == meta.name end
  if not found then
    fail(path, "the kernel is '%s', but %s has %s", meta.name,
         core.visible(file), #names == 0 and "no entry"
         or table.concat(names, ", "))
  end
  local _, target = core.ptx_head(module.module)
  local arch = target:match "^sm_(%d+)"
  if tonumber(arch) ~= meta.target.arch then
    fail(path, "the target is sm_%s, but %s is for %s",
         tostring(meta.target.arch), core.visible(file), target)
  end
  local entry = core.ptx_entry(module.module, meta.name)
  local threads = entry.reqntid or entry.maxntid
  threads = threads and threads[1] * threads[2] * threads[3]
  if threads and threads ~= WARP * meta.num_warps then
    fail(path, "num_warps = %d are %d threads, but %s has %d", meta.num_warps,
         WARP * meta.num_warps, core.visible(file), threads)
  end
  return entry
end

-- Returns the PTX beside the metadata.
local function ptx_beside(path, meta)
  local base = path:gsub("%.json$", "")
  local own = base .. ".ptx"
  local named = (path:match "^(.*/)" or "") .. meta.name .. ".ptx"
  for _, file in ipairs {own, named} do
    if core.file_kind(file) then return file end
  end
  if core.file_kind(base .. ".cubin") then
    fail(path, "this folder has only a cubin, no %s: copy the PTX from "
      .. "Triton's cache, or write compiled.asm[\"ptx\"] to that file",
      core.visible(own))
  end
  fail(path, "the PTX %s does not exist", core.visible(own))
end

-- Allocates scratch memory for a call, for all blocks of a grid.
local function add_scratch(k, call, grid)
  local blocks = grid[1] * grid[2] * grid[3]
  for i, h in ipairs(k.hidden) do
    local size = h.size * blocks
    local t = call[k.last + i]
    if cute.size(t) < size then call[k.last + i] = scratch(size) end
  end
end

-- Returns the launch options `opts`, completed from Triton's metadata, and
-- allocates the scratch memory of the call. opts.grid counts Triton's programs;
-- the returned grid counts blocks, because a program is a cluster of num_ctas
-- blocks. `prepared` is the grid of a prepared launch, in blocks. If it is
-- given, the function only allocates scratch memory.
local function launch_options(k, call, opts, prepared)
  if prepared then return add_scratch(k, call, prepared) end
  local made = {}
  for name, v in pairs(opts or {}) do made[name] = v end
  local ctas = k.meta.num_ctas
  if made.grid ~= nil then  -- a call that is only traced may have no grid
    local grid = kernel.extents("grid", made.grid)
    made.grid = {grid[1] * ctas, grid[2], grid[3]}
    add_scratch(k, call, made.grid)
  end
  if ctas > 1 then
    if made.cluster == nil then made.cluster = ctas end
    if made.cluster ~= ctas then
      core.fail("bad-launch", ("Triton's kernel %s has num_ctas = %d: the "
        .. "option cluster must be %d or absent"):format(k.entry.name, ctas,
                                                         ctas))
    end
  end
  if made.pdl == nil then made.pdl = k.meta.launch_pdl or nil end
  if made.cooperative == nil then
    made.cooperative = k.meta.launch_cooperative_grid or nil
  end
  return made
end

---@class cute.TritonModule
---@field path string of the metadata
---@field file string chunk name of the PTX, for reports
---@field meta table the metadata
---@field ptx cute.PtxModule
---@field module userdata of core.ptx_parse
---@field entry table of core.ptx_entry
---@field own table[] of own_parameters
---@field hidden table[] of hidden_of
---@field last integer number of the PTX's parameters that are not hidden
local Module = {}
Module.__index = Module

--- Returns a list with the name of the only kernel.
---@return string[]
function Module:entries() return {self.entry.name} end

--- Returns a variable of the PTX as a tensor of bytes.
function Module:variable(name) return self.ptx:variable(name) end

-- Returns the positions of PTX parameters whose memory may have elements that
-- nothing writes. These are the hidden pointers, and the arguments that the
-- user's list names by position.
local function undefined_ok(k, list)
  local out = {}
  for _, i in ipairs(list or {}) do
    if not k.own[i] then
      core.fail("bad-argument", ("undefined_ok has %s; positions of arguments, "
        .. "from 1 to %d, are needed"):format(core.show(i), #k.own))
    end
    out[#out + 1] = k.own[i].at
  end
  for i = 1, #k.hidden do out[#out + 1] = k.last + i end
  return out
end

--- Returns the kernel. It takes the same arguments as in Triton, except
-- constexpr arguments.
---@param name? string must be the name in the metadata
---@param opts? table {lines, undefined_ok} as for PTX
function Module:kernel(name, opts)
  if name and name ~= self.entry.name then
    fail(self.path, "the kernel is '%s', not '%s'", self.entry.name, name)
  elseif opts and opts.smem and opts.smem ~= self.meta.shared then
    fail(self.path, "remove smem = %d: the metadata sets shared = %d",
         opts.smem, self.meta.shared)
  end
  return ptx.made(self.ptx, self.entry.name, {
    smem = self.entry.dynamic and self.meta.shared or 0,
    lines = opts and opts.lines,
    undefined_ok = undefined_ok(self, opts and opts.undefined_ok)}, {
    takes = #self.own,
    -- Rules for Triton's code: within one block it has no fence after
    -- mbarrier.init; within a warpgroup it executes setmaxnreg at several
    -- places.
    rules = {init_fenced = self.meta.num_ctas == 1 or nil, alloc_fenced = true,
             loads_ordered = true, setmaxnreg_alike = true},
    expand = function(...) return expanded(self, ...) end,
    options = function(...) return launch_options(self, ...) end})
end

--- Returns a note on each parameter of the PTX, by position: the argument that
-- determines it or, for a hidden parameter, its purpose.
---@return string[]
function Module:notes()
  local notes = {}
  for k, p in ipairs(self.own) do
    local rank = p.n // 2
    for i = 0, p.n - 1 do
      notes[p.at + i] = ("argument %d%s"):format(k, not p.desc and ""
        or i == 0 and ": map" or i <= rank and ": extent" or ": stride")
    end
  end
  for i, h in ipairs(self.hidden) do
    notes[self.last + i] = ("hidden: %s, %d bytes for each block"):format(
      h.name, h.size)
  end
  return notes
end

--- Reads metadata of Triton and the PTX beside it.
---@param path string NAME.json
---@return cute.TritonModule
function triton.module(path)
  local meta, given = metadata_of(path)
  local file = ptx_beside(path, meta)
  local module = ptx.ptx(file)
  local entry = check_entry(path, file, module, meta)
  local hidden = hidden_of(meta, given)
  local last = #entry.parameters - #hidden
  for i = last + 1, #entry.parameters do
    local p = entry.parameters[i]
    if last < 0 or p.array or p.bits ~= 64 then
      fail(path, "Triton adds %d hidden pointers, but the last of the %d "
        .. "parameters in %s are not pointers", #hidden, #entry.parameters,
        core.visible(file))
    end
  end
  return setmetatable({path = path, file = module.file, meta = meta,
    ptx = module, module = module.module, entry = entry, hidden = hidden,
    last = last, own = own_parameters(path, entry, meta, last)}, Module)
end

--- Returns a kernel that Triton compiled, from Triton's metadata and the PTX
-- beside it. The kernel takes the same arguments as in Triton, except constexpr
-- arguments: a tensor for a pointer, {map = x} for a tensor descriptor. A
-- launch needs only the option `grid`, in programs.
---@param path string NAME.json of Triton's cache; NAME.ptx must be beside it
---@param opts? table {lines: string "ptx": reports name lines of the PTX,
-- undefined_ok: integer[] positions of parameters whose memory may have
-- elements that nothing writes}
function triton.triton(path, opts)
  for name in pairs(opts or {}) do
    if name ~= "lines" and name ~= "undefined_ok" then
      sign.unknown("option", name, {lines = true, undefined_ok = true})
    end
  end
  return triton.module(path):kernel(nil, opts)
end

sign.class("triton module", Module, [[
  kernel(name?: string, opts?: {lines undefined_ok smem}) entries() notes()
  variable(name: string)]],
           "path file meta ptx module entry own hidden last")

return triton
-- SPDX-License-Identifier: MIT
