--- Lists how the memory traffic of a kernel differs from the traffic of its
-- PTX, in which NVRTC merges, moves or removes accesses. A difference that is
-- not listed here is an error.
local differences = {}

-- Changes that NVRTC makes, by name. law(counter, direct, ptx) reports whether
-- the change explains the values of a counter: `direct` in the direct run, and
-- `ptx` in the run through PTX.
local function fewer(counter, direct, ptx)
  return counter == "conflicts" or ptx < direct
end
local LAWS = {
  -- NVRTC moves a load into the branch that uses the value, so fewer lanes,
  -- warps and iterations execute it.
  sunk = fewer,
  -- NVRTC keeps a value that two lines load in a register.
  merged = fewer,
  -- NVRTC removes a load whose value is not used. Examples are the prefetch
  -- after the last tile, fragments of rows outside of a matrix of known size,
  -- and operands of which a function uses only the coordinates.
  unused = fewer,
  -- NVRTC loads or stores neighbouring elements by one wider access.
  widened = function(counter, direct, ptx)
    return counter == "wavefronts" and ptx < direct
  end,
  -- NVRTC unrolls a loop by a number that does not divide the number of
  -- iterations. Then lanes with one iteration more load at the same time as
  -- other lanes, but from other iterations.
  unrolled = function(counter) return counter == "sectors" end,
}

-- Rows: {kernel, kind of access and number of the argument, changes that
-- explain the difference, cases in which it occurs}
local ROWS = {
  {"attention", "ld.shared", "sunk", {"script attention", "odd attention",
    "script llama", "script train", "attention 2x33x40x4x2x32 f16 causal",
    "attention 1x65x70x2x1x128 bf16 causal"}},
  {"attention_part", "ld.global 9", "sunk", {"script llama"}},
  {"attention_together", "ld.global 9", "sunk", {"script llama"}},
  {"attention_decode", "ld.global 10", "sunk", {"script llama"}},
  {"attention_decode", "ld.shared", "merged", {"script llama"}},
  {"attention_dk", "ld.shared", "sunk", {
    "attention_backward 1x9x7x1x1x192 bf16"}},
  {"attention_dkv", "ld.shared", "sunk", {"script train",
    "attention_backward 2x20x30x4x2x32 f16 causal"}},
  {"attention_dq", "ld.shared", "sunk", {"script attention_backward",
    "script train", "attention_backward 2x20x30x4x2x32 f16 causal",
    "attention_backward 1x9x7x1x1x192 bf16"}},
  {"attention_dv", "ld.shared", "sunk", {
    "attention_backward 1x9x7x1x1x192 bf16"}},
  {"attention_together", "ld.global 7", "merged", {"script attention_decode",
    "script llama", "odd attention_decode",
    "attention_decode 1x50x3x1x32 f16"}},
  {"conv2d", "ld.shared", "sunk", {"script conv2d", "odd conv2d",
    "conv2d 2x7x5x24x40 f16 dilation stride"}},
  {"elementwise", "ld.global 1", "unused", {"script llama"}},
  {"embedding_backward", "ld.shared", "widened", {"script train",
    "ops.embedding_backward"}},
  {"gemm_f64", "ld.shared", "unused", {"odd gemm_f64"}},
  {"gemm_gelu", "ld.shared", "sunk", {"script gemm_epilogue",
    "odd gemm_epilogue"}},
  {"gemm_sm120", "st.shared", "widened", {"odd gemm_sm120"}},
  {"gemm_sm80", "ld.shared", "sunk", {"ops.gemm of bf16", "ops.gemm of f16",
    "ops.gemm with an epilogue", "ops.gemm, gated", "ops.gemm with scales",
    "ops.grouped_gemm of a list", "script train"}},
  {"gemm_sm80_best", "ld.shared", "sunk", {"odd gemm_sm80_best"}},
  {"gemm_sm90", "ld.shared", "sunk", {
    "ops.grouped_gemm by gemm_sm90, rows",
    "ops.grouped_gemm by gemm_sm90, masked",
    "ops.grouped_gemm by gemm_sm90, rows, epilogue",
    "ops.grouped_gemm by gemm_sm90, rows, gated"}},
  {"gemm_sm90", "ld.global 14", "sunk", {"ops.grouped_gemm of a list"}},
  {"gemm_splitk", "ld.shared", "sunk", {"script gemm_splitk", "odd gemm_splitk",
    "gemm_splitk 65x40x200 f16 splits"}},
  {"layernorm", "ld.shared", "merged", {
    "norm staged bias layer residual save weight"}},
  {"layernorm_backward", "ld.global 2", "merged", {"layernorm backward, held",
    "layernorm backward, staged"}},
  {"layernorm_backward", "ld.global 4", "merged", {"layernorm backward, held",
    "layernorm backward, staged"}},
  {"layernorm_backward", "ld.global 5", "merged", {"layernorm backward, held",
    "layernorm backward, staged"}},
  {"layernorm_backward", "ld.shared", "sunk widened", {
    "layernorm backward, 2 blocks", "layernorm backward, 3 blocks"}},
  {"reduce_all", "ld.global 1", "unrolled", {"reduce along all"}},
  {"rmsnorm_backward", "ld.global 2", "merged", {"script rmsnorm_backward",
    "script train", "odd rmsnorm_backward", "rmsnorm backward, held",
    "rmsnorm backward, staged"}},
  {"rmsnorm_backward", "ld.global 4", "merged", {"script rmsnorm_backward",
    "script train", "odd rmsnorm_backward", "rmsnorm backward, held",
    "rmsnorm backward, staged"}},
  {"rmsnorm_backward", "ld.shared", "sunk widened", {
    "rmsnorm backward, 2 blocks", "rmsnorm backward, 3 blocks"}},
  {"sample", "ld.global 1", "merged", {"ops.sample", "script llama"}},
  {"scan", "ld.shared", "widened", {"script scan", "scan in one pass"}},
  {"sgemm", "ld.shared", "unused", {"odd sgemm"}},
}

local known = {}
for _, row in ipairs(ROWS) do
  for _, case in ipairs(row[4]) do
    known[("%s, %s, %s"):format(case, row[1], row[2])] = row[3]
  end
end

--- Describes the differences between a direct run and the run through PTX that
-- ROWS does not explain. Returns nil if there are none.
---@param case string
---@param pair RoundTrip
---@return string?
function differences.complaint(case, pair)
  local list = {}
  for key, n in pairs(pair.traffic) do
    local access, counter = key:match "^(.*) (%l+)$"
    local place = ("%s, %s, %s"):format(case, pair.kernel, access)
    local allowed = false
    for cause in (known[place] or ""):gmatch "%l+" do
      allowed = allowed or LAWS[cause](counter, n[1], n[2])
    end
    if not allowed then
      list[#list + 1] = ("%s: %d %s, through PTX %d"):format(place, n[1],
                                                             counter, n[2])
    end
  end
  table.sort(list)
  return list[1] and table.concat(list, "\n")
end

return differences
-- SPDX-License-Identifier: MIT
