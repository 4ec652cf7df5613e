--- Makes random changes of files that accompany PTX: IR of the CuTe DSL,
-- metadata of Triton, LAUNCH files and folders of libcutecapture. Reads the
-- changed files and launches them.
local calls = require "spec.calls"
local core = require "cute.core"
local cute = require "cute"
local launch = require "cutelua.ptx.launch"
local support = require "spec.support"
local texts = require "spec.ptx.texts"

local metadata = {}

local LONGEST = 20  -- maximum seconds of one case

local PTX = [[
.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry turn(.param .u64 out, .param .u32 add, .param .u64 scratch,
                     .param .u64 profile)
.reqntid 128
{
  .reg .b32 %r<9>; .reg .b64 %rd<9>;
  ld.param.u64 %rd0, [out];
  ld.param.u32 %r0, [add];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd0, %rd2;
  st.global.u32 [%rd3], %r0;
  ret;
}
]]

local META = [[{"name": "turn", "num_warps": 4, "num_ctas": 1, "shared": 16,
 "target": {"backend": "cuda", "arch": 90, "warp_size": 32},
 "global_scratch_size": 512, "global_scratch_align": 128,
 "profile_scratch_size": 0, "profile_scratch_align": 1,
 "tensordesc_meta": [{"swizzle": 3, "elem_size": 2, "elem_type": 6,
   "block_size": [64, 64], "fp4_padded": false}],
 "launch_pdl": false, "launch_cooperative_grid": false,
 "signature": {"out": "*i32", "add": "i32"}, "triton_version": "3.9.0"}
]]

local LAUNCH = [[{"capture": 1, "entry": "turn",
 "grid": [1, 1, 1], "block": [128, 1, 1], "smem": 16, "seed": 3,
 "undefined_ok": [3],
 "args": ["m0", {"u32": 7}, {"pointer": {"tensor": "m1", "offset": 8}},
   {"u64": 0}],
 "symbols": {},
 "memory": {"m0": {"npy": "m0.npy", "pointers": {"8": "m1"}},
  "m1": {"dtype": "f32", "shape": [4, 8], "strides": [8, 1], "fill": "normal",
         "seed": 5},
  "m2": {"dtype": "i32", "shape": 4, "values": [1, 2, 3, 4]}},
 "expect": {"m0": {"npy": "m0.npy", "tolerance": 1e-3}},
 "files": {"module.ptx": 1, "m0.npy": 2}}
]]

local NPY = ("\x93NUMPY\1\0\x76\0" .. ("{'descr': '<u4', 'fortran_order': "
  .. "False, 'shape': (128,), }"):format()) .. (" "):rep(128)

local function npy()
  return NPY:sub(1, 127) .. "\n" .. ("<I4"):pack(9):rep(128)
end

-- Changes some bytes of a binary file, or cuts it off.
local function changed_bytes(text)
  if math.random(4) == 1 then return text:sub(1, math.random(#text)) end
  local at = math.random(#text)
  return text:sub(1, at - 1) .. string.char(math.random(0, 255))
    .. text:sub(at + 1)
end

-- Returns a text after up to 3 random changes, all made by `how`.
local function some(text, how)
  for _ = 1, math.random(0, 3) do text = (how or texts.changed)(text) end
  return text
end

local function loop_of(ir)
  local launched = ir:match "%%6 = (cuda.launch_ex[^\n]*\n)"
  return ir:gsub("%%3 = cute.kernel_smem_size",
    "scf.for %%arg9 = %%c0_i32 to %%c2_i32 step %%c1_i32  : i32 {\n%0", 1)
    :gsub("%%6 = cuda.launch_ex[^\n]*\n", function(line)
      return line .. "%7 = " .. launched .. "}\n"
    end)
end

local function tensor()
  return cute.zeros({math.random(1, 8), 4 * math.random(1, 8)}, cute.f32)
end

local OPTIONS = {device = "sim:sm_90a", budget = 20000}

-- Each case writes damaged copies of a kernel's files to a folder, and launches
-- the kernel from them.
local CASES = {
  function(folder)
    local name = math.random(3) == 1 and "copy" or "scale"
    local file = "spec/ptx/dsl/cute_dsl_" .. name .. "_clean.mlir"
    local ir = support.read(file)
    if name == "scale" and math.random(2) == 1 then ir = loop_of(ir) end
    local path = ("%s/cute_dsl_%s_clean.mlir"):format(folder, name)
    support.write(path, some(ir))
    support.write(("%s/%s.sm_90a.ptx"):format(folder, name),
      support.read("spec/ptx/dsl/" .. name .. ".sm_90a.ptx"))
    local x, out = tensor(), tensor()
    if name == "copy" then
      cute.dsl(path)(x, cute.zeros({34}, cute.f32)):launch(OPTIONS)
    else
      cute.dsl(path)(x, out, 0.5):launch(OPTIONS)
    end
  end,
  function(folder)
    support.write(folder .. "/turn.json", some(META))
    support.write(folder .. "/turn.ptx", PTX)
    local list = {cute.zeros({128}, cute.i32), 5}
    cute.triton(folder .. "/turn.json")(table.unpack(list)):launch {
      grid = 1, budget = 20000, device = "sim:sm_90a"}
  end,
  function(folder)
    support.write(folder .. "/module.ptx", PTX)
    support.write(folder .. "/m0.npy", some(npy(), changed_bytes))
    local sizes = LAUNCH:gsub('"module.ptx": 1', '"module.ptx": ' .. #PTX)
      :gsub('"m0.npy": 2', '"m0.npy": ' .. #npy())
    support.write(folder .. "/LAUNCH.json", some(sizes))
    support.quietly(function() launch.main(folder, {}) end)
  end,
  function(folder)
    support.write(folder .. "/k.ptx", PTX)
    local plain = LAUNCH:gsub('"capture": 1, ', ""):gsub(',\n "files".*', "}")
      :gsub('{"npy": "m0.npy", ', '{"dtype": "u32", "shape": 128, ')
      :gsub('"npy": "m0.npy"', '"values": [1, 2]')
    support.write(folder .. "/l.json", some(plain))
    support.quietly(function()
      launch.main(folder .. "/k.ptx", {"--launch", folder .. "/l.json"})
    end)
  end,
}

--- Runs the case of a seed in an empty folder. Returns "right", "rejected" or
-- "wrong", and for "wrong" the reason.
---@param seed integer
---@param folder string
---@return string verdict, string? why
function metadata.run(seed, folder)
  math.randomseed(seed)
  local start = core.clock()
  local ok, why = pcall(CASES[1 + seed % #CASES], folder)
  local took = core.clock() - start
  if took > LONGEST then return "wrong", ("it took %.0f s"):format(took) end
  if ok then return "right" end
  local unclear = calls.unclear(why)
  if unclear then return "wrong", ("%s: %s"):format(unclear, why) end
  return "rejected"
end

return metadata
-- SPDX-License-Identifier: MIT
