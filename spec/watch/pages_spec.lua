-- Tests how the simulator records accesses to shared memory. It keeps records
-- for pages. A page consists of granules of 1 to 16 bytes, which become
-- narrower when a narrow access occurs. Random PTX with accesses of 1 to 16
-- bytes runs in the second cluster of a grid. Before that, the first cluster
-- stores to every byte, so that all pages have the narrowest granules, or to
-- some bytes, or to none. Reports, counters and results must be equal in the
-- three cases.
local cute = require "cute"
local support = require "spec.support"
local Gen = require "spec.random".Gen
local words = require "cute.lang.report"

local TYPE = {"u8", "u16", [4] = "b32", [8] = "b64"}
local REG = {"h0", "h0", [4] = "a0", [8] = "b0"}
local WIDTHS = {1, 1, 2, 4, 4, 8, 16, 16}
local BARRIERS = 6

local HEAD = [[
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 pn)
{
.shared .align 1024 .b8 sm[%d];
.shared .align 8 .b8 bars[48];
.reg .b16 h<4>; .reg .b32 a<9>; .reg .b64 b<3>; .reg .pred p<4>;
.reg .b64 in, out; .reg .b32 tid, ntid, cta, n, at, s, sum;
ld.param.u64 in, [pin];
ld.param.u64 out, [pout];
ld.param.u32 n, [pn];
mov.u32 tid, %%tid.x;
mov.u32 ntid, %%ntid.x;
mov.u32 cta, %%ctaid.x;
mov.u32 sum, 0;
mov.u32 s, sm;
setp.ge.u32 p0, cta, %d;
@p0 bra main;
mov.u32 at, tid;
first: setp.ge.u32 p1, at, n;
@p1 bra last;
mov.u16 h0, 7;
add.u32 a0, s, at;
st.shared.u8 [a0], h0;
add.u32 at, at, ntid;
bra first;
last: ret;
main:
]]

local PRELUDE = select(2, HEAD:gsub("\n", ""))

local TAIL = [[
mad.lo.u32 a0, cta, ntid, tid;
mul.wide.u32 b0, a0, 4;
add.u64 b0, out, b0;
st.global.b32 [b0], sum;
ret;
}
]]

-- Returns PTX that sets `at` to the shared address of the `w` bytes that a
-- thread accesses. The threads have different addresses, or some share an
-- address.
local function address(g, w, bytes)
  local places = bytes // w
  local step = g.calm and 1 or g:pick {1, 1, 1, 0, 2, 3}
  local from = g:r(places) - 1
  return ("mad.lo.u32 at, tid, %d, %d; rem.u32 at, at, %d; "
    .. "mad.lo.u32 at, at, %d, s;"):format(step, from, places, w)
end

-- Returns the predicate of an access, and the instructions that set it. With
-- some predicates, only some lanes access memory.
local function guard(g)
  if g.calm or g:chance(70) then return "", "" end
  local bits = g:pick {1, 3, 16, 40}
  return "@p2 ", ("and.b32 a0, tid, %d; setp.ne.u32 p2, a0, 0; "):format(bits)
end

-- Returns PTX that sets the registers for stored values to the thread's number,
-- or to one number for all threads.
local function value(g)
  local v = g:chance(50) and "tid" or tostring(g:r(3))
  return ("mov.b32 a0, %s; mov.b32 a1, a0; mov.b32 a2, a0; mov.b32 a3, a0; "
    .. "cvt.u64.u32 b0, a0; mov.b64 b1, b0; cvt.u16.u32 h0, a0; mov.b16 h1, "
    .. "h0; mov.b16 h2, h0; mov.b16 h3, h0;"):format(v)
end

local form = {}

-- Forms of accesses, by number of bytes: {type, registers}.
local FORM = {[1] = {{"u8", "h0"}, {"b8", "h0"}},
  [2] = {{"u16", "h0"}, {"v2.u8", "{h0, h1}"}},
  [4] = {{"b32", "a0"}, {"v2.u16", "{h0, h1}"}, {"v4.u8", "{h0, h1, h2, h3}"}},
  [8] = {{"b64", "b0"}, {"v2.b32", "{a0, a1}"}, {"v4.u16", "{h0, h1, h2, h3}"}},
  [16] = {{"v4.b32", "{a0, a1, a2, a3}"}, {"v2.b64", "{b0, b1}"}}}

-- Returns PTX that adds a loaded value to the thread's `sum`.
local function took(registers)
  local r = registers:match "%w+"
  local c = r:sub(1, 1)
  return (c == "b" and "cvt.u32.u64 a0, b0; " or c == "h"
    and "cvt.u32.u16 a0, h0; " or "") .. "xor.b32 sum, sum, a0;"
end

-- Returns a store, or a load, of w bytes at `at`.
local function access(g, w, write)
  local f = g:pick(FORM[w])
  local at, set = guard(g)
  if write then
    return set .. value(g) .. ("%sst.shared.%s [at], %s;"):format(at, f[1],
                                                                  f[2])
  end
  return set .. ("%sld.shared.%s %s, [at];"):format(at, f[1], f[2])
    .. took(f[2])
end

function form.store(g, bytes)
  local w = g:pick(WIDTHS)
  return address(g, w, bytes) .. access(g, w, true)
end

function form.load(g, bytes)
  local w = g:pick(WIDTHS)
  return address(g, w, bytes) .. access(g, w, false)
end

-- An access near the end of shared memory that is out of bounds for some lanes,
-- or one that is misaligned for some lanes.
function form.outside(g, bytes)
  local w = g:pick(WIDTHS)
  local at = g:chance(50)
    and ("mad.lo.u32 at, tid, %d, s; add.u32 at, at, %d;"):format(w,
      bytes + 8 * BARRIERS - w * g:r(32))
    or ("and.b32 at, tid, 7; mad.lo.u32 at, at, %d, s;"):format(g:r(2 * w))
  return at .. access(g, w, g:chance(50))
end

function form.update(g, bytes)
  local op, w = table.unpack(g:pick {{"red.shared.or.b32 [at], a1", 4},
    {"red.shared.max.u64 [at], b1", 8}, {"atom.shared.cas.b16 h0, [at], h1, h2",
    2}, {"atom.shared.cas.b32 a0, [at], a1, a2", 4},
    {"atom.shared.exch.b64 b0, [at], b1", 8},
    {"red.shared.add.u32 [at], a1", 4},
    {"red.shared.add.noftz.f16x2 [at], a1", 4}})
  local at, set = guard(g)
  return address(g, w, bytes) .. set .. value(g) .. at .. op .. ";"
end

function form.atomic(g, bytes)
  local w = g:pick {4, 8}
  local sem = g:pick {"", ".acquire.cta", ".release.cta", ".acq_rel.cluster"}
  return address(g, w, bytes) .. value(g) .. ("atom%s.shared.add.u%d %s, [at], "
    .. "%s;"):format(sem, 8 * w, w == 4 and "a1" or "b1", REG[w])
end

function form.ordered(g, bytes)
  local w = g:pick {4, 8}
  local text = address(g, w, bytes) .. value(g)
  if g:chance(50) then
    return text .. ("st.release.cta.shared.%s [at], %s;"):format(TYPE[w],
                                                                   REG[w])
  end
  return text .. ("ld.acquire.cta.shared.%s %s, [at];"):format(TYPE[w],
                                                                 REG[w])
end

-- The first warp writes bytes and releases a flag; the other warps acquire the
-- flag and read the bytes. In between, a narrow access may make the granules of
-- the flag's page narrower. Sometimes the acquire reads another width, or other
-- bytes, than the release wrote.
function form.message(g, bytes)
  local w, flag, m = g:pick {4, 8}, 16 * (g:r(bytes // 16) - 1), g:r(1 << 30)
  local v, off = w, 0
  if not g.calm and g:chance(40) then
    v = g:pick {4, 8}
    off = v == 4 and 4 * (g:r(3) - 1) or 0
  end
  local split = g:chance(70)
    and ("ld.shared.u8 h0, [s+%d];"):format((flag + 64 + g:r(16)) % bytes) or ""
  local data = flag < 64 and bytes - 32 or 0
  local scope = g:pick {"cta", "cta", "cluster"}
  return ("setp.ge.u32 p1, tid, 32; @p1 bra Q%d; mov.b32 a0, 5; mov.b64 b0, 5;"
    .. "add.u32 at, s, tid; mov.u16 h0, 9; st.shared.u8 [at+%d], h0; "
    .. "setp.ne.u32 p2, tid, 3; @p2 bra R%d; bar.warp.sync 8; "
    .. "st.release.%s.shared.%s [s+%d], %s; %sbra R%d; Q%d: "
    .. "ld.acquire.%s.shared.%s %s, [s+%d]; ld.shared.u8 h0, [s+%d]; R%d:")
      :format(m, data, m, scope, TYPE[w], flag, REG[w], split, m, m, scope,
        TYPE[v], REG[v], flag + off, data + 3, m)
end

function form.copy(g, bytes)
  local w = g:pick {4, 8, 16}
  local wait = (g.calm or g:chance(70)) and "cp.async.wait_group 0;" or ""
  return address(g, w, bytes) .. "mul.wide.u32 b2, tid, 16; "
    .. ("add.u64 b2, in, b2; cp.async.ca.shared.global [at], [b2], %d; ")
      :format(w) .. "cp.async.commit_group;" .. wait
end

function form.matrix(g, bytes)
  return address(g, 16, bytes) .. "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
    .. "{a0, a1, a2, a3}, [at]; xor.b32 sum, sum, a3;"
end

function form.matrix_store(g, bytes)
  return address(g, 16, bytes) .. value(g)
    .. "stmatrix.sync.aligned.m8n8.x4.shared.b16 [at], {a0, a1, a2, a3};"
end

function form.barrier() return "bar.sync 0;" end

function form.warp() return "bar.warp.sync -1;" end

function form.proxy() return "fence.proxy.async;" end

-- A bulk copy from shared memory to global memory.
function form.out(g, bytes)
  local m, size = g:r(1 << 30), 16 * g:r(16)
  local fence = g:chance(50) and "fence.proxy.async.shared::cta; " or ""
  local wait = g:chance(70) and "cp.async.bulk.wait_group.read 0;" or ""
  return ("{ .reg .b64 c, d; setp.ne.u32 p1, tid, 0; @p1 bra O%d; "
    .. "mul.wide.u32 c, cta, 256; add.u64 d, c, in; add.u32 at, s, %d; %s"
    .. "cp.async.bulk.global.shared::cta.bulk_group [d+2048], [at], %d; "
    .. "cp.async.bulk.commit_group; %s O%d: }"):format(m,
      16 * (g:r((bytes - size) // 16 + 1) - 1), fence, size, wait, m)
end

-- An access to the shared memory of a block in the same cluster.
function form.far(g, bytes)
  local w = g:pick {1, 2, 4, 8}
  local t, r = TYPE[w], REG[w]
  local op = g:pick {"st.shared::cluster.%s [at], %s;",
    "ld.shared::cluster.%s %s, [at];", "st.release.cluster.shared::cluster.%s "
    .. "[at], %s;", "ld.acquire.cluster.shared::cluster.%s %s, [at];"}
  op = op:format(t, r)
  if w > 2 and g:chance(20) then
    op = ("atom.shared::cluster.add.u%d %s, [at], %s;"):format(8 * w, r, r)
  end
  return address(g, w, bytes) .. value(g)
    .. ("mapa.shared::cluster.u32 at, at, %d; "):format(g:r(2) - 1) .. op
end

-- A warpgroup's MMA, which reads B from 256 bytes of shared memory.
function form.product(g, bytes)
  if g.block < 128 then return form.matrix(g, bytes) end
  local at = 16 * (g:r((bytes - 256) // 16 + 1) - 1)
  local fence = g:chance(60) and "fence.proxy.async.shared::cta; " or ""
  return ("{ .reg .f32 f<4>; .reg .b32 d0; .reg .b64 d1, d2; mov.b32 a0, 0; "
    .. "mov.b32 a1, a0; mov.b32 a2, a0; mov.b32 a3, a0; "
    .. "mov.f32 f0, 0f00000000; mov.f32 f1, f0; mov.f32 f2, f0; "
    .. "mov.f32 f3, f0; add.u32 d0, s, %d; "
    .. "shr.u32 d0, d0, 4; cvt.u64.u32 d1, d0; or.b64 d2, d1, %d; "
    .. "%swgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned."
    .. "m64n8k16.f32.bf16.bf16 {f0, f1, f2, f3}, {a0, a1, a2, a3}, d2, 1, 1, "
    .. "1, 0; wgmma.commit_group.sync.aligned; "
    .. "wgmma.wait_group.sync.aligned 0; }")
      :format(at, 8 << 16 | 8 << 32, fence)
end

function form.meet()
  return "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
end

local timed = {}

-- Returns a wait for the first phase of mbarrier k or, in some programs, "".
local function wait(g, k)
  if not g.calm and g:chance(30) then return "" end
  return ("W%d: mbarrier.try_wait.parity.shared.b64 p1, [a4], 0; "
    .. "@p1 bra D%d; bra W%d; D%d:"):format(k, k, k, k)
end

-- A bulk copy of 16 to 256 bytes from global memory, or from shared memory.
function timed.bulk(g, bytes, k)
  local size = 16 * g:r(16)
  local function place() return 16 * (g:r((bytes - size) // 16 + 1) - 1) end
  local from = not g.calm and g:chance(40) and {"shared::cta", "[a6]"}
    or {"global", "[in]"}
  local fence = g:chance(50) and "fence.proxy.async.shared::cta; " or ""
  return ("mov.u32 a4, bars; add.u32 a4, a4, %d; add.u32 a5, s, %d; add.u32 a6,"
    .. " s, %d; setp.ne.u32 p1, tid, 0; @p1 bra skip%d; "
    .. "mbarrier.arrive.expect_tx.shared.b64 _, [a4], %d; %s"
    .. "cp.async.bulk.shared::cluster.%s.mbarrier::complete_tx::bytes [a5], %s,"
    .. " %d, [a4]; skip%d: "):format(8 * k, place(), place(), k, size, fence,
      from[1], from[2], size, k) .. wait(g, k)
end

-- A st.async by each thread to the other block of its cluster.
function timed.send(g, bytes, k)
  local kind = g:pick {{4, "b32", "a0"}, {8, "b64", "b0"},
                       {16, "v4.b32", "{a0, a1, a2, a3}"}}
  return address(g, kind[1], bytes) .. value(g) .. ("mov.u32 a4, bars; add.u32 "
    .. "a4, a4, %d; mul.lo.u32 a5, ntid, %d; setp.eq.u32 p1, tid, 0; @p1 "
    .. "mbarrier.arrive.expect_tx.shared.b64 _, [a4], a5; mov.u32 a5, "
    .. "%%cluster_ctarank; xor.b32 a5, a5, %d; mapa.shared::cluster.u32 at, at,"
    .. " a5; mapa.shared::cluster.u32 a6, a4, a5; st.async.shared::cluster."
    .. "mbarrier::complete_tx::bytes.%s [at], %s, [a6];"):format(8 * k, kind[1],
      g.cluster - 1, kind[2], kind[3]) .. wait(g, k)
end

-- A cp.async by each thread that arrives at an mbarrier.
function timed.fill(g, bytes, k)
  local w = g:pick {4, 8, 16}
  return address(g, w, bytes) .. "mul.wide.u32 b2, tid, 16; add.u64 b2, in, b2;"
    .. (" cp.async.ca.shared.global [at], [b2], %d, %d; mov.u32 a4, bars; "
    .. "add.u32 a4, a4, %d; cp.async.mbarrier.arrive.shared.b64 [a4]; "
    .. "bar.sync 0; setp.eq.u32 p1, tid, 0; @p1 mbarrier.arrive.shared.b64 _, "
    .. "[a4];"):format(w, g:r(w + 1) - 1, 8 * k) .. wait(g, k)
end

local FORMS = {"store", "store", "load", "load", "load", "atomic", "ordered",
               "message", "copy", "matrix", "barrier", "barrier", "barrier",
               "update", "matrix_store", "out", "proxy", "warp", "product"}
local TIMED = {"bulk", "send", "fill"}

local function inits()
  local list = {"setp.ne.u32 p1, tid, 0; @p1 bra ready;"}
  for k = 0, BARRIERS - 1 do
    list[#list + 1] = ("mov.u32 a4, bars; mbarrier.init.shared.b64 [a4+%d], "
      .. "1;"):format(8 * k)
  end
  list[#list + 1] = "fence.mbarrier_init.release.cluster; ready: bar.sync 0;"
  return table.concat(list, "\n")
end

-- Returns a random program. Each statement is one line, so that reports name
-- the statement. A calm program has a barrier after each statement, and its
-- threads never access the same address.
local function program(g, cluster, block)
  g.calm, g.cluster, g.block = g:chance(30), cluster, block
  local bytes, copies = 16 * ((g.calm and block or 16) + g:r(60)), 0
  local list = {HEAD:format(bytes, cluster), inits()}
  if g.calm or g:chance(60) then
    list[#list + 1] = ("mov.u32 at, tid; I: setp.ge.u32 p1, at, %d; @p1 bra J; "
      .. "add.u32 a0, s, at; mov.u16 h0, 1; st.shared.u8 [a0], h0; "
      .. "add.u32 at, at, ntid; bra I; J: bar.sync 0;"):format(bytes)
  end
  for _ = 1, 4 + g:r(14) do
    local name = g:pick(FORMS)
    if cluster > 1 and not g.calm and g:chance(20) then
      name = g:pick {"far", "meet"}
    end
    if not g.calm and g:chance(3) then name = "outside" end
    if g:chance(20) and copies < BARRIERS then
      list[#list + 1] = timed[g:pick(TIMED)](g, bytes, copies)
      copies = copies + 1
    else
      list[#list + 1] = form[name](g, bytes)
    end
    if g.calm then list[#list + 1] = form.barrier() end
  end
  return table.concat(list, "\n") .. "\n" .. TAIL, bytes
end

-- Returns the reports and the counters of a run, as text.
local function run(kernel, cluster, block, n, seed)
  local input = cute.zeros({4096}, cute.u8)
  for i = 0, 4095 do input[i] = i % 251 end
  local out = cute.zeros({512}, cute.u32)
  local r = support.report(kernel(input, out, n):launch {grid = 2 * cluster,
    block = block, cluster = cluster, threads = 1, seed = seed,
    device = "sim:sm_90a", faults = "return"})
  local list = {}
  for _, f in ipairs(r.reports) do
    list[#list + 1] = ("%s %s line %s %s at %s by %s of %s, %d times"):format(
      f.kind, f.message, f.line, f.line2, f.offset,
      table.concat(f.thread or {}, ","), table.concat(f.block or {}, ","),
      f.count)
  end
  for _, f in ipairs(r.relies or {}) do
    list[#list + 1] = ("relies: %s line %s %s at %s"):format(f.message, f.line,
      f.line2, f.offset)
  end
  for _, l in ipairs(r.lines) do
    if l.line > PRELUDE then
      list[#list + 1] = ("%d: %s %s %s %s %s"):format(l.line, l.op, l.count,
        l.wavefronts, l.conflicts, l.bytes)
    end
  end
  for i = block * cluster, 2 * block * cluster - 1 do
    list[#list + 1] = out[i]
  end
  for i = 2048, 4095 do list[#list + 1] = input[i] end
  return table.concat(list, "\n"), r
end

-- Returns the lines of a that are not in b.
local function missing(a, b)
  local has, list = {}, {}
  for line in b:gmatch "[^\n]+" do has[line] = true end
  for line in a:gmatch "[^\n]+" do
    if not has[line] then list[#list + 1] = line end
  end
  return table.concat(list, "\n")
end

-- Compares three runs of a program, whose reports' kinds it adds to `kinds`.
local function compare(g, seed, kinds)
  local cluster, block = g:pick {1, 2}, g:pick {32, 64, 128}
  local text, bytes = program(g, cluster, block)
  local kernel = cute.ptx(text):kernel("k", {lines = "ptx"})
  local all = bytes + 8 * BARRIERS
  local wide, report = run(kernel, cluster, block, 0, seed)
  local many = 0
  for _, n in ipairs {g:r(all), all} do
    local narrow, r = run(kernel, cluster, block, n, seed)
    if wide ~= narrow then
      error(("seed %d, %d bytes are narrow\n%s\nwide:\n%s\nnarrow:\n%s"):format(
        seed, n, text, missing(wide, narrow), missing(narrow, wide)))
    end
    many = r.granules
  end
  for _, f in ipairs(report.reports) do kinds[f.kind] = true end
  return #report.reports, many > report.granules
end

local KINDS = {"async-in-flight", "exited-block", "mbarrier", "misaligned",
  "out-of-bounds", "race", "uninitialised", "unstarted-block", "warp-race"}

describe("pages of shared memory", function()
  local tell = words.tell
  setup(function() words.tell = function() end end)
  teardown(function() words.tell = tell end)
  for part = 1, 4 do
    it(("report the same as single bytes, %d"):format(part)
       .. support.long(part), function()
      local faulty, clean, narrower, kinds = 0, 0, 0, {}
      for seed = 1000 * part + 1, 1000 * part + (part == 1 and 100 or 200) do
        local g = setmetatable({state = seed * 0x9e3779b97f4a7c15}, Gen)
        local found, less = compare(g, seed, kinds)
        if found > 0 then faulty = faulty + 1 else clean = clean + 1 end
        if less then narrower = narrower + 1 end
      end
      assert.is_true(faulty > 10, faulty)
      assert.is_true(clean > 0, clean)
      assert.is_true(narrower > 0, narrower)
      for _, kind in ipairs(KINDS) do assert.is_true(kinds[kind], kind) end
    end)
  end
end)
-- SPDX-License-Identifier: MIT
