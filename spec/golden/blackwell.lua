--- Checks layouts and descriptors of tcgen05 against golden data of the folder
-- golden-blackwell, which CuTe C++ printed: instr_desc.jsonl, umma_atoms.jsonl,
-- smem_desc.jsonl, tmem_frg.jsonl, tmem_copy.jsonl.
local core = require "cute.core"
local descriptor = require "cute.nvgpu.sm100.descriptor"
local golden = require "spec.golden"
local smem = require "cute.smem"
local tmem = require "cute.nvgpu.sm100.tmem"

-- CuTe C++'s names of types
local DTYPE = {half_t = "f16", bfloat16_t = "bf16", float = "f32",
               tfloat32_t = "tf32", int8_t = "i8", uint8_t = "u8",
               int32_t = "i32", uint32_t = "u32"}

-- Returns the DType of a name such as "float_e2m1_unpacksmem_t". ue4m3 is e4m3.
local function dtype(name)
  local small = name:match "^float_(ue8m0)" or name:match "^float_u?(e%dm%d)"
  return core[DTYPE[name] or small]
end

local function parsed(text) return core.parse(text) end

local function equal(got, want)
  got = tostring(got)
  if got == want then return true end
  return false, got
end

-- ---- instruction descriptors ----

local function form_of(case)
  return {a = dtype(case.a), b = dtype(case.b), c = dtype(case.c), m = case.M,
          n = case.N, a_major = case.a_major, b_major = case.b_major,
          a_neg = case.a_neg, b_neg = case.b_neg, saturate = case.saturate,
          sparse = case.sparse, max_shift = case.max_shift,
          scale = case.sf and dtype(case.sf),
          packed = case.a == "float_e2m1_t"}
end

golden.ops.instr_desc = {
  instr_desc = function(case)
    return equal(("%08x"):format(descriptor.instruction(form_of(case))),
                 case.desc)
  end,
  instr_desc_block_scaled = function(case)
    local d = descriptor.block_scaled(form_of(case))
    local runtime = descriptor.runtime(d, tonumber(case.tmem_sfa, 16),
      tonumber(case.tmem_sfb, 16), case.sparse_id2)
    return equal(("%08x %016x"):format(d, runtime),
                 case.desc .. " " .. case.desc_runtime)
  end,
}

-- ---- atoms ----

-- Returns the parts of an atom's name, such as
-- "SM100_MMA_F16BF16_SS<half_t,half_t,float,64,8,K,K>".
local function parts_of(name)
  local head, inside = name:match "^SM100_MMA_([%w_]+)<(.*)>$"
  local types, numbers, majors = {}, {}, {}
  for word in inside:gmatch "[^,]+" do
    local list = word:find "^%d" and numbers or
                 (word == "K" or word == "MN") and majors or types
    list[#list + 1] = math.tointeger(tonumber(word)) or word
  end
  return {head = head, types = types, m = numbers[1], n = numbers[2],
          vs = numbers[3], a_major = majors[1], b_major = majors[2],
          sparse = head:find "SPARSE" ~= nil, scaled = types[4] ~= nil}
end

local function descriptor_of(p)
  local form = {a = dtype(p.types[1]), b = dtype(p.types[2]),
                c = dtype(p.types[3]), m = p.m, n = p.n, a_major = p.a_major,
                b_major = p.b_major, sparse = p.sparse,
                packed = p.types[1] == "float_e2m1_t"}
  if not p.scaled then return descriptor.instruction(form) end
  form.scale = dtype(p.types[4])
  return descriptor.block_scaled(form)
end

local function text_of(t)
  if type(t) ~= "table" then return tostring(t) end
  local list = {}
  for i, x in ipairs(t) do list[i] = text_of(x) end
  return "(" .. table.concat(list, ",") .. ")"
end

golden.ops.umma_atoms = {
  mma_traits = function(case)
    local name, want = case.args[1], case.out
    local atom, p = core.make_mma_atom(name), parts_of(case.args[1])
    local got = {Shape_MNK = atom.shape_mnk, ThrID = atom.thr_id,
                 ALayout = atom.tv_layout_A, BLayout = atom.tv_layout_B,
                 CLayout = atom.tv_layout_C, bits_DABC = atom.value_bits,
                 SFVecSize = atom.sf_vec_size,
                 A_in = p.head:find "_TS" and "tmem" or "smem",
                 instr_desc = ("%08x"):format(descriptor_of(p))}
    if atom.instr_desc and atom.instr_desc ~= descriptor_of(p) then
      return false, ("instr_desc = %x"):format(atom.instr_desc)
    end
    for key, value in pairs(want) do
      if text_of(got[key]) ~= text_of(value) then
        return false, ("%s = %s"):format(key, text_of(got[key]))
      end
    end
    return true
  end,
}

-- ---- descriptors of shared memory ----

-- Returns a layout as CuTe prints it, with a swizzle of byte offsets instead of
-- element offsets. `bits` is the width of an element.
local function of_bytes(l, bits)
  local plain = tostring(core.get_nonswizzle_portion(l))
  local b, m, s = tostring(core.get_swizzle(l)):match "<(%d+),(%d+),(%d+)>"
  b, m = tonumber(b), tonumber(m)
  if b == 0 then return ("Sw<0,4,3> o 0 o %s"):format(plain) end
  while bits > 8 do bits, m = bits // 2, m + 1 end
  while bits < 8 do bits, m = bits * 2, m - 1 end
  return ("Sw<%d,%d,%s> o 0 o %s"):format(b, m, s, plain)
end

golden.ops.smem_desc = {
  umma_desc = function(case)
    local bits = dtype(case.type).bits
    local atom = smem.atom(case.major, case.swizzle, bits)
    local mma = core.make_tiled_mma(core.make_mma_atom(case.atom))
    local shape = mma["partition_shape_" .. case.operand](mma, case.tile)
    local layout = descriptor.tile_to_mma_shape(atom, shape)
    local v = core.composition(core.get_swizzle(layout),
      core.get(core.get_nonswizzle_portion(layout), 0))
    local desc = descriptor.shared(v, bits, case.major)
    local iterator = descriptor.iterator(layout, bits)
    local got = {smem_atom = of_bytes(atom, bits),
                 smem = of_bytes(layout, bits), fragment = tostring(iterator),
                 desc = ("%016x"):format(desc)}
    for i, want in ipairs(case.desc_k) do
      local at = desc + iterator {0, 0, i - 1, 0}
      got["desc_k" .. i] = ("%016x"):format(at)
      case["desc_k" .. i] = want
    end
    for key, value in pairs(got) do
      if value ~= case[key] then return false, key .. " = " .. value end
    end
    return true
  end,
}

-- ---- fragments in tensor memory ----

-- Functions that make fragments, by the first word of a fragment's type. Their
-- arguments are the shape, and the type's further parameters.
local fragments = {}

function fragments.tmem_frg(shape, value, storage, ctas, mode)
  local bits = dtype(value).bits
  if mode == "Interleaved" then
    if ctas == "2sm" then return tmem.all_lanes(shape, bits) end
    return tmem.accumulators(shape, bits)
  elseif mode == "Duplicated" then
    return tmem.operand(shape, bits, true)
  end
  if storage == "int32_t" then return tmem.accumulators(shape, bits, true) end
  return tmem.operand(shape, bits)
end

function fragments.tmem_frg_ws(shape, value)
  return tmem.all_lanes(shape, dtype(value).bits)
end

function fragments.tmem_sf_frg(shape, _, _, _, _, duplicated)
  return tmem.scale_factors(shape, duplicated == "ScaleFactorDuplicated2by2")
end

function fragments.tmem_e_frg(shape, value)
  return tmem.metadata(shape, dtype(value).bits)
end

function fragments.tmem_e_frg_ws(shape, value)
  return tmem.metadata(shape, dtype(value).bits, true)
end

local function fragment(type_, shape)
  local name, inside = type_:match "^([%w_]+)<(.*)>$"
  local words = {}
  for word in inside:gmatch "[^,]+" do words[#words + 1] = word end
  if not fragments[name] then return nil end
  return fragments[name](shape, table.unpack(words))
end

local function of_partition(which)
  return function(case)
    local p = parts_of(case.args[1])
    local shape = parsed(case.partition_shape)
    local pair = p.head:find "2x1SM" ~= nil
    if pair then
      local mma = core.make_tiled_mma(core.make_mma_atom(case.args[1]))
      local got = mma["make_fragment_" .. which](mma, core.make_layout(shape))
      if tostring(got) ~= case.out then return false, tostring(got) end
    end
    if which == "A" then
      return equal(tmem.operand(shape, dtype(p.types[1]).bits, pair), case.out)
    end
    local bits = dtype(p.types[3]).bits
    return equal(pair and tmem.all_lanes(shape, bits)
                 or tmem.accumulators(shape, bits, p.head:find "_TS" ~= nil),
                 case.out)
  end
end

golden.ops.tmem_frg = {
  tmem_frg = function(case)
    local got = fragment(case.args[1], parsed(case.args[2]))
    if not got then return nil end
    return equal(got, case.out)
  end,
  partition_fragment_A = of_partition "A",
  partition_fragment_C = of_partition "C",
}

-- ---- copies ----

-- Returns a copy atom for values of `bits` bits.
local function copy_atom(name, bits)
  local of = {[8] = core.u8, [16] = core.u16, [32] = core.u32}
  return core.make_copy_atom(name, of[bits])
end

-- Returns the text that CuTe prints for a tile whose modes are layouts.
local function tile_text(tile)
  local list = {}
  for i, mode in ipairs(tile) do
    list[i] = tostring(core.typename(mode) == "layout" and mode
                       or core.make_layout(mode, 1))
  end
  return "(" .. table.concat(list, ",") .. ")"
end

-- Compares a thread's partition with the data. The upper half of an address in
-- tensor memory is the lane, the lower half the column.
local function check_thread(copy, store, layout, bits, want)
  local thr = copy:get_slice(want.thread)
  local function of_tmem(l)
    if store then return thr:partition_D(l) end
    return thr:partition_S(l)
  end
  local function of_registers(l)
    if store then return thr:partition_S(l) end
    return thr:partition_D(l)
  end
  local part, at = of_tmem(layout)
  local own, first = of_registers(core.make_layout(layout.shape))
  local coords = {}
  for i = 1, #want.coords do coords[i] = first + own(i - 1) end
  local per = 32 // bits
  local lane, column = at // (per << 16), at % (per << 16) // per
  local got = {tmem_addr = ("%08x"):format(lane << 16 | column),
               tmem_part = tostring(part), reg_shape = text_of(own.shape),
               coords = table.concat(coords, ",")}
  for name, value in pairs(got) do
    local wanted = name == "coords" and table.concat(want.coords, ",")
      or want[name]
    if value ~= wanted then
      return false, ("thread %d: %s = %s"):format(want.thread, name, value)
    end
  end
  return true
end

local function check_copy(case)
  local name = case.args[1]
  local layout = fragment(case.args[2], parsed(case.args[3]))
  if not layout then return nil end
  local bits = dtype(case.args[2]:match "<([%w_]+)").bits
  local copy = tmem.make_copy(copy_atom(name, bits), layout)
  local got = {Tiler_MN = tile_text(copy.tiler_mn), size = copy:size(),
               TiledLayout_TV = tostring(copy.layout_tv_tiled),
               layoutS_TV = tostring(copy.layout_src_tv_tiled),
               layoutD_TV = tostring(copy.layout_dst_tv_tiled)}
  for key, value in pairs(case.out) do
    if got[key] ~= value then
      return false, ("%s = %s"):format(key, got[key])
    end
  end
  if tostring(layout) ~= case.tmem then return false, tostring(layout) end
  local store = name:find "_STORE_" ~= nil
  for _, want in ipairs(case.threads) do
    local ok, message = check_thread(copy, store, layout, bits, want)
    if not ok then return false, message end
  end
  return true
end

golden.ops.tmem_copy = {
  copy_traits = function(case)
    local name, want = case.args[1], case.out
    local atom = core.make_copy_atom(name, core.b1)
    local got = {ThrID = atom.thr_id, SrcLayout = atom.layout_src_tv,
                 DstLayout = atom.layout_dst_tv,
                 RefLayout = atom.layout_ref_tv, ValID = tmem.bits_of(name)}
    for key, value in pairs(want) do
      if tostring(got[key]) ~= value then
        return false, ("%s = %s"):format(key, tostring(got[key]))
      end
    end
    return true
  end,
  make_tmem_copy = check_copy,
}

return golden
-- SPDX-License-Identifier: MIT
