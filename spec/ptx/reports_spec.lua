-- Tests the texts and lines of the simulator's reports on PTX: on accesses to
-- memory without types, and on lines of inline asm.
local cute = require "cute"

local HEAD = [[
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 x, .param .u64 y) {
.reg .pred %p<4>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
.shared .align 16 .b8 s[1024];
ld.param.u64 %rd0, [x];
ld.param.u64 %rd1, [y];
cvta.to.global.u64 %rd2, %rd0;
cvta.to.global.u64 %rd3, %rd1;
mov.u32 %r0, %tid.x;
shl.b32 %r1, %r0, 2;
mul.wide.u32 %rd4, %r0, 4;
mov.u32 %r2, s;
add.u32 %r3, %r2, %r1;
add.u64 %rd5, %rd3, %rd4;
]]

-- Runs these instructions with 64 threads. Returns a list of the reports'
-- messages, and a list of their lines.
local function run(text, opts)
  local x, y = cute.zeros({64}, cute.f32), cute.empty({64}, cute.f32)
  local launch = {grid = 1, block = 64, device = "sim:sm_90a",
                  faults = "return"}
  local k = cute.ptx(HEAD .. text .. "\nret;\n}\n"
    .. '.file 1 "user.cu"\n'):kernel("k", opts)
  local _, _, report = k(x, y):launch(launch)
  local messages, lines = {}, {}
  for i, r in ipairs(report and report.reports or {}) do
    messages[i], lines[i] = r.message, r.line
  end
  return messages, lines
end

describe("reports on memory of PTX", function()
  it("count the bytes of a global argument", function()
    assert.is_truthy(run("st.global.u32 [%rd3+260], %r0;")[1]:find(
      "byte 260 to 263 of 256", 1, true))
  end)

  it("count the bytes of shared memory", function()
    local m = run("ld.shared.u32 %r4, [%r3+8];\nst.global.u32 [%rd5], %r4;")
    assert.is_truthy(m[1]:find "^read of uninitialised memory: byte %d+ of "
      and m[1]:find "of shared memory$", m[1])
    m = run "st.shared.u32 [%r2+4], %r0;\nst.global.u32 [%rd5], 0;"
    assert.is_truthy(m[1]:find "^two %l+.* write one byte with no "
      and m[1]:find ": byte 4 of shared memory$", m[1])
    m = run [[st.shared.u32 [%r3], %r0;
      sub.u32 %r5, %r2, %r1;
      ld.shared.u32 %r4, [%r5+252];
      st.global.u32 [%rd5], %r4;]]
    assert.is_truthy(m[1]:find("read of a byte that another warp writes, with "
      .. "no barrier between the two lines: byte", 1, true), m[1])
    m = run "ld.shared.v2.u32 {%r4, %r5}, [%r2+4];\nst.global.u32 [%rd5], %r4;"
    assert.are.equal("read of 8 bytes not aligned to its width: byte 4 of "
      .. "shared memory", m[1])
  end)

  it("name an mbarrier by its byte", function()
    local m = run [[setp.ne.u32 %p1, %r0, 0;
      @%p1 bra L;
      mbarrier.init.shared::cta.b64 [%r2+16], 2;
      L: bar.sync 0;
      W: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2+16], 0;
      @!%p2 bra W;
      st.global.u32 [%rd5], 0;]]
    assert.is_truthy(m[1]:find("at mbarrier at byte 16 of shared memory for "
      .. "the end of phase 0", 1, true), m[1])
  end)

  it("show the word that a loop polls in vain", function()
    local m = run [[setp.ne.u32 %p1, %r0, 0;
      @%p1 bra L;
      st.shared.u32 [%r2+128], 70000;
      L: bar.sync 0;
      W: ld.acquire.cta.shared.u32 %r4, [%r2+128];
      setp.ne.u32 %p2, %r4, 5;
      @%p2 bra W;
      st.global.u32 [%rd5], %r4;]]
    assert.is_truthy(m[1]:find("byte 128 of shared memory, which is 70000", 1,
                               true), m[1])
  end)

  it("cover the schedules of a loop that polls", function()
    local x, y = cute.zeros({64}, cute.i32), cute.empty({64}, cute.i32)
    local k = cute.ptx(HEAD .. [[setp.ne.u32 %p1, %r0, 0;
      @%p1 bra L;
      st.shared.u32 [%r2+128], 0;
      L: bar.sync 0;
      setp.lt.u32 %p2, %r0, 32;
      @!%p2 bra W;
      st.global.u32 [%rd5], 7;
      @%p1 bra E;
      st.release.cta.shared.u32 [%r2+128], 1;
      bra E;
      W: ld.acquire.cta.shared.u32 %r4, [%r2+128];
      setp.eq.u32 %p3, %r4, 0;
      @%p3 bra W;
      st.global.u32 [%rd5], %r4;
      E: ret; } ]]):kernel "k"
    -- The check runs three times: an earlier version read beyond the end of an
    -- object, so its verdict varied.
    for _ = 1, 3 do
      local v = k(x, y):check {grid = 1, block = 64, device = "sim:sm_90a",
                               gpu = false}
      assert.are.equal("ok", v.verdict)
    end
  end)
end)

describe("reports on registers and lines of PTX", function()
  it("name a register that nothing wrote", function()
    local m, lines = run("add.u32 %r4, %r5, 1;\nst.global.u32 [%rd5], %r4;",
                         {lines = "ptx"})
    local _, from = HEAD:gsub("\n", "")
    assert.are.equal("register %r5 is used, but nothing wrote it", m[1])
    assert.are.equal(from + 2, lines[1])
    m = run [[setp.gt.u32 %p1, %r0, 40;
      @%p1 mov.u32 %r4, 1;
      st.global.u32 [%rd5], %r4;]]
    assert.are.equal("register %r4 is used, but nothing wrote it", m[1])
    m = run "@%p2 st.global.u32 [%rd5], 1;"
    assert.are.equal("register %p2 is used, but nothing wrote it", m[1])
    m = run [[setp.gt.u32 %p1, %r0, 40;
      @%p1 bra L;
      mov.u32 %r4, 1;
      L: add.u32 %r5, %r4, 1;
      @!%p1 bra E;
      st.global.u32 [%rd5], %r5;
      E: st.global.u32 [%rd5], 1;]]
    assert.are.equal("register %r4 is used, but nothing wrote it", m[1])
  end)

  it("do not name registers that have a value where they matter", function()
    for _, text in ipairs {
      [[setp.gt.u32 %p1, %r0, 40;
        @%p1 mov.u32 %r4, 1;
        @!%p1 mov.u32 %r4, 2;
        st.global.u32 [%rd5], %r4;]],
      [[setp.gt.u32 %p1, %r0, 40;
        @%p1 ld.global.u32 %r4, [%rd2];
        add.u32 %r5, %r4, 1;
        st.global.u32 [%rd5], 0;
        @%p1 st.global.u32 [%rd5], %r5;]],
      [[mov.u32 %r5, 0;
        L: setp.eq.u32 %p1, %r5, 0;
        @%p1 bra F;
        add.u32 %r6, %r4, 1;
        F: mov.u32 %r4, %r5;
        add.u32 %r5, %r5, 1;
        setp.lt.u32 %p2, %r5, 4;
        @%p2 bra L;
        st.global.u32 [%rd5], %r6;]]} do
      assert.are.same({}, (run(text)))
    end
  end)

  it("distinguish the defined bits of a register from the others", function()
    local half = "and.b32 %r4, %r5, 0xffff0000;\nor.b32 %r4, %r4, 7;\n"
    local put = "\nst.global.u32 [%rd5], %r6;"
    -- {instruction, an X with which all bits of the result are defined, an X
    -- with which some bits are undefined}
    for _, row in ipairs {
      {"and.b32 %r6, %r4, X;", "0xffff", "0x10000"},
      {"or.b32 %r6, %r4, X;", "0xffff0000", "0xfffe0000"},
      {"xor.b32 %r6, %r4, %r0; and.b32 %r6, %r6, X;", "0xffff", "0x10000"},
      {"not.b32 %r6, %r4; and.b32 %r6, %r6, X;", "0xffff", "0x10000"},
      {"shl.b32 %r6, %r4, X;", "16", "15"},
      {"shl.b32 %r6, %r4, X;", "32", "1"},
      {"shl.b32 %r6, %r4, X; shr.s32 %r6, %r6, 31;", "16", "15"},
      {"shr.u32 %r6, %r4, X; and.b32 %r6, %r6, 0xff;", "8", "9"},
      {"add.u32 %r6, %r4, %r0; and.b32 %r6, %r6, X;", "0xffff", "0x10000"},
      {"sub.u32 %r6, %r0, %r4; and.b32 %r6, %r6, X;", "0xffff", "-65536"},
      {"mul.lo.u32 %r6, %r4, 3; and.b32 %r6, %r6, X;", "0xffff", "0x80000000"},
      {"prmt.b32 %r6, %r4, 0, X;", "0x4410", "0x4412"},
      {"prmt.b32 %r6, %r4, 0, X;", "0x9910", "0xb910"},
      {"shf.l.wrap.b32 %r6, 0, %r4, X;", "16", "15"},
      {"bfi.b32 %r6, %r0, %r4, X, 16;", "16", "15"},
      {"setp.eq.u32 %p1, %r2, %r3; selp.b32 %r6, X, X, %p1;", "0", "%r4"},
    } do
      local function with(bits)
        return (run(half .. row[1]:gsub("X", {X = bits}) .. put))
      end
      assert.are.same({}, with(row[2]))
      assert.are.equal("register %r5 is used, but nothing wrote it",
                       with(row[3])[1])
    end
  end)

  it("have the line that writes a part of an output", function()
    local m, lines = run("st.global.u32 [%rd3], 0;", {lines = "ptx"})
    local left = table.concat(m, "\n"):match "63 of 64 elements of global.*"
    assert.is_truthy(left, m[1])
    local _, from = HEAD:gsub("\n", "")
    assert.are.equal(from + 1, lines[#lines])
  end)

  it("have the line of a .loc directly before inline asm", function()
    local _, lines = run [[.loc 1 10 0
      add.u32 %r3, %r3, 0;
      .loc 1 11 0
      // begin inline asm
      bar.sync 1, 128;
      // end inline asm
      st.global.u32 [%rd5], 0;]]
    assert.are.equal(11, lines[1])
  end)
end)

describe("lines of reports on PTX", function()
  it("name the user's line of a call that a library's file inlines",
    function()
      -- line 10 of user.cu calls line 20 of file 2, which calls line 30 of file
      -- 3, which has the access
      local store = [[.loc 1 10 3
        mov.u32 %%r3, 0;
        .loc 2 20 5, function_name $a, inlined_at 1 10 3
        mov.u32 %%r3, 0;
        .loc 3 30 7, function_name $b, inlined_at 2 20 5
        st.global.u32 [%%rd3+260], %%r0;
        ret;
        }
        .file 2 "%s"
        .file 3 "%s"
        .visible .entry other() {]]
      for _, row in ipairs {
        {"/usr/local/cuda/include/a.h", "/usr/local/cuda/include/b.h", 10},
        {"/data/nvidia/cu13/include/cuda/barrier",
         "/data/cuda-13/include/b.h", 10},
        {"mine.cuh", "/usr/include/b.h", 20},
        {"mine.py", "/v/site-packages/triton/language/standard.py", 20},
        {"mine.cu", "/v/cutlass/include/cute/atom/copy_atom.hpp", 20},
        {"/v/cutlass/include/cutlass/a.h", "/v/src/tl_templates/b.h", 10},
        {"/opt/x/include/a.h", "mine.cuh", 30},
        {"/data/include/a.h", "/data/include/b.h", 30}} do
        local _, lines = run(store:format(row[1], row[2]))
        assert.equal(row[3], lines[1], row[1])
      end
    end)
end)

describe("reports on registers of wgmma", function()
  local MMA = [[
    .reg .f32 %f<8>;
    .shared .align 1024 .b8 t[8192];
    mov.u32 %r4, t;
    shl.b32 %r5, %r0, 6;
    add.u32 %r5, %r5, %r4;
    mov.u32 %r6, 0;
    st.shared.v4.b32 [%r5], {%r6, %r6, %r6, %r6};
    st.shared.v4.b32 [%r5+16], {%r6, %r6, %r6, %r6};
    st.shared.v4.b32 [%r5+32], {%r6, %r6, %r6, %r6};
    st.shared.v4.b32 [%r5+48], {%r6, %r6, %r6, %r6};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %rd6, %r4;
    or.b64 %rd6, %rd6, 0x4000004000010000;
    setp.ne.u32 %p0, %r0, %r0;
    mov.f32 %f0, 0f00000000;
    .loc 1 60 0
    wgmma.fence.sync.aligned;
    .loc 1 61 0
    wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16
      {%f0, %f1, %f2, %f3}, %rd6, %rd6, %p0, 1, 1, 0, 0;
    .loc 1 62 0
    wgmma.commit_group.sync.aligned;
    .loc 1 63 0
    wgmma.wait_group.sync.aligned 0;
    .loc 1 64 0
    st.global.f32 [%rd5], %f0;
  ]]

  -- Checks the kernel without the lines that match a pattern. Returns the
  -- verdict.
  local function check(pattern)
    local text = HEAD .. MMA:gsub("[^\n]*" .. pattern .. "[^\n]*\n", "")
      .. 'ret;\n}\n.file 1 "user.cu"\n'
    local x, y = cute.zeros({64}, cute.f32), cute.empty({128}, cute.f32)
    return cute.ptx(text):kernel "k"(x, y):check {
      grid = 1, block = 128, device = "sim:sm_90a", gpu = false}
  end

  local function bug(pattern, line, other, text)
    local v = check(pattern)
    assert.equal("bug", v.verdict)
    assert.same({"in-flight", line, other},
      {v.fault.kind, v.fault.line, v.fault.line2 or 0})
    assert.matches(text, tostring(v), 1, true)
  end

  it("are verdicts of a check, with both lines", function()
    assert.equal("ok", check("nothing").verdict)
    local used = "user.cu:64: a register of an MMA is used while the MMA is "
      .. "still in flight [in-flight]\n      the MMA: user.cu:61\n"
    bug("wgmma%.wait_group", 64, 61, used)
    bug("wgmma%.commit_group", 64, 61, used)
    bug("wgmma%.fence", 61, 0, "user.cu:61: no wgmma.fence precedes this "
      .. "MMA [in-flight]\n      put wgmma.fence before")
  end)
end)
-- SPDX-License-Identifier: MIT
