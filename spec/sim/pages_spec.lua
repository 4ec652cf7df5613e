-- Pages of shared memory with granules of their own width. Random PTX with
-- accesses of 1 to 16 bytes runs in the second cluster of a grid. The first
-- cluster either stores to every byte, so that all pages have the narrowest
-- granules, or to none. Reports, counters and results must be equal.
local cute = require "cute"
local support = require "spec.support"
local Gen = require "spec.random".Gen

local TYPE = {"u8", "u16", [4] = "b32", [8] = "b64"}
local REG = {"h0", "h0", [4] = "a0", [8] = "b0"}
local WIDTHS = {1, 1, 2, 4, 4, 8, 16, 16}
local BARRIERS = 3
local PRELUDE = 30  -- lines of HEAD

local HEAD = [[
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 pin, .param .u64 pout, .param .u32 pn)
{
.shared .align 1024 .b8 sm[%d];
.shared .align 8 .b8 bars[24];
.reg .b16 h<2>; .reg .b32 a<9>; .reg .b64 b<3>; .reg .pred p<4>;
.reg .b64 in, out; .reg .b32 tid, cta, n, at, s, sum;
ld.param.u64 in, [pin];
ld.param.u64 out, [pout];
ld.param.u32 n, [pn];
mov.u32 tid, %%tid.x;
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
add.u32 at, at, 64;
bra first;
last: ret;
main:
]]

local TAIL = [[
mad.lo.u32 a0, cta, 64, tid;
mul.wide.u32 b0, a0, 4;
add.u64 b0, out, b0;
st.global.b32 [b0], sum;
ret;
}
]]

-- Sets `at` to the shared address of a thread's `w` bytes. Threads use places
-- of their own, share them, or use those of a neighbour.
local function address(g, w, bytes)
  local places = bytes // w
  local step = g.calm and 1 or g:pick {1, 1, 1, 0, 2, 3}
  local from = g:r(places) - 1
  return ("mad.lo.u32 at, tid, %d, %d; rem.u32 at, at, %d; "
    .. "mad.lo.u32 at, at, %d, s;"):format(step, from, places, w)
end

-- Sets the value registers to the thread's number, or to one for all.
local function value(g)
  local v = g:chance(50) and "tid" or tostring(g:r(3))
  return ("mov.b32 a0, %s; mov.b32 a1, a0; mov.b32 a2, a0; mov.b32 a3, a0; "
    .. "cvt.u64.u32 b0, a0; cvt.u16.u32 h0, a0;"):format(v)
end

local form = {}

function form.store(g, bytes)
  local w = g:pick(WIDTHS)
  local op = w == 16 and "st.shared.v4.b32 [at], {a0, a1, a2, a3};"
    or ("st.shared.%s [at], %s;"):format(TYPE[w], REG[w])
  return address(g, w, bytes) .. value(g) .. op
end

function form.load(g, bytes)
  local w = g:pick(WIDTHS)
  local op = w == 16 and "ld.shared.v4.b32 {a0, a1, a2, a3}, [at];"
    or ("ld.shared.%s %s, [at];"):format(TYPE[w], REG[w])
  local took = w == 8 and "cvt.u32.u64 a0, b0;"
    or w < 4 and "cvt.u32.u16 a0, h0;" or ""
  return address(g, w, bytes) .. op .. took .. "xor.b32 sum, sum, a0;"
end

function form.atomic(g, bytes)
  local w = g:pick {4, 8}
  local sem = g:pick {"", ".acquire.cta", ".release.cta", ".acq_rel.cluster"}
  return address(g, w, bytes) .. value(g) .. ("atom%s.shared.add.u%d %s, [at], "
    .. "%s;"):format(sem, 8 * w, w == 4 and "a1" or "b1", REG[w])
end

function form.ordered(g, bytes)
  local w = g:pick {4, 8}
  local access = address(g, w, bytes) .. value(g)
  if g:chance(50) then
    return access .. ("st.release.cta.shared.%s [at], %s;"):format(TYPE[w],
                                                                   REG[w])
  end
  return access .. ("ld.acquire.cta.shared.%s %s, [at];"):format(TYPE[w],
                                                                 REG[w])
end

-- The first warp writes bytes and releases a flag; the second warp acquires it
-- and reads them. Between the two, a narrow access may split the flag's page.
function form.message(g, bytes)
  local w, flag, m = g:pick {4, 8}, 16 * (g:r(bytes // 16) - 1), g:r(1 << 30)
  local split = g:chance(70)
    and ("ld.shared.u8 h0, [s+%d];"):format((flag + 64 + g:r(16)) % bytes) or ""
  return ("setp.ge.u32 p1, tid, 32; @p1 bra Q%d; mov.b32 a0, 5;"):format(m)
    .. "mov.b64 b0, 5; add.u32 at, s, tid;"
    .. ("mov.u16 h0, 9; st.shared.u8 [at+%d], h0; setp.ne.u32 p2, tid, 3;")
      :format(flag < 64 and bytes - 32 or 0)
    .. ("@p2 bra R%d; bar.warp.sync 8; st.release.cta.shared.%s [s+%d], %s;")
      :format(m, TYPE[w], flag, REG[w])
    .. split .. ("bra R%d; Q%d: "):format(m, m)
    .. ("ld.acquire.cta.shared.%s %s, [s+%d]; ld.shared.u8 h0, [s+%d];")
      :format(TYPE[w], REG[w], flag, (flag < 64 and bytes - 32 or 0) + 3)
    .. ("R%d:"):format(m)
end

function form.copy(g, bytes)
  local w = g:pick {4, 8, 16}
  local wait = (g.calm or g:chance(70)) and "cp.async.wait_group 0;" or ""
  return address(g, w, bytes) .. "mul.wide.u32 b0, tid, 16; "
    .. ("add.u64 b0, in, b0; cp.async.ca.shared.global [at], [b0], %d; ")
      :format(w) .. "cp.async.commit_group;" .. wait
end

function form.matrix(g, bytes)
  return address(g, 16, bytes) .. "ldmatrix.sync.aligned.m8n8.x4.shared.b16 "
    .. "{a0, a1, a2, a3}, [at]; xor.b32 sum, sum, a3;"
end

function form.barrier() return "bar.sync 0;" end

function form.far(g, bytes)
  local w = g:pick {1, 2, 4}
  return address(g, w, bytes) .. value(g) .. "mapa.shared::cluster.u32 at, at, "
    .. ("%d; %s.shared::cluster.%s"):format(g:r(2) - 1, "st", TYPE[w])
    .. (" [at], %s;"):format(REG[w])
end

function form.meet()
  return "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;"
end

-- A bulk copy of 16 to 256 bytes at its own mbarrier, with or without a wait.
local function bulk(g, bytes, k)
  local size = 16 * g:r(16)
  local to = 16 * (g:r((bytes - size) // 16 + 1) - 1)
  local text = ("mov.u32 a4, bars; add.u32 a4, a4, %d; add.u32 a5, s, %d; "
    .. "setp.ne.u32 p1, tid, 0; @p1 bra skip%d; "
    .. "mbarrier.arrive.expect_tx.shared.b64 _, [a4], %d; "
    .. "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    .. "[a5], [in], %d, [a4]; skip%d: "):format(8 * k, to, k, size, size, k)
  if not g.calm and g:chance(30) then return text end
  return text .. ("W%d: mbarrier.try_wait.parity.shared.b64 p1, [a4], 0; "
    .. "@p1 bra D%d; bra W%d; D%d:"):format(k, k, k, k)
end

local FORMS = {"store", "store", "load", "load", "load", "atomic", "ordered",
               "message", "copy", "matrix", "barrier", "barrier", "barrier"}

local function inits()
  local list = {"setp.ne.u32 p1, tid, 0; @p1 bra ready;"}
  for k = 0, BARRIERS - 1 do
    list[#list + 1] = ("mov.u32 a4, bars; mbarrier.init.shared.b64 [a4+%d], "
      .. "1;"):format(8 * k)
  end
  list[#list + 1] = "fence.mbarrier_init.release.cluster; ready: bar.sync 0;"
  return table.concat(list, "\n")
end

-- A statement is one line, so that reports name it. A calm program has a
-- barrier behind each, and no two threads share a place.
local function program(g, cluster)
  g.calm = g:chance(30)
  local bytes, copies = 16 * ((g.calm and 64 or 16) + g:r(60)), 0
  local list = {HEAD:format(bytes, cluster), inits()}
  if g.calm or g:chance(60) then
    list[#list + 1] = ("mov.u32 at, tid; I: setp.ge.u32 p1, at, %d; @p1 bra J; "
      .. "add.u32 a0, s, at; mov.u16 h0, 1; st.shared.u8 [a0], h0; "
      .. "add.u32 at, at, 64; bra I; J: bar.sync 0;"):format(bytes)
  end
  for _ = 1, 4 + g:r(14) do
    local name = g:pick(FORMS)
    if cluster > 1 and not g.calm and g:chance(20) then
      name = g:pick {"far", "meet"}
    end
    if g:chance(12) and copies < BARRIERS then
      list[#list + 1] = bulk(g, bytes, copies)
      copies = copies + 1
    else
      list[#list + 1] = form[name](g, bytes)
    end
    if g.calm then list[#list + 1] = form.barrier() end
  end
  return table.concat(list, "\n") .. "\n" .. TAIL, bytes
end

-- Returns what a run found and counted, as text.
local function run(kernel, cluster, n, seed)
  local input = cute.zeros({4096}, cute.u8)
  for i = 0, 4095 do input[i] = i % 251 end
  local out = cute.zeros({256}, cute.u32)
  local r = support.report(kernel(input, out, n):launch {grid = 2 * cluster,
    block = 64, cluster = cluster, threads = 1, seed = seed,
    device = "sim:sm_90a", faults = "return"})
  local list = {}
  for _, f in ipairs(r.reports) do
    list[#list + 1] = ("%s %s line %s %s at %s by %s of %s, %d times"):format(
      f.kind, f.message, f.line, f.line2, f.offset,
      table.concat(f.thread or {}, ","), table.concat(f.block or {}, ","),
      f.count)
  end
  for _, l in ipairs(r.lines) do
    if l.line > PRELUDE then
      list[#list + 1] = ("%d: %s %s %s %s %s"):format(l.line, l.op, l.count,
        l.wavefronts, l.conflicts, l.bytes)
    end
  end
  for i = 64 * cluster, 128 * cluster - 1 do list[#list + 1] = out[i] end
  return table.concat(list, "\n"), #r.reports, r.granules
end

local function compare(g, seed)
  local cluster = g:pick {1, 2}
  local text, bytes = program(g, cluster)
  local kernel = cute.ptx(text):kernel("k", {lines = "ptx"})
  local wide, found, few = run(kernel, cluster, 0, seed)
  local narrow, _, many = run(kernel, cluster, bytes, seed)
  if wide ~= narrow then
    error(("seed %d\n%s\nwide:\n%s\nnarrow:\n%s"):format(seed, text, wide,
                                                         narrow))
  end
  return found, many > few
end

describe("pages of shared memory", function()
  for part = 1, 4 do
    it(("report what the narrowest granules report, %d"):format(part)
       .. support.long(part), function()
      local faulty, clean, narrower = 0, 0, 0
      for seed = 100 * part + 1, 100 * part + 60 do
        local g = setmetatable({state = seed * 0x9e3779b97f4a7c15}, Gen)
        local found, less = compare(g, seed)
        if found > 0 then faulty = faulty + 1 else clean = clean + 1 end
        if less then narrower = narrower + 1 end
      end
      assert.is_true(faulty > 10, faulty)
      assert.is_true(clean > 0, clean)
      assert.is_true(narrower > 0, narrower)
    end)
  end
end)
-- SPDX-License-Identifier: MIT
