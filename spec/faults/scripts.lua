-- Faults that spec/watch/mutants_spec.lua plants in scripts and kernels, each
-- at one place of the text.

-- Each pair is a text and its replacement.
local NOTHING = "(function() end)("
local SYNC = {"cute.arch.sync_threads()", ""}
local LANES = {"sync_warp()", "lane_idx()"}
local COMMIT = {"cp_async_commit_group()", "lane_idx()"}
local WAIT = {"cp_async_wait_group(0)", "lane_idx()"}
local LATE = {"cp_async_wait_group(STAGES - 2)",
              "cp_async_wait_group(STAGES - 1)"}
local FENCE = {"fence_view_async_shared()", "lane_idx()"}
local MADE = {"mbarrier_init_fence()", "lane_idx()"}
local GROUP = {"cp_async_bulk_commit_group(", "lane_idx("}
local ORDER = {'sem = "acq_rel"', 'sem = "relaxed"'}
local SCOPE = {'scope = "gpu"', 'scope = "cta"'}
local BELOW = {"cute.lt(", "cute.le("}
local PRED = {"pred =", "pred = nil and"}
local COPY = {"cute.copy(", NOTHING}
local MOVE = {"cute.autovec_copy(", NOTHING}
local ASK = {"pipe:producer_acquire(write)", ""}
local FULL = {"pipe:consumer_wait(read)", ""}
local WROTE, READ = {"write:advance()", ""}, {"read:advance()", ""}
local CLOSE = {"warpgroup.commit_group()", ""}
local WAIT0 = {"warpgroup.wait_group(0)", ""}
local BARRIER = {"barrier:arrive_and_wait()", ""}
local BYTES = {"tma_a.tx_bytes + tma_b.tx_bytes", "tma_a.tx_bytes"}
local STAGE = {"asked, write, read = write", "asked, write, read = read"}
local HAS = {"walk.has(k)", "true"}
-- Pairs whose replacement launches fewer blocks or fewer tiles.
local FEWER = {"(total + block - 1) // block", "total // block - 1"}
local ROWS = {"return m end", "return m - 1 end"}
local TILES = {"(m + t.rows - 1) // t.rows", "m // t.rows"}
local HEADS = {"H, B} end", "H - 1, B} end"}
local SPLITS = {"gemm.grid(m, n, splits)", "gemm.grid(m - 64, n, splits)"}

-- Kinds of faults that the first report of a run can have.
local RACE, LANE_RACE, BLOCK_RACE = "race", "warp-race", "block-race"
local FLIES, UNWRITTEN = "async-in-flight", "uninitialised"
local OUT, DEAD, LEFT = "out-of-bounds", "deadlock", "unwritten"

-- Each row: {script, file = the file to change (by default the script), faults
-- ...}. A fault is {pair, which occurrence of its text to replace, kind of the
-- first report}. Without a kind, the result is wrong, but there is no report.
local FAULTS = {
  {"copy_async", {SYNC, 1, RACE}, {COMMIT, 1, FLIES}, {WAIT, 1, FLIES}},
  {"copy_basic", {SYNC, 1, RACE}},
  {"copy_swizzled", {SYNC, 1, RACE}, {COMMIT, 1, FLIES}, {WAIT, 1, FLIES}},
  {"copy_vector", {SYNC, 1, RACE}},
  {"gemm2stage", {SYNC, 1, RACE}, {COMMIT, 1, FLIES}, {COMMIT, 2, FLIES},
    {WAIT, 1, FLIES}, {BELOW, 1, OUT}},
  {"gemm3stage", {SYNC, 1, RACE}, {SYNC, 2, FLIES}, {COMMIT, 1, FLIES},
    {COMMIT, 2, FLIES}, {BELOW, 2, UNWRITTEN}, {BELOW, 3, "coordinate"},
    {COPY, 1, UNWRITTEN}, {LATE, 1, FLIES}, {LATE, 2, FLIES}},
  {"gemm_base", {SYNC, 1, RACE}, {SYNC, 2, RACE}, {COMMIT, 1, FLIES},
    {WAIT, 1, FLIES}, {COPY, 1, UNWRITTEN}, {COPY, 3, UNWRITTEN}},
  {"gemm_l2swizzle", {SYNC, 1, RACE}, {COMMIT, 1, FLIES}, {COMMIT, 2, FLIES},
    {WAIT, 1, FLIES}, {BELOW, 1, OUT}},
  {"gemm_sm70", {SYNC, 1, RACE}, {SYNC, 2, RACE}, {SYNC, 3, RACE},
    {BELOW, 1, OUT}},
  {"gemm_tma", {BELOW, 1, "exited-block"}, {COPY, 1, DEAD}, {ASK, 1, DEAD},
    {FULL, 1, FLIES}, {CLOSE, 1, "register"}, {WAIT0, 1, "register"},
    {WROTE, 1, "mbarrier"}, {READ, 1, "exited-block"}, {BYTES, 1, FLIES}},
  {"gemm_wgmma", {SYNC, 1, FLIES}, {COMMIT, 1, FLIES}, {BELOW, 1, OUT},
    {FENCE, 1, RACE}, {COPY, 1, UNWRITTEN}, {CLOSE, 1, "register"},
    {WAIT0, 1, "register"}, {LATE, 1, FLIES}},
  {"transpose", {SYNC, 1, RACE}},
  {"attention", file = "kernels/attention", {COMMIT, 1, FLIES},
    {COMMIT, 2, FLIES}, {COMMIT, 3, FLIES}, {WAIT, 1, FLIES}, {WAIT, 2, FLIES},
    {WAIT, 3, FLIES}, {BELOW, 2, OUT},
    {HEADS, 1, LEFT}},
  {"attention", file = "kernels/flash", {SYNC, 1, RACE}, {COPY, 2, UNWRITTEN},
    {COPY, 3, UNWRITTEN},
    {BELOW, 2}},
  {"attention_backward", file = "kernels/attention_bwd", {BELOW, 1, OUT},
    {BELOW, 2, RACE}, {BELOW, 3, OUT}, {BELOW, 4, OUT}},
  {"attention_decode", file = "kernels/attention_decode/part",
    {BELOW, 1, OUT}},
  {"conv2d", file = "kernels/conv2d", {BELOW, 1, OUT}},
  {"elementwise", file = "kernels/elementwise", {BELOW, 1, OUT},
    {BELOW, 2, OUT}},
  {"gemm_grouped", file = "kernels/groups", {BELOW, 1, OUT}},
  {"gemm_int4", file = "kernels/gemm_int4", {LANES, 1, LANE_RACE},
    {COMMIT, 1, FLIES}, {BELOW, 5, OUT}},
  {"histogram", file = "kernels/histogram", {SYNC, 1, RACE}, {SYNC, 2, RACE},
    {BELOW, 2, OUT}, {COPY, 1, UNWRITTEN}},
  {"softmax", file = "kernels/rows", {SYNC, 1, RACE}, {BELOW, 3, OUT},
    {PRED, 2, OUT}},
  {"layernorm", file = "kernels/rows", {SYNC, 1, RACE}, {BELOW, 3, OUT},
    {PRED, 2, OUT},
    {PRED, 3}},
  {"reduce", file = "kernels/reduce", {SYNC, 1, RACE}, {ORDER, 1, BLOCK_RACE},
    {SCOPE, 1, BLOCK_RACE}},
  {"rope", file = "kernels/rope", {BELOW, 1, OUT},
    {FEWER, 1, LEFT}},
  {"scan", file = "kernels/scan", {SYNC, 1, RACE}, {BELOW, 1, OUT},
    {PRED, 2, OUT}, {PRED, 3, OUT}, {PRED, 4, OUT}, {PRED, 5, OUT},
    {ROWS, 1, LEFT}},
  {"selective_scan", file = "kernels/selective_scan", {SYNC, 1, FLIES},
    {SYNC, 2, RACE}, {LANES, 1, LANE_RACE}, {COMMIT, 1, FLIES},
    {COMMIT, 2, FLIES}, {WAIT, 1, FLIES}, {BELOW, 2, OUT}, {BELOW, 3, OUT},
    {BELOW, 6, OUT}, {BELOW, 7, OUT}, {COPY, 1, UNWRITTEN},
    {MOVE, 3, UNWRITTEN}, {PRED, 2, OUT},
    {BELOW, 5}},
  {"topk", file = "kernels/topk", {SYNC, 1, RACE}, {LANES, 1, LANE_RACE},
    {LANES, 2, LANE_RACE}, {LANES, 3, LANE_RACE}, {BELOW, 1, UNWRITTEN},
    {BELOW, 4, OUT}, {BELOW, 5, OUT}, {{"cute.copy(", "select(1, "}, 1,
      UNWRITTEN}, {TILES, 1, LEFT}},
  {"gemm_splitk", file = "kernels/gemm_splitk", {SPLITS, 1, LEFT}},
  {"gemm_splitk", file = "kernels/splitk_reduce", {SYNC, 1, BLOCK_RACE},
    {SYNC, 2, RACE}, {ORDER, 1, BLOCK_RACE}, {SCOPE, 1, BLOCK_RACE},
    {MOVE, 1, UNWRITTEN}},
  {"copy_tma", {MADE, 1, "mbarrier"}, {GROUP, 1, "exited-block"}},
  {"gemm_ws", {COPY, 1, DEAD}, {ASK, 1, DEAD}, {FULL, 1, FLIES},
    {CLOSE, 1, "register"}, {WAIT0, 1, "register"}, {WROTE, 1, "mbarrier"},
    {READ, 1, "mbarrier"}, {BYTES, 1, DEAD}},
  {"gemm_sm80_best", file = "kernels/gemm_sm80", {HAS, 1, "coordinate"}},
  {"sgemm", file = "kernels/gemm_sm80", {STAGE, 1, FLIES}, {HAS, 1, OUT}},
  {"gemm_hopper", file = "kernels/gemm_sm90/producer", {ASK, 1, DEAD}},
  {"gemm_hopper", file = "kernels/gemm_sm90/mainloop", {FULL, 1, FLIES},
    {CLOSE, 1, "register"}, {WAIT0, 1, "register"}},
  {"gemm_hopper", file = "kernels/gemm_sm90/store_tile", {COPY, 1, UNWRITTEN},
    {BARRIER, 2, RACE}},
}

return FAULTS
