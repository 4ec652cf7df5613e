--- Products by FMA units (kernels/gemm_simt): what they take, in which tiles.
local blocks = require "cute.ops.blocks"
local tiles = require "cute.tiles"

local TILES = {
  {128, 128, stages = 6, good = 1.0}, {64, 64, stages = 6, good = 0.7},
}
local TILES64 = {TILES[2]}  -- of f64: a thread has no registers for more

local simt = {name = "gemm_simt"}

local FMA = {f32 = true, f64 = true, f16 = true, bf16 = true, i32 = true}

function simt.takes(p)
  for _, t in ipairs {p.a, p.b} do
    if not FMA[t.name] then
      return ("FMA units do not multiply %s"):format(t)
    end
  end
  if p.gated then return "gemm_simt has no gates" end
  if p.ragged then return "gemm_simt has no groups" end
  if p.group then return "gemm_simt has no factors for blocks of K" end
  if p.a ~= p.b and (p.a.bits > 32 or p.b.bits > 32 or p.sums.is_integer) then
    return ("FMA units do not multiply %s by %s"):format(p.a, p.b)
  end
end

-- 8 warps where a multiprocessor has one block: f32 1024^3 takes 55 us instead
-- of 65. Beside others 4 are 6 to 9 % faster.
local function warps_of(p, t, splits)
  local count = tiles.count(p.m, t[1]) * tiles.count(p.n, t[2])
    * p.batches * splits
  return t[1] == 128 and count <= p.sms and 8 or nil
end

function simt.list(p)
  return blocks.candidates(p, "gemm_simt",
    p.sums.bits == 64 and TILES64 or TILES, function(t, splits)
    local o = {name = "gemm_simt", tile = {t[1], t[2], 8}, stages = t.stages,
               sums = p.sums, a_dtype = p.a, b_dtype = p.b,
               warps = warps_of(p, t, splits)}
    return o, setmetatable({t[1], t[2], 8}, {__index = t}),
           p.sums.bits == 64 and 200 or 400
  end)
end

return simt
