-- Tests calls and indirect branches in PTX: parameters in registers and in
-- .param memory, guards, printf, assertions, and calls that are rejected.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

local HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
local ENTRY = [[
.visible .entry k(.param .u64 pin, .param .u64 pout) {
.reg .b64 in, out, u, a, b;
.reg .b32 t, n, x, y;
.reg .b16 h;
.reg .f64 f;
.reg .pred p;
ld.param.u64 in, [pin]; ld.param.u64 out, [pout];
mov.u32 t, %tid.x;
mul.wide.u32 u, t, 4; add.s64 in, in, u; add.s64 out, out, u;
ld.global.b32 n, [in];
]]

local function text(functions, body)
  return HEAD .. functions .. ENTRY .. body .. "\nret;\n}\n"
end

-- Runs `body` in 32 threads. In thread k, n is values(k). Returns a function
-- that returns the result of a thread.
local function run(functions, body, values)
  local x, y = cute.zeros({32}, cute.i32), cute.zeros({32}, cute.i32)
  for k = 0, 31 do x[k] = values(k) end
  cute.ptx(text(functions, body)):kernel "k"(x, y):launch {grid = 1, block = 32,
    device = "sim:sm_90a"}
  return function(k) return y[k] end
end

local function each(got, want)
  for k = 0, 31 do assert.equal(want(k), got(k)) end
end

local function own(k) return k - 7 end

local function message(functions, body)
  return (support.message(function() run(functions, body, own) end))
end

local ADD = [[
.func (.param .b32 r) add(.param .b32 a, .param .b32 b) {
.reg .b32 x, y;
ld.param.b32 x, [a]; ld.param.b32 y, [b];
add.s32 x, x, y;
st.param.b32 [r], x;
ret;
}
]]

describe("a call in PTX", function()
  it("passes registers and numbers", function()
    each(run(ADD, "call (x), add, (n, 5); st.global.b32 [out], x;", own),
      function(k) return k - 2 end)
  end)

  it("passes .param variables", function()
    each(run(ADD, [[
      { .param .b32 a; .param .b32 b; .param .b32 r;
        st.param.b32 [a], n; st.param.b32 [b], -3;
        call.uni (r), add, (a, b);
        ld.param.b32 x, [r]; }
      st.global.b32 [out], x;]], own), function(k) return k - 10 end)
  end)

  it("passes parameters that are registers", function()
    each(run([[
      .func (.reg .b32 r) twice(.reg .b32 a) { add.s32 r, a, a; ret; }
      ]], "call (x), twice, (n); call (y), twice, (x); "
      .. "st.global.b32 [out], y;", own), function(k) return 4 * (k - 7) end)
  end)

  it("passes and returns 128 bits", function()
    -- A PTX function that returns the four words of its parameter in reverse
    -- order.
    local swap = [[
.func (.param .b128 r) swap(%s) {
.reg .b128 q; .reg .b64 d0, d1; .reg .b32 w<4>;
%s
mov.b128 {d0, d1}, q;
mov.b64 {w0, w1}, d0; mov.b64 {w2, w3}, d1;
mov.b64 d0, {w3, w2}; mov.b64 d1, {w1, w0};
mov.b128 q, {d0, d1};
st.param.b128 [r], q;
ret;
}
]]
    local body = [[
.reg .b128 q; .reg .b32 w<4>;
mov.b32 x, 1000; mov.b32 y, 2000;
mov.b64 a, {n, x}; mov.b64 b, {y, t}; mov.b128 q, {a, b};
{ .param .b128 v, w; %s ld.param.b128 q, [w]; }
mov.b128 {a, b}, q; mov.b64 {w0, w1}, a; mov.b64 {w2, w3}, b;
mad.lo.s32 x, w1, 3, w0; mad.lo.s32 x, w2, 7, x; mad.lo.s32 x, w3, 11, x;
st.global.b32 [out], x;]]
    for _, way in ipairs {
      {".param .b128 p", "ld.param.b128 q, [p];",
        "st.param.b128 [v], q; call.uni (w), swap, (v);"},
      {".param .b128 p", "ld.param.b128 q, [p];",
        "call.uni (w), swap, (q);"},
      {".reg .b128 p", "mov.b128 q, p;", "call.uni (w), swap, (q);"}} do
      each(run(swap:format(way[1], way[2]), body:format(way[3]), own),
        function(k) return k + 3 * 2000 + 7 * 1000 + 11 * own(k) end)
    end
  end)

  it("passes bytes, and reads them in other widths", function()
    each(run([[
      .func (.param .align 4 .b8 r[8]) swap(.param .align 4 .b8 a[8]) {
      .reg .b32 x, y;
      ld.param.b32 x, [a]; ld.param.b32 y, [a+4];
      st.param.v2.b32 [r], {y, x};
      ret;
      }]], [[
      { .param .align 4 .b8 a[8]; .param .align 4 .b8 r[8];
        mov.b32 y, 0x01020304;
        st.param.b32 [a+0], n; st.param.b32 [a+4], y;
        call (r), swap, (a);
        ld.param.b8 h, [r+1]; ld.param.b32 x, [r+4]; }
      cvt.u32.u16 y, h; mad.lo.s32 x, x, 10, y;
      st.global.b32 [out], x;]], own),
      function(k) return (k - 7) * 10 + 3 end)
  end)

  it("runs for the threads that its guard admits", function()
    each(run(ADD, [[
      setp.lt.s32 p, n, 0; mov.b32 x, 100;
      @p call (x), add, (n, 50);
      @!p call (x), add, (x, n);
      st.global.b32 [out], x;]], own),
      function(k) return k < 7 and k + 43 or k + 93 end)
  end)

end)

describe("the text of a called function in PTX", function()
  it("returns from the middle of the function, in a loop", function()
    each(run([[
      .func (.param .b32 r) steps(.param .b32 a) {
      .reg .b32 x, i; .reg .pred p, q;
      ld.param.b32 x, [a]; mov.b32 i, 0;
      L: setp.le.s32 p, x, 0;
      @p st.param.b32 [r], i;
      @p ret;
      add.s32 i, i, 1; sub.s32 x, x, 3;
      setp.gt.s32 q, i, 5;
      @!q bra L;
      st.param.b32 [r], -1;
      ret;
      }]], [[
      mov.b32 y, 0;
      M: call (x), steps, (n);
      add.s32 y, y, x; add.s32 n, n, 9;
      setp.lt.s32 p, n, 12;
      @p bra M;
      st.global.b32 [out], y;]], own), function(k)
      local n, y = k - 7, 0
      repeat
        local i = n <= 0 and 0 or (n + 2) // 3
        y, n = y + (i > 5 and -1 or i), n + 9
      until n >= 12
      return y
    end)
  end)

  it("gives each call its own local memory", function()
    each(run([[
      .func (.param .b32 r) last(.param .b32 a) {
      .local .b32 m[2]; .reg .b32 x;
      ld.param.b32 x, [a];
      st.local.b32 [m+4], x; ld.local.b32 x, [m+4];
      st.param.b32 [r], x;
      }]], "call (x), last, (n); call (y), last, (3); mad.lo.s32 x, y, 100, x;"
      .. "st.global.b32 [out], x;", own), function(k) return k + 293 end)
  end)

  it("keeps the tensor of a pointer that it passes", function()
    local functions = [[
      .func get(.param .b64 p, .param .b32 i) {
      .reg .b64 a, b; .reg .b32 x;
      ld.param.b64 a, [p]; ld.param.b32 x, [i];
      mul.wide.s32 b, x, 4; add.s64 a, a, b;
      st.global.b32 [a], x;
      ret;
      }
      ]]
    each(run(functions, "call get, (out, 0);", own), function() return 0 end)
    assert.matches("outside global tensor 'pout': byte 128 ",
      message(functions, "call get, (out, 1);"), 1, true)
  end)

  it("reads a parameter at an address that the function computes", function()
    each(run([[
      .func (.param .b32 r) pick(.param .align 4 .b8 a[16], .param .b32 k) {
      .reg .b64 p, u; .reg .b32 x, i;
      mov.b64 p, a; ld.param.b32 i, [k];
      mul.wide.u32 u, i, 4; add.s64 p, p, u;
      ld.param.b32 x, [p]; add.s32 x, x, 1; st.param.b32 [p], x;
      ld.param.b32 i, [a+8]; mad.lo.s32 x, i, 100, x;
      st.param.b32 [r], x;
      }]], [[
      { .param .align 4 .b8 a[16];
        mov.b32 x, 3; st.param.v4.b32 [a], {n, t, x, 7};
        and.b32 y, t, 3;
        call (x), pick, (a, y); }
      st.global.b32 [out], x;]], own), function(k)
      local v = ({k - 7, k, 3, 7})[k % 4 + 1] + 1
      return v + 100 * (k % 4 == 2 and v or 3)
    end)
  end)

  it("shares a function's shared memory among calls", function()
    each(run([[
      .func (.param .b32 r) turn(.param .b32 a, .param .b32 i) {
      .shared .b32 s[32]; .reg .b32 x, t, at;
      ld.param.b32 x, [a]; ld.param.b32 t, [i];
      mov.b32 at, s; mad.lo.s32 at, t, 4, at;
      st.shared.b32 [at], x;
      bar.sync 0;
      xor.b32 t, t, 31; mov.b32 at, s; mad.lo.s32 at, t, 4, at;
      ld.shared.b32 x, [at];
      bar.sync 0;
      st.param.b32 [r], x;
      }]], "call (x), turn, (n, t); call (y), turn, (x, t); "
      .. "mad.lo.s32 x, x, 100, y; st.global.b32 [out], x;", own),
      function(k) return (31 - k - 7) * 100 + k - 7 end)
  end)

end)

describe("a call through a register", function()
  local PROTOTYPE = "P: .callprototype (.param .b32 _) _ (.param .b32 _, "
    .. ".param .b32 _);\n"
  local TWO = ADD .. ADD:gsub("add%(", "sub("):gsub("add%.s32", "sub.s32") .. [[
.func (.param .b32 r) wide(.param .b64 a, .param .b32 b) {
.reg .b32 x; ld.param.b32 x, [b]; st.param.b32 [r], x; ret;
}
]]
  local TABLE = TWO .. ".global .u64 list[3] = {add, sub, wide};\n"
  local PICK = PROTOTYPE .. [[
    mov.b64 b, list; and.b32 x, t, 1; mul.wide.u32 a, x, 8; add.s64 b, b, a;
    ld.global.b64 a, [b]; ]]

  it("calls the function whose address the register holds", function()
    each(run(TABLE, PICK .. "call (x), a, (n, 3), P; st.global.b32 [out], x;",
             own), function(k) return k - 7 + (k % 2 == 0 and 3 or -3) end)
    each(run(TWO, PROTOTYPE .. [[
      setp.lt.s32 p, n, 5; mov.b64 a, add; mov.b64 b, sub;
      selp.b64 a, a, b, p;
      { .param .b32 v, w, r; st.param.b32 [v], n; st.param.b32 [w], t;
        call.uni (r), a, (v, w), P; ld.param.b32 x, [r]; }
      st.global.b32 [out], x;]], own), function(k)
        return k - 7 < 5 and 2 * k - 7 or -7
      end)
  end)

  it("runs for the threads that its guard admits", function()
    each(run(TABLE, PICK .. [[
      mov.b32 x, 100; setp.gt.s32 p, n, 0; @p call (x), a, (n, 3), P;
      st.global.b32 [out], x;]], own), function(k)
        return k <= 7 and 100 or k - 7 + (k % 2 == 0 and 3 or -3)
      end)
  end)

  it("is reported where the address is that of no such function", function()
    local said = "the register of a call does not hold the address of a "
      .. "function"
    assert.matches(said, message(TABLE, PROTOTYPE .. [[
      mov.b64 b, list; ld.global.b64 a, [b+16]; call (x), a, (n, 3), P;]]), 1,
      true)
    assert.matches(said, message(TABLE, PROTOTYPE .. [[
      mov.b64 a, list; call (x), a, (n, 3), P;]]), 1, true)
    -- a function that calls itself through a register
    assert.matches(said, message([[
.func self(.param .b32 n) {
.reg .b64 a; .reg .b32 n0;
Q: .callprototype _ (.param .b32 _);
mov.b64 a, self; ld.param.b32 n0, [n]; call a, (n0), Q;
}
.func other(.param .b32 n) { ret; }
.global .u64 o = other;
]], "call self, (n);"), 1, true)
  end)

  it("keeps a launch with a table of functions off the GPU", function()
    local m = cute.ptx(text(TABLE, PICK .. "call (x), a, (n, 3), P;"))
    -- A launch on the GPU is rejected if a variable contains addresses. This
    -- list shows those of the variable.
    assert.same({{0, "add", 0}, {8, "sub", 0}, {16, "wide", 0}},
                core.ptx_variables(m.module, "k")[1].addresses)
  end)

  it("calls virtual functions of CUDA C", function()
    if not core.jit_compile("", "compute_80") then
      pending "needs NVRTC"
      return
    end
    local m = cute.cuda [[
struct Shape { __device__ virtual float area(float k) const = 0; };
struct Square : Shape {
  float s;
  __device__ Square(float s) : s(s) {}
  __device__ float area(float k) const override { return k * s * s; }
};
struct Disk : Shape {
  float r;
  __device__ Disk(float r) : r(r) {}
  __device__ float area(float k) const override { return 3 * k * r * r; }
};
extern "C" __global__ void areas(const int *x, float *y) {
  int i = threadIdx.x;
  Square a(x[i]);
  Disk b(x[i]);
  const Shape *s = x[i] & 1 ? (const Shape *)&a : &b;
  y[i] = s->area(2);
}
]]
    local x, y = cute.zeros({32}, cute.i32), cute.zeros({32}, cute.f32)
    for i = 0, 31 do x[i] = i * 7 % 11 end
    local k = m:kernel "areas"
    k(x, y):launch {grid = 1, block = 32}
    for i = 0, 31 do
      assert.equal((x[i] % 2 == 1 and 2 or 6) * x[i] ^ 2, y[i])
    end
    local v = k(x, y):check {grid = 1, block = 32, gpu = false}
    assert.equal("ok", v.verdict)
  end)
end)

describe("a report on a call in PTX", function()
  it("names the line of a fault inside the function", function()
    local t = text([[
      .func put(.param .b64 p) {
      .reg .b64 a;
      ld.param.b64 a, [p];
      st.global.b32 [a+4096], 1;
      }
      ]], "call put, (out);")
    local x = cute.zeros({32}, cute.i32)
    assert.matches("ptx:7: ", support.message(function()
      cute.ptx(t):kernel "k"(x, x):launch {grid = 1, block = 32,
        device = "sim:sm_90a"}
    end), 1, true)
  end)

  it("is rejected if there are too many calls", function()
    local functions = {".func g0() { ret; }\n"}
    for i = 1, 40 do
      functions[i + 1] = (".func g%d() { call g%d; call g%d; }\n"):format(i,
        i - 1, i - 1)
    end
    assert.matches("inlining the called functions makes more than 65536 calls",
      message(table.concat(functions), "call g40;"), 1, true)
  end)

  it("is rejected if it cannot be replaced", function()
    local loop = [[
      .func one();
      .func two() { call one; }
      .func one() { call two; }
      ]]
    for _, case in ipairs {
      {loop, "call one;", "a call of one inside one: recursion is not "
        .. "modelled"},
      {"", "mov.b64 a, 0; call a, (n);", "a call through a register: no "
        .. "function whose address the module takes has these parameters"},
      {ADD, "mov.b64 a, add; call a, (n);", "no function whose address the "
        .. "module takes has these parameters"},
      {".extern .func one();\n", "call one;", "a call of one: the module "
        .. "has no such function with a body"},
      {".extern .func (.param .b64 r) malloc(.param .b64 n);\n",
        "call (a), malloc, (u);", "a call of malloc: the heap of the "
        .. "device is not modelled"},
      {ADD, "call (x), add, (n);", "function add has 2 parameters, but the "
        .. "call has 1"},
      {ADD, "call add, (n, n);", "function add has 1 results, but the call "
        .. "has 0"},
      {ADD, "{ .param .b8 a; call (x), add, (a, n); }",
        "a has 1 bytes, but parameter a of add needs 4"},
      {ADD, "call (x), add, ([in], n);",
        "parameter a of add takes a .param variable"}} do
      assert.matches(case[3], message(case[1], case[2]), 1, true)
    end
  end)

  it("of an entry is rejected, after the entry ran, too", function()
    local m = cute.ptx(HEAD .. [[
      .func none() { ret; }
      .visible .entry first() { call none; ret; }
      .visible .entry second() { call first; ret; }]])
    m:kernel "first" ():launch {grid = 1, block = 1}
    assert.error_matches(function() m:kernel "second" () end,
      "a call of first: the module has no such function with a body", 1, true)
  end)
end)

describe("a structure that a kernel takes", function()
  local STRUCT = HEAD .. [[
.visible .entry k(.param .u64 pout, .param .align 8 .b8 s[24]) {
.reg .b64 out, p, q, u, v; .reg .b32 t, x, y; .reg .b16 h;
ld.param.u64 out, [pout];
mov.u32 t, %tid.x; mul.wide.u32 u, t, 4; add.s64 out, out, u;
]]
  local BYTES = ("<i4i4i4i4i8"):pack(11, 12, 13, 14, 1 << 40 | 5)

  local function launch(body, value)
    local y = cute.zeros({4}, cute.i32)
    cute.ptx(STRUCT .. body .. "st.global.b32 [out], x; ret;\n}\n"):kernel "k"(
      y, value):launch {grid = 1, block = 4, device = "sim:sm_90a"}
    return {y[0], y[1], y[2], y[3]}
  end

  it("is read at computed addresses", function()
    local body = [[
      mov.b64 p, s; add.s64 p, p, u; ld.param.b32 x, [p];
      ld.param.b64 v, [s+16]; cvt.u32.u64 y, v; add.s32 x, x, y;
    ]]
    assert.same({16, 17, 18, 19}, launch(body, BYTES))
    assert.same({26, 27, 28, 29}, launch(body, {[0] = {21, "i32"},
      [4] = {22, "i32"}, [8] = {23, "i32"}, [12] = {24, "i32"},
      [16] = {5, "i64"}}))
  end)

  it("is read at generic addresses, in other widths", function()
    assert.same({11, 13, 0, 14}, launch([[
      .reg .pred e;
      mov.b64 p, s; cvta.param.u64 q, p; mul.wide.u32 v, t, 4;
      add.s64 q, q, v; setp.eq.u32 e, t, 2; @e add.s64 q, q, 1;
      setp.eq.u32 e, t, 1; @e add.s64 q, q, 4;
      ld.u8 h, [q]; cvt.u32.u16 x, h;
    ]], BYTES))
  end)

  it("keeps its pointers", function()
    local x = cute.zeros({4}, cute.i32)
    for i = 0, 3 do x[i] = 7 * i end
    assert.same({0, 7, 14, 21}, launch([[
      mov.b64 p, s; and.b64 v, u, 0; add.s64 p, p, v;
      ld.param.b64 q, [p+8]; add.s64 q, q, u; ld.global.b32 x, [q];
    ]], {[0] = {3, "i32"}, [8] = x}))
  end)

  it("reports bytes that nothing passed", function()
    assert.matches("read of uninitialised memory", support.message(function()
      launch("mov.b64 p, s; add.s64 p, p, u; ld.param.b32 x, [p];",
        {[0] = {1, "i32"}, [4] = {2, "i32"}})
    end), 1, true)
  end)
end)

describe("brx.idx", function()
  local BODY = [[
    list: .branchtargets A, B, C, A, D;
    add.s32 x, n, 7; setp.gt.u32 p, x, LAST; @p bra D;
    brx.idx x, list;
    A: mov.b32 y, 10; bra E;
    B: mov.b32 y, 11; bra C;
    D: mov.b32 y, 13; bra E;
    C: add.s32 y, x, 12;
    E: st.global.b32 [out], y;]]

  it("branches by an index", function()
    each(run("", (BODY:gsub("LAST", "4")), own), function(k)
      return k > 4 and 13 or ({10, k + 12, k + 12, 10, 13})[k + 1]
    end)
  end)

  it("reports an index without a target", function()
    assert.matches("the index of brx.idx has no target",
      message("", (BODY:gsub("LAST", "7"))), 1, true)
  end)

  it("needs a list of labels", function()
    for _, case in ipairs {
      {"brx.idx n, list;", "no .branchtargets 'list' is declared"},
      {"list: .branchtargets A; brx.idx n, list;", "no label 'A' is in scope"},
      {"A: list: .branchtargets A; brx.idx n;", "takes an index and a list"}}
    do
      assert.matches(case[2], message("", case[1]), 1, true)
    end
  end)
end)

describe("printf in CUDA C", function()
  local module, why = core.jit_compile("", "compute_80")
  if not module and tostring(why):find "no%-nvrtc" then
    pending "needs NVRTC"
    return
  end

  -- Returns what the statements print when one thread runs them.
  local function printed(statements)
    local path = os.tmpname()
    support.write(path, ([[
      local cute = require "cute"
      local k = cute.cuda(%q):kernel "k"
      local x = cute.zeros({4}, cute.i32)
      for i = 0, 3 do x[i] = 10 * i - 5 end
      k(x):launch {grid = 1, block = 1, device = "sim:sm_90a"}]]):format(
      "__device__ __noinline__ void say(const char *s, int n) {\n"
      .. '  printf("say %s %d\\n", s, n);\n}\n'
      .. 'extern "C" __global__ void k(const int *x) {\n' .. statements
      .. "\n}\n"))
    local out, err = support.exec {support.program, path}
    os.remove(path)
    return out .. err
  end

  it("prints numbers of all kinds", function()
    assert.equal(("%d|%5d|%-5d|%u|%x|%X|%o|%c|%%\n"):format(-5, 5, 15, 25, 255,
      255, 8, 65), printed [[printf("%d|%5d|%-5d|%u|%x|%X|%o|%c|%%\n", x[0],
      x[1], x[2], x[3], 255, 255, 8, 65);]])
    assert.equal(("%f|%.3f|%e|%g|%10.2f|%a\n"):format(-5, 5, 15, 25.5, 1.25,
      0.5), printed [[printf("%f|%.3f|%e|%g|%10.2f|%a\n", (float)x[0],
      (double)x[1], (float)x[2], x[3] + 0.5f, 1.25, 0.5);]])
    assert.equal("-5000000000 4294967295 18446744073709551615 7\n",
      printed [[printf("%lld %u %llu %d\n", x[0] * 1000000000ll,
      0xffffffffu, 0xffffffffffffffffull, 7);]])
  end)

  it("prints texts and plain formats", function()
    assert.equal("plain\n", printed [[printf("plain\n");]])
    assert.equal("a 50% -5|  right|le\n", printed
      [[printf("a %s %d|%7s|%.2s\n", "50%", x[0], "right", "left");]])
    assert.equal("say one -5\nsay two 5\n",
      printed [[say("one", x[0]); say("two", x[1]);]])
  end)

  it("returns the number of values", function()
    assert.equal("x\n1\n", printed [[int r = printf("x\n"); printf("%d\n", r >
      -1);]])
  end)

  it("prints texts that a condition chooses", function()
    assert.equal("no\nyes 5 yes!\n", printed [[
      for (int i = 0; i < 2; i++)
        printf(x[i] > 0 ? "%s %d %s!\n" : "%s\n", x[i] > 0 ? "yes" : "no",
          x[i], x[i] > 0 ? "yes" : "no");]])
  end)

  it("rejects formats that only a run knows", function()
    assert.matches("printf: the format must be a constant (k.cu:6)",
      printed [[const char *s[3] = {"a", "b", "c"};
      printf(s[x[1] % 3]);]], 1, true)
    assert.matches("printf: the string for %s must be a constant (k.cu:6)",
      printed [[const char *s[3] = {"a", "b", "c"};
      printf("%s %s", s[x[1] % 3], s[x[2] & 1]);]], 1, true)
    assert.matches("printf: '%*' is not modelled",
      printed [[printf("%*d", 3, x[0]);]], 1, true)
  end)

  it("reports an assertion with its text and line", function()
    local k = cute.cuda([[

extern "C" __global__ void k(const int *x) {
  assert(x[threadIdx.x] < 5);
}]]):kernel "k"
    local x = cute.zeros({32}, cute.i32)
    x[9] = 5
    local report = support.message(function()
      k(x):launch {grid = 1, block = 32, device = "sim:sm_90a"}
    end)
    assert.matches("k.cu:3: assertion failed: x[threadIdx.x] < 5", report,
      1, true)
    assert.matches("thread (9,0,0)", report, 1, true)
  end)
end)
-- SPDX-License-Identifier: MIT
