-- Tests atoms. Their tables must equal the fragment layouts of the PTX ISA. One
-- tile of each atom runs on the simulator and must equal the result of a plain
-- loop. NVRTC must accept each instruction. Also tests the names of atoms.
local cute = require "cute"
local kernels = require "spec.kernels"
local support = require "spec.support"
local raises = support.raises

local TYPES = {
  F16 = "f16", BF16 = "bf16", TF32 = "tf32", F32 = "f32", F64 = "f64",
  S32 = "i32", S8 = "i8", U8 = "u8", S4 = "i4", U4 = "u4", U1 = "b1",
  E4M3 = "e4m3", E5M2 = "e5m2"}

-- Splits "F32BF16BF16F32" into the types of D, A, B and C.
local function types_of(text)
  local list = {}
  while text ~= "" do
    local best
    for name in pairs(TYPES) do
      if text:sub(1, #name) == name and #name > #(best or "") then
        best = name
      end
    end
    if not best then return nil end
    list[#list + 1] = cute[TYPES[best]]
    text = text:sub(#best + 1)
  end
  return #list == 4 and list or nil
end

-- Returns the mma atoms whose threads are within one warp. Each element has the
-- atom's name, its least architecture, and its operand types.
local function warp_atoms()
  local list = {}
  for i = 0, math.huge do
    local name = cute.atom_name("mma", i)
    if not name then return list end
    local arch, text = name:match "^SM(%d+)_%d+x%d+x%d+_(%w+)_"
    local t = text and not name:find "^SM90_64" and types_of(text)
    if t then
      list[#list + 1] = {name = name, types = t,
                         arch = "sm_" .. arch .. (arch == "90" and "a" or "")}
    elseif name:find "^SM100_MMA" then
      return list
    end
  end
end

-- Returns a kernel that computes one tile by an MMA atom, its tensors, and the
-- tile's extents. For Volta's quad pairs, the tile is 2 x 2 tiles of the atom.
local function tile_kernel(atom)
  local mma = cute.make_tiled_mma(atom.name,
    atom.arch == "sm_70" and {2, 2, 1} or nil)
  local M, N, K = table.unpack(mma.tile_size_mnk)
  local d, a, b, c = table.unpack(atom.types)
  local t = {
    cute.zeros({M, K}, a), cute.zeros({N, K}, b), cute.zeros({M, N}, c),
    cute.zeros({M, N}, d)}
  return kernels.tile(mma)(table.unpack(t)), t, M, N, K
end

local function fill(t, rows, cols, dtype, f)
  local span = dtype == cute.b1 and 2 or 4
  local least = dtype.signed and -2 or 0
  for i = 0, rows - 1 do
    for j = 0, cols - 1 do t[{i, j}] = f(i, j) % span + least end
  end
end

local function run_tile(atom, device)
  local call, t, M, N, K = tile_kernel(atom)
  local A, B, C, D = table.unpack(t)
  fill(A, M, K, atom.types[2], function(m, k) return m * 7 + k * 3 + m * k end)
  fill(B, N, K, atom.types[3], function(n, k) return n * 5 + k * 11 + n * k end)
  for m = 0, M - 1 do
    for n = 0, N - 1 do C[{m, n}] = (3 * m + n) % 5 end
  end
  call:launch {grid = 1, block = 32, device = device or "sim:" .. atom.arch}
  for m = 0, M - 1 do
    for n = 0, N - 1 do
      local sum = C[{m, n}]
      for k = 0, K - 1 do
        local x, y = A[{m, k}], B[{n, k}]
        sum = sum + (atom.name:find "XORPOPC" and (x ~= y and 1 or 0) or x * y)
      end
      assert.equal(sum, D[{m, n}],
                   ("%s: element (%d,%d)"):format(atom.name, m, n))
    end
  end
end

describe("MMA atoms", function()
  -- PTX ISA, "Matrix fragments for mma": row and column of element i of lane
  -- l; gid = l / 4, tig = l % 4.
  local function ptx(bits, M)
    local per = 32 // bits  -- number of elements in a 32-bit register
    return {
      A = function(gid, tig, i)
        local half = M == 16 and i // per % 2 or 0
        local step = M == 16 and i // (2 * per) or i // per
        return gid + 8 * half, tig * per + i % per + 4 * per * step
      end,
      B = function(gid, tig, i)
        return gid, tig * per + i % per + 4 * per * (i // per)
      end,
      C = function(gid, tig, i)
        return gid + 8 * (i // 2), tig * 2 + i % 2
      end,
    }
  end

  it("hold the elements that the PTX ISA lists for fragments #long", function()
    local seen = 0
    for _, atom in ipairs(warp_atoms()) do
      if atom.arch ~= "sm_70" and atom.types[1] ~= cute.f64 then
        local a = cute.make_mma_atom(atom.name)
        local M, N = a.shape_mnk[1], a.shape_mnk[2]
        local want = ptx(a.value_bits[2], M)
        for which, rows in pairs {A = M, B = N, C = M} do
          local tv = a["tv_layout_" .. which]
          for lane = 0, 31 do
            for v = 0, cute.size(tv, 1) - 1 do
              local row, col = want[which](lane // 4, lane % 4, v)
              local at = tv(lane, v)
              assert.equal(row, at % rows, atom.name .. " row of " .. which)
              assert.equal(col, at // rows, atom.name .. " col of " .. which)
            end
          end
        end
        seen = seen + 1
      end
    end
    assert.is_true(seen > 60, seen .. " atoms")
  end)

  it("cover their tiles: every element once", function()
    for _, atom in ipairs(warp_atoms()) do
      local a = cute.make_mma_atom(atom.name)
      local M, N, K = table.unpack(a.shape_mnk)
      for which, size in pairs {A = M * K, B = N * K, C = M * N} do
        local tv, hit, n = a["tv_layout_" .. which], {}, 0
        for i = 0, cute.size(tv) - 1 do
          local at = tv(i)
          if not hit[at] then n = n + 1 end
          hit[at] = true
        end
        assert.equal(size, n, atom.name .. " " .. which)
        assert.equal(size, cute.size(tv), atom.name .. " " .. which)
      end
    end
  end)

  it("compute a tile as a plain loop does", function()
    for _, atom in ipairs(warp_atoms()) do run_tile(atom) end
  end)

  it("are instructions that NVRTC takes, in its PTX as in the table",
  function()
    for _, atom in ipairs(warp_atoms()) do
      -- Newer CUDA toolkits do not support Volta.
      if atom.arch ~= "sm_70" then
        local p = tile_kernel(atom):trace {block = 32}
        local out, why = p:compile(atom.arch)
        if not out and tostring(why):find "no%-nvrtc" then
          pending "needs NVRTC"
          return
        end
        assert.is_truthy(out, atom.name .. ": " .. tostring(why))
        local text = cute.make_mma_atom(atom.name).ptx
        assert.is_truthy(out.ptx:find(text, 1, true),
                         atom.name .. ": " .. text)
      end
    end
  end)

  it("are found by CuTe's names, namespaces and spaces aside", function()
    local a = cute.make_mma_atom "cute::SM80_16x8x16_F32BF16BF16F32_TN"
    assert.equal("SM80_16x8x16_F32BF16BF16F32_TN", a.name)
    assert.equal("UniversalFMA<float,half_t,half_t,float>",
      cute.make_mma_atom("UniversalFMA<float, half_t, half_t, float>").name)
    assert.equal("(128,(40,16)):(0,(1,40))", tostring(
      cute.make_mma_atom("SM90_64x40x16_F32F16F16_RS<K,MN>").tv_layout_B))
    for i = 0, 1500, 7 do
      local name = cute.atom_name("mma", i)
      assert.equal(name, cute.make_mma_atom(name).name)
    end
  end)

  it("suggest names near to an unknown one", function()
    raises({"no MMA atom 'SM80_16x8x16_F32BF16BF16_TN'", "[unknown-name]",
            "nearest: SM80_16x8x16_F32BF16BF16F32_TN"},
           cute.make_mma_atom, "SM80_16x8x16_F32BF16BF16_TN")
    raises("nearest: SM80_16x8x16_F32F16F16F32_TN", cute.make_mma_atom,
           "sm80_16x8x16_f32f16f16f32_tn")
    raises("[unknown-name]", cute.make_tiled_mma, "nonsense")
    raises("the permutation 32:1 of mode M has extent 32; a multiple of 48 is "
      .. "needed for 3 atoms of extent 16: SM80_16x8x16_F32BF16BF16F32_TN "
      .. "[shape-mismatch]\n  use fewer atoms along M, or a tile of 48",
      cute.make_tiled_mma, "SM80_16x8x16_F32BF16BF16F32_TN", {3, 1, 1},
      {32, 16, 16})
    raises("[unknown-name]", cute.make_mma_atom,
           "SM90_64x12x16_F32F16F16_RS<K,K>")
  end)
end)

describe("MMA atoms", function()
  it("take a list of three extents as a tile, and no other", function()
    local name = "SM80_16x8x16_F32BF16BF16F32_TN"
    for _, c in ipairs {
      {{2, 2, 1}, {0, 16, 16}, "must be a number above 0, got 0"},
      {{2, 2, 1}, {32, 16, 16, 2}, "a permutation must be a list {M, N, K}, "
        .. "got {32, 16, 16, 2}"},
      {{2, 2, 1}, {M = 32}, "must be a list {M, N, K}, got {M = 32}"},
      {{2, 2, 1, 1}, nil, "has 4 modes (at most 3: M, N, K)"},
    } do
      raises({"cute.make_tiled_mma: ", c[3]},
             cute.make_tiled_mma, name, c[1], c[2])
    end
  end)

  it("refuse architectures without them", function()
    local call = tile_kernel {name = "SM89_16x8x32_F32E4M3E4M3F32_TN",
      arch = "sm_89", types = {cute.f32, cute.e4m3, cute.e4m3, cute.f32}}
    raises({"needs sm_89 or newer, the target is sm_80", "[wrong-arch]"},
      call.launch, call, {grid = 1, block = 32, device = "sim:sm_80"})
  end)
end)

-- Returns x as an element of a type: integers wrap into the type's range.
local function element(dtype, x)
  if dtype.is_float then return x end
  local n = 1 << dtype.bits
  local least = tostring(dtype):find "^i" and -n // 2 or 0
  return least + (math.floor(x * 40) - least) % n
end

-- Returns D of one tile of normally distributed values, as a list.
local function random_tile(atom, device)
  local seed = 1
  local function uniform()
    seed = (seed * 1103515245 + 12345) % 2^31
    return (seed + 1) / 2^31
  end
  local call, t = tile_kernel(atom)
  for i = 1, 3 do
    for j = 0, cute.size(t[i]) - 1 do
      local x = math.sqrt(-2 * math.log(uniform())) *
                math.cos(2 * math.pi * uniform())
      t[i][j] = element(t[i].dtype, x)
    end
  end
  call:launch {grid = 1, block = 32, device = device}
  local d = {}
  for j = 0, cute.size(t[4]) - 1 do d[j] = t[4][j] end
  return d
end

-- Volta's m8n8k4 is skipped: later GPUs run it with other rounding.
describe("MMA atoms on the GPU #gpu", function()
  it("compute a tile of integers as a plain loop does", function()
    for _, atom in ipairs(warp_atoms()) do
      if atom.arch ~= "sm_70" then
        run_tile(atom, "gpu")
      end
    end
  end)

  it("equal the simulator bit for bit on N(0,1) data", function()
    local sim = "sim:" .. cute.device "gpu".arch
    for _, atom in ipairs(warp_atoms()) do
      if atom.arch ~= "sm_70" then
        assert.same(random_tile(atom, sim), random_tile(atom, "gpu"),
                    atom.name)
      end
    end
  end)
end)

describe("copy atoms", function()
  it("have their layouts in values", function()
    local a = cute.make_copy_atom("SM75_U32x4_LDSM_N", cute.bf16)
    assert.equal([[Copy_Atom
  ThrID:        32:1
  ValLayoutSrc: (32,8):(8,1)
  ValLayoutDst: (32,(2,4)):(2,(1,64))
  ValLayoutRef: (32,(2,4)):(2,(1,64))
  ValueType:    16b]], tostring(a))
    assert.equal("bf16", tostring(a.value_type))
  end)

  it("of a family are chosen by type or by bits", function()
    for _, name in ipairs {"UniversalCopy", "SM80_CP_ASYNC_CACHEALWAYS"} do
      for _, bits in ipairs {32, 64, 128} do
        local a = cute.make_copy_atom(name, cute.f16, bits)
        assert.equal(("%s<uint%d_t>"):format(name, bits), a.name)
        assert.equal(bits // 16, cute.size(a.layout_src_tv, 1))
      end
    end
    assert.equal("UniversalCopy<uint16_t>",
                 cute.make_copy_atom("UniversalCopy", cute.f16).name)
    assert.equal("UniversalCopy<uint64_t>", cute.make_copy_atom("UniversalCopy",
      cute.f16, {num_bits_per_copy = 64}).name)
  end)

  it("refuse what the instruction cannot do", function()
    raises({"[unknown-name]", "SM75_U32x4_LDSM_N"}, cute.make_copy_atom,
           "SM75_U32x4_LDSM", cute.bf16)
    raises({"32, 64 or 128 bits", "[bad-argument]"}, cute.make_copy_atom,
           "SM80_CP_ASYNC_CACHEALWAYS", cute.bf16, 16)
    raises("128 bits when it bypasses L1", cute.make_copy_atom,
           "SM80_CP_ASYNC_CACHEGLOBAL", cute.bf16, 64)
    raises({"runs of 16 bits", "[type-mismatch]"}, cute.make_copy_atom,
           "SM75_U16x8_LDSM_T", cute.f32)
    raises("[type-mismatch]", cute.make_copy_atom, "UniversalCopy", cute.f32,
           16)
  end)
end)

describe("copy atoms", function()
  -- Checks that a copy through an atom emits CUDA C that contains `text`. The
  -- copy moves 32 rows between shared memory and registers.
  local function holds(name, dtype, bits, arch, text)
    local atom = cute.make_copy_atom(name, dtype, bits)
    local ns, nd = cute.size(atom.layout_src_tv, 1),
                   cute.size(atom.layout_dst_tv, 1)
    local t = cute.zeros({32, 64}, dtype)
    local program = cute.kernel("copies", function(m)
      local tid = cute.arch.thread_idx()
      local s = cute.make_smem_tensor(dtype,
        cute.make_layout({32, 64}, {64, 1}), 128)
      local function row(x, n, at)
        return cute.local_tile(x, {1, n}, {tid, at or 0})(0, cute._)
      end
      local r = cute.make_rmem_tensor({nd}, dtype)
      if name:find "CP_ASYNC" then
        local p = cute.make_rmem_tensor({1}, cute.Boolean)
        p[0] = m[{tid, 0}]:eq(0)
        if name:find "ZFILL" then
          cute.copy(atom, row(m, ns), row(s, nd), p)
        else
          cute.copy(atom, row(m, ns), row(s, nd))
        end
        cute.arch.cp_async_commit_group()
        cute.arch.cp_async_wait_group(0)
        cute.autovec_copy(row(s, nd), row(m, nd))
      elseif name:find "STSM" then
        local from = cute.make_rmem_tensor({ns}, dtype)
        cute.autovec_copy(row(m, ns), from)
        cute.copy(atom, from, row(s, nd))
        cute.autovec_copy(row(s, nd), row(m, nd))
      elseif name:find "LDSM" then
        cute.autovec_copy(row(m, ns), row(s, ns))
        cute.copy(atom, row(s, ns), r)
        cute.autovec_copy(r, row(m, nd))
      else
        local from = cute.make_rmem_tensor({ns}, dtype)
        if name:find "Shuffle" then
          cute.autovec_copy(row(m, ns), from)
        else
          cute.copy(atom, row(m, ns), from)
        end
        cute.copy(atom, from, name:find "Shuffle" and r or row(m, nd, 1))
        if name:find "Shuffle" then cute.autovec_copy(r, row(m, nd)) end
      end
    end)(t):trace {block = 32}
    local out, why = program:compile(arch)
    if not out and tostring(why):find "no%-nvrtc" then return end
    assert.is_truthy(out, name .. ": " .. tostring(why))
    assert.is_truthy(out.ptx:find(text), name .. ": " .. text)
  end

  it("are instructions that NVRTC takes", function()
    for _, case in ipairs {{1, "f16"}, {2, "bf16"}, {4, "i8"}} do
      local n, dtype = case[1], cute[case[2] ]
      for _, dir in ipairs {"LDSM", "STSM"} do
        local sm = dir == "LDSM" and "SM75" or "SM90"
        local arch = dir == "LDSM" and "sm_80" or "sm_90a"
        local word = dir == "LDSM" and "ldmatrix" or "stmatrix"
        local form = word .. "%.sync%.aligned%.m8n8%.x" .. n
        holds(("%s_U32x%d_%s_N"):format(sm, n, dir), dtype, nil, arch,
              form .. "%.shared%.b16")
        holds(("%s_U16x%d_%s_T"):format(sm, 2 * n, dir), cute.f16, nil, arch,
              form .. "%.trans%.shared%.b16")
      end
    end
    for _, bits in ipairs {32, 64, 128} do
      local bytes = bits // 8
      holds("SM80_CP_ASYNC_CACHEALWAYS", cute.f16, bits, "sm_80",
            "cp%.async%.ca%.shared%.global %[[^]]*%], %[[^]]*%], " .. bytes)
      holds("SM80_CP_ASYNC_CACHEALWAYS_ZFILL", cute.f32, bits, "sm_90a",
            "cp%.async%.ca%.shared%.global %[[^]]*%], %[[^]]*%], " .. bytes
            .. ", %%")
    end
    holds("SM80_CP_ASYNC_CACHEGLOBAL", cute.f16, 128, "sm_86",
          "cp%.async%.cg%.shared%.global %[[^]]*%], %[[^]]*%], 16")
    holds("SM80_CP_ASYNC_CACHEGLOBAL_ZFILL", cute.f16, 128, "sm_80",
          "cp%.async%.cg%.shared%.global %[[^]]*%], %[[^]]*%], 16, %%")
    for bits, form in pairs {[8] = "%.b8", [16] = "%.b16", [32] = "%.b32",
                             [64] = "%.v2%.b32", [128] = "%.v4%.b32"} do
      holds("UniversalCopy", bits == 8 and cute.i8 or cute.f16, bits, "sm_80",
            "st%.global" .. form:gsub("%%%.b", "%%.[bu]"))
    end
    for _, n in ipairs {1, 4} do
      holds("SM50_Shuffle_U32_2x2Trans_XOR" .. n, cute.f16, nil, "sm_75",
            "shfl%.sync%.bfly%.b32")
    end
  end)
end)
-- SPDX-License-Identifier: MIT
