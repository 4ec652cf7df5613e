// Helper functions of the emitted text: blocks of prelude.cu, of which those
// that a kernel needs stand in front of it. And the names that it must not use.
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "atoms/atom.h"
#include "emit/inside.h"

typedef struct Block {
  const char *name, *text;  // of the function, and all of it
} Block;

static const Block blocks[H_COUNT] = {
#define HELPER(id, name, text) {name, text},
#include "emit/prelude.inc"
#undef HELPER
};

const char *helper_use(Emit *e, Helper h) {
  e->helper[h] = true;
  return blocks[h].name;
}

const char *helper_async(Emit *e, int64_t bits, unsigned flags, bool pred) {
  if (e->sm < 80)
    ctx_fail(e->cx, ERR_ARCH, "cp.async needs sm_80, the target is sm_%d",
             e->sm);
  if (bits != 32 && bits != 64 && bits != 128)
    ctx_fail(e->cx, ERR_ARG, "cp.async moves 32, 64 or 128 bits, not %" PRId64,
             bits);
  bool global = flags & CPF_GLOBAL, zfill = flags & CPF_ZFILL && pred;
  if (global && bits < 128)
    ctx_fail(e->cx, ERR_ARG, "cp.async.cg (CACHEGLOBAL) moves 128 bits, not %"
             PRId64, bits);
  static const Helper ca[2][3] = {  // by bits / 64
    {H_CP_ASYNC_CA4, H_CP_ASYNC_CA8, H_CP_ASYNC_CA16},
    {H_CP_ASYNC_CA4_ZFILL, H_CP_ASYNC_CA8_ZFILL, H_CP_ASYNC_CA16_ZFILL}};
  if (!global) return helper_use(e, ca[zfill][bits / 64]);
  return helper_use(e, zfill ? H_CP_ASYNC_CG16_ZFILL : H_CP_ASYNC_CG16);
}

// ---- the text of a block for one target ----

static bool starts(const char *s, const char *with) {
  return strncmp(s, with, strlen(with)) == 0;
}

// Does an #if hold for the target? -1: CUDA's compiler is to say, which knows
// what a chip or its family alone has; below sm_100 that is nothing.
static int holds(const char *line, int sm) {
  int arch;
  if (sscanf(line, "#if __CUDA_ARCH__ >= %d", &arch) == 1)
    return sm * 10 >= arch;
  return sm < 100 ? 0 : -1;
}

// Conditions do not lie in one another.
static const char *text_for(Emit *e, const char *s) {
  char *text = NEW(e->cx, char, strlen(s) + 1), *to = text;
  bool decided = false, keep = true;
  for (const char *end; *s; s = end) {
    end = strchr(s, '\n') + 1;
    if (starts(s, "#if")) {
      int h = holds(s, e->sm);
      decided = h >= 0;
      keep = h != 0;
    }
    if (keep && !(decided && *s == '#'))
      while (s < end) *to++ = *s++;
    else if (starts(s, "#else"))
      keep = !keep;
    else if (starts(s, "#endif"))
      keep = true;
  }
  *to = 0;
  return text;
}

static bool in_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

// Notes what other helpers the text of one calls.
static void note_calls(Emit *e, const char *text, const char *own) {
  for (const char *p = text; (p = strchr(p, '(')); p++) {
    const char *from = p;
    while (from > text && in_name(from[-1])) from--;
    size_t n = (size_t)(p - from);
    for (int h = 0; h < H_COUNT; h++) {
      const char *name = blocks[h].name;
      if (strlen(name) == n && memcmp(name, from, n) == 0 &&
          strcmp(name, own) != 0)
        e->helper[h] = true;
    }
  }
}

static void print_blocks(Emit *e) {
  const char *text[H_COUNT] = {0};
  for (int h = H_COUNT; h-- > 0;) {  // what one calls lies above it
    if (!e->helper[h]) continue;
    text[h] = text_for(e, blocks[h].text);
    note_calls(e, text[h], blocks[h].name);
  }
  for (int h = 0; h < H_COUNT; h++)
    if (text[h]) expr_puts(e, text[h]);
}

// ---- all ----

static const char *const reserved[] = {
  "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor",
  "bool", "break", "case", "catch", "char", "class", "compl", "concept",
  "const", "consteval", "constexpr", "constinit", "const_cast", "continue",
  "co_await", "co_return", "co_yield", "decltype", "default", "delete", "do",
  "double", "dynamic_cast", "else", "enum", "explicit", "export", "extern",
  "false", "float", "for", "friend", "goto", "if", "inline", "int", "long",
  "mutable", "namespace", "new", "noexcept", "not", "not_eq", "nullptr",
  "operator", "or", "or_eq", "private", "protected", "public", "register",
  "reinterpret_cast", "requires", "return", "short", "signed", "sizeof",
  "static", "static_assert", "static_cast", "struct", "switch", "template",
  "this", "thread_local", "throw", "true", "try", "typedef", "typeid",
  "typename", "union", "unsigned", "using", "virtual", "void", "volatile",
  "wchar_t", "while", "xor", "xor_eq", "restrict", "threadIdx", "blockIdx",
  "blockDim", "gridDim", "warpSize", "min", "max", "abs", "llabs", "printf",
  "clock", "NULL", "smem", "smem_addr", "uint2", "uint4", "double2",
  "longlong2", "ulonglong2", "make_int2", "make_int4", "make_float2",
  "make_float4", "make_longlong2", "make_ulonglong2", "NV_IF_TARGET",
  "NV_IF_ELSE_TARGET", "NV_DISPATCH_TARGET", "NV_TARGET_MINIMUM_SM_INTEGER",
  "NV_TARGET_MINIMUM_SM_SELECTOR", "CUDARTAPI", "CUDARTAPI_CDECL",
  "CUDART_DEVICE", "CUDART_VERSION", "NOMINMAX", "char8_t", "char16_t",
  "char32_t", "va_start", "va_end", "va_arg", "va_copy", "va_list",
  "size_t", "fminf", "fmaxf", "fmin", "fmax", "fmaf", "fma", "fabs", "fabsf",
  "fmod", "fmodf", "unix", "linux", "assert", "make_uint2", "make_uint4",
  "make_double2", "char1", "char2", "char3", "char4", "short2", "int1",
  "int2", "int3", "int4", "float1", "float2", "float3", "float4", "dim3",
  "std", "main", "atomicAdd", "atomicMin", "atomicMax", "atomicAnd",
  "atomicOr", "atomicXor", "atomicExch", "atomicCAS"};

void helper_reserve(Emit *e) {
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
    expr_reserve(e, reserved[k]);
  for (int h = 0; h < H_COUNT; h++) expr_reserve(e, blocks[h].name);
  for (int f = 0; f < MF_COUNT; f++) {
    const char *m = math_name((MathFn)f);
    if (strchr(m, '.')) continue;
    expr_reserve(e, m);
    expr_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%sf", m));
  }
  ptx_reserve(e);
  for (size_t k = 0; k < e->natom; k++) {
    const char *name = atomtext_name(e, e->atom[k].mma, e->atom[k].id);
    expr_reserve(e, name);
    expr_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%s_dabc", name));
  }
}

void helper_print(Emit *e) {
  print_blocks(e);
  ptx_print(e);
  for (size_t k = 0; k < e->natom; k++) atomtext_print(e, &e->atom[k]);
}
