-- Tests that no name that a user chooses can act as code in the emitted text.
local core = require "cute.core"
local cute = require "cute"
local support = require "spec.support"

-- Words of C, C++ and CUDA C, macros that NVRTC defines, functions and types
-- that NVRTC declares, and functions and types that the emitter writes.
local WORDS = {}
for word in ([[
alignas alignof and and_eq asm auto bitand bitor bool break case catch char
char8_t char16_t char32_t class compl concept const consteval constexpr
constinit const_cast continue co_await co_return co_yield decltype default
delete do double dynamic_cast else enum explicit export extern false float for
friend goto if inline int long mutable namespace new noexcept not not_eq
nullptr operator or or_eq private protected public register reinterpret_cast
requires restrict return short signed sizeof static static_assert static_cast
struct switch template this thread_local throw true try typedef typeid
typename typeof union unsigned using virtual void volatile wchar_t while xor
xor_eq _Alignas _Alignof _Atomic _Bool _BitInt _Complex _Decimal32 _Generic
_Imaginary _Noreturn _Pragma _Static_assert _Thread_local
__shared__ __device__ __global__ __host__ __constant__ __managed__
__grid_constant__
__launch_bounds__ __cluster_dims__ __maxnreg__ __restrict__ __forceinline__
__noinline__ __align__ __inline__ __attribute__ __asm__ __volatile__ __typeof__
__extension__ __builtin_assume __nv_pure__ __func__ __FUNCTION__
__PRETTY_FUNCTION__ __LINE__ __FILE__ __DATE__ __TIME__ __COUNTER__
__cplusplus __STDC__ __CUDA_ARCH__ __CUDACC__ __CUDACC_RTC__ __NVCC__
__CUDACC_VER_MAJOR__ __CUDA_ARCH_SPECIFIC__ __CUDA_ARCH_FAMILY_SPECIFIC__
__x86_64__ __linux__ __unix__ __LP64__ __SIZEOF_INT__ __CHAR_BIT__ linux unix
i386 NULL NOMINMAX CUDARTAPI CUDARTAPI_CDECL CUDART_DEVICE CUDART_VERSION
NV_IF_TARGET NV_IF_ELSE_TARGET NV_DISPATCH_TARGET NV_TARGET_MINIMUM_SM_INTEGER
threadIdx blockIdx blockDim gridDim warpSize clock clock64 clock_t size_t
ptrdiff_t dim3 std main assert printf malloc free memcpy memset va_list
va_start va_end va_arg va_copy uint2 uint4 int2 int4 float2 float4 double2
longlong2 ulonglong2 make_uint2 make_uint4 make_int4 make_float4 make_double2
make_longlong2 make_ulonglong2 make_long1 make_longlong4_32a char1 short2
min max umin umax llmin llmax ullmin ullmax abs labs llabs fabs fabsf fmin
fminf fmax fmaxf fma fmaf fmod fmodf sqrt sqrtf rsqrt rsqrtf rcbrt rcbrtf exp
expf exp2 exp2f exp10 exp10f log logf log2f log10f log1pf logb logbf sin sinf
sincos sincosf sinpi sincospif cos cosf cospi tan tanf tanh tanhf pow powf
atan2f cbrtf erfinv erfcinvf erfcx normcdf normcdfinvf norm norm3df rnorm4d
rhypotf hypot j0 j1f jn y0f yn cyl_bessel_i0f nan nanf nearbyintf nextafter
remainderf remquo scalbn scalblnf lgamma tgammaf fdim fdivide fdividef frexp
ldexpf ilogb modf lrint llrintf lround llroundf copysign cudaRoundZero
__popc __clz __ffs __brev __shfl_sync __ballot_sync __syncthreads __syncwarp
__threadfence __trap __expf __fdividef __float_as_int __float2int_rz __ldg
__cvta_generic_to_shared __nanosleep atomicAdd atomicMin atomicMax atomicAnd
atomicOr atomicXor atomicExch atomicCAS smem smem_addr f16_to_f32 f32_to_f16
pack_f16 floor_div floor_mod lua_mod lane_id cp_async_cg16 ld_bits _ __ ___
_0 __0 _x _X __x a__b x_0 x_1 v v_1 tid j k r s g arg]]):gmatch "%S+" do
  WORDS[#WORDS + 1] = word
end

local LUA = {}
for word in ([[and break do else elseif end false for function goto if in
  local nil not or repeat return then true until while]]):gmatch "%S+" do
  LUA[word] = true
end

local function names(first, last)
  local list = {}
  for i = first, math.min(last, #WORDS) do
    if not LUA[WORDS[i]] then list[#list + 1] = WORDS[i] end
  end
  return list
end

-- Reports whether NVRTC accepts the text; nil if NVRTC is not installed.
-- Kernels and shared memory also have names in PTX. To test these names, `arch`
-- is "sm_80", so that ptxas also reads the PTX.
local function compiles(text, arch)
  local out, why, log = core.jit_compile(text, arch or "compute_80",
                                         {"--fmad=false"}, true)
  if not out and why:find("[no-nvrtc]", 1, true) then return nil end
  assert.is_truthy(out, ("%s\n%s\n%s"):format(tostring(why), tostring(log),
    text))
  return true
end

-- Returns the emitted text of a kernel whose parameters and body are given as
-- Lua text.
local function text_of(params, body, tensors, name)
  local f = assert(load(("local cute = ...\nreturn function(%s)\n%s\nend")
    :format(table.concat(params, ", "), body)))(cute)
  return (cute.kernel(name or "k", f)(table.unpack(tensors))
    :trace {block = 32}:cuda "sm_80")
end

local function vectors(n, dtype)
  local list = {}
  for i = 1, n do list[i] = cute.zeros({256}, dtype) end
  return list
end

describe("words of the compiler as names of", function()
  for first = 1, #WORDS, 120 do
    local list = names(first, first + 119)
    local from = (", from '%s' on"):format(list[1])

    it("locals compile" .. from, function()
      -- The body also uses operations for which the emitter writes names of
      -- CUDA C, such as `sqrtf`.
      local body = {"local the_index = cute.arch.thread_idx()"}
      for i, word in ipairs(list) do
        body[#body + 1] = ("local %s = the_x[the_index + %d]"):format(word, i)
      end
      for i, word in ipairs(list) do
        body[#body + 1] = ("the_x[%d] = cute.max(%s, 3) // %s + %s")
          :format(i, word, word, word)
      end
      body[#body + 1] = [[
        local h, q = the_x[0]:to(cute.f16), the_x[1]:to(cute.f32)
        the_x[0] = cute.sqrt(cute.fma(h, h, h):to(cute.f32) % q):to(cute.i32)
        cute.arch.atomic_add(the_x.iterator, cute.arch.popc(the_x[1]))]]
      if not compiles(text_of({"the_x"}, table.concat(body, "\n"),
                              vectors(1, "i32"))) then
        pending "needs NVRTC"
      end
    end)

    it("tensors compile" .. from, function()
      local body = {"local the_index = cute.arch.thread_idx()"}
      for _, word in ipairs(list) do
        body[#body + 1] = ("%s[the_index] = %s[the_index + 1] * 2")
          :format(word, word)
      end
      if not compiles(text_of(list, table.concat(body, "\n"),
                              vectors(#list, "f32"))) then
        pending "needs NVRTC"
      end
    end)

    it("fragments and shared memory compile" .. from, function()
      local body = {[[
        local copy = cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS",
                                         cute.f32, 128)]]}
      for i, word in ipairs(list) do
        body[#body + 1] = i % 2 == 0
          and ("local %s = cute.make_rmem_tensor({4}, cute.f32)"):format(word)
          or ("local %s = cute.make_smem_tensor(cute.f32, "
            .. "cute.make_layout {4})"):format(word)
        body[#body + 1] = i % 2 == 0 and ("cute.autovec_copy(cute.local_tile("
          .. "the_x, {4}, {0}), %s) the_x[%d] = %s[1]"):format(word, i, word)
          or ("cute.copy(copy, cute.local_tile(the_x, {4}, {1}), %s)")
            :format(word)
      end
      local x = cute.zeros({256}, cute.f32)
      if not compiles(text_of({"the_x"}, table.concat(body, "\n"), {x}),
                      "sm_80") then
        pending "needs NVRTC"
      end
    end)
  end

  it("fields compile #long", function()
    for first = 1, #WORDS, 60 do
      local body = {"local t = {}"}
      for i = first, math.min(first + 59, #WORDS) do
        body[#body + 1] = ("t[%q] = cute.make_rmem_tensor({2}, cute.f32)")
          :format(WORDS[i])
      end
      for i = first, math.min(first + 59, #WORDS) do
        body[#body + 1] = ("t[%q]:fill(x[1]) x[%d] = t[%q][1]")
          :format(WORDS[i], i - first, WORDS[i])
      end
      if not compiles(text_of({"x"}, table.concat(body, "\n"),
                              vectors(1, "f32"))) then
        return pending "needs NVRTC"
      end
    end
  end)

  it("kernels compile #long", function()
    local texts, seen = {}, {}
    for _, word in ipairs(WORDS) do
      local text = text_of({"x"}, "x[0] = 1", vectors(1, "f32"), word)
      local name = text:match "\n([%w_]+)%("
      if not seen[name] then texts[#texts + 1] = text end
      seen[name] = true
    end
    if not compiles(table.concat(texts), "sm_80") then
      return pending "needs NVRTC"
    end
    assert.is_true(#texts > 200)
  end)
end)

describe("a name", function()
  it("may have any length", function()
    local long = ("a"):rep(3000)
    local text = text_of({"x"}, ("local %s = x[0] x[1] = %s * %s"):format(long,
      long, long), vectors(1, "f32"))
    assert.is_truthy(text:find(("const float %s = x[0];"):format(
      long:sub(1, 80)), 1, true), text)
  end)

  it("does not collide with the name of an address", function()
    local text = text_of({"sA_addr", "sA_1"}, [[
      local sA = cute.make_smem_tensor(cute.f32, cute.make_layout {4})
      cute.copy(cute.make_copy_atom("SM80_CP_ASYNC_CACHEALWAYS", cute.f32, 128),
                cute.local_tile(sA_addr, {4}, {0}), sA)
      sA_1[0] = 1]], vectors(2, "f32"))
    if not compiles(text) then pending "needs NVRTC" end
  end)
end)

describe("no code is injected by", function()
  local EVIL = {"=x\n#error pwned\n//", "=x\r#error pwned\r//", "@x\\",
    "@x??/", "=*/ #error pwned /*", "=x\v\f\0y", "=\xff\xfe\x80", "=\u{2028}x",
    "=\u{202e}x", "=" .. ("\u{e4}"):rep(200), "=%s%n%d", "#error pwned\n"}

  -- Returns the lines of the text that are code, without trailing comments.
  local function code(text)
    local lines = {}
    for line in text:gmatch "[^\n]*" do
      if not line:find "^%s*//" then lines[#lines + 1] = line end
    end
    return table.concat(lines, "\n")
  end

  it("the name of a chunk", function()
    local plain
    for i, chunk in ipairs {"=plain", table.unpack(EVIL)} do
      local f = assert(load("return function(x) x[0] = x[1]\n x[2] = 3 end",
                            chunk))()
      local text = cute.kernel("k", f)(cute.zeros({4}, cute.f32))
        :trace {block = 1}:cuda "sm_80"
      plain = plain or code(text)
      assert.equal(plain, code(text), ("%q"):format(chunk))
      assert.is_nil(text:find "[^\n\x20-\x7e]", ("%q"):format(chunk))
      if i > 1 and not compiles(text) then pending "needs NVRTC" end
    end
  end)

  it("what a kernel prints, and the text of an assertion #long", function()
    for _, chunk in ipairs(EVIL) do
      local what = chunk:gsub("%%", "%%%%"):gsub("%z", ""):gsub("[{}]", "")
      local text = text_of({"x"}, ("cute.printf(%q)\n"
        .. "cute.testing.assert_(x[0]:gt(0), %q)"):format(
        what .. '"??/\\', what),
        vectors(1, "f32"))
      local _, lines = code(text):gsub("\n", "\n")
      assert.is_true(lines < 8, text)
      assert.is_nil(text:find "[^\n\x20-\x7e]", text)
      if not compiles(text) then pending "needs NVRTC" end
    end
  end)

  it("the name of a field or an upvalue #long", function()
    for _, chunk in ipairs(EVIL) do
      local text = text_of({"x"}, ([[
        local t = {}
        t[%q] = cute.make_rmem_tensor({2}, cute.f32)
        for k, r in pairs(t) do r:fill(x[0]) x[1] = r[0] end]]):format(chunk),
        vectors(1, "f32"))
      assert.is_nil(text:find "pwned%s*\n", text)
      assert.is_nil(text:find "[^\n\x20-\x7e]", text)
      if not compiles(text) then pending "needs NVRTC" end
    end
  end)
end)

-- Reports use a kernel's name unchanged, even if it is a reserved word of C.
describe("a kernel's name", function()
  it("is the user's name in reports", function()
    local text = support.message(function()
      local f = cute.kernel("__popc", function(x)
        x[cute.arch.thread_idx() + 9] = 1
      end)
      f(cute.zeros({4}, "f32")):launch {grid = 1, block = 1, device = "sim"}
    end)
    assert.is_truthy(text:find("__popc", 1, true), text)
  end)
end)
-- SPDX-License-Identifier: MIT
