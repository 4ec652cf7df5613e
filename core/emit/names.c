// Converts the script's names to identifiers, and creates names that are not in
// use and not reserved.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "emit/inside.h"

// ---- the names of a text ----

typedef struct NameCell {
  const char *s;
  uint32_t next;  // number to append if the name is requested once more
} NameCell;

static size_t name_slot(const Emit *e, const char *s) {
  size_t mask = e->namecap - 1;
  size_t i = base_hash(HASH_INIT, s, strlen(s)) & mask;
  while (e->names[i].s && strcmp(e->names[i].s, s) != 0) i = (i + 1) & mask;
  return i;
}

void names_reserve(Emit *e, const char *s) {
  if (e->nnames * 2 >= e->namecap) {
    NameCell *old = e->names;
    size_t cap = e->namecap;
    e->namecap = cap ? cap * 2 : 512;
    e->names =
      arena_zero(e->cx, &e->cx->scratch, e->namecap * sizeof *e->names);
    for (size_t i = 0; i < cap; i++)
      if (old[i].s) e->names[name_slot(e, old[i].s)] = old[i];
  }
  NameCell *c = &e->names[name_slot(e, s)];
  if (!c->s) e->nnames++;
  if (!c->s) *c = (NameCell){s, 1};
}

enum { NAME_MAX_LENGTH = 80 };

// Converts a name such as t.x[1] to t_x_1. C++ reserves names that start with
// `__`, or with `_` and a capital letter.
const char *names_identifier(Emit *e, const char *want) {
  char *s = arena_printf(e->cx, &e->cx->scratch, "_%.*s", NAME_MAX_LENGTH,
                         want);
  char *end = s;
  for (const char *p = s; *p; p++) {
    if (*p == ']') continue;
    bool ok = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
              (*p >= '0' && *p <= '9') || *p == '_';
    *end++ = ok ? *p : '_';
  }
  *end = '\0';
  char *name = s + 1;
  if (name[0] == '_' && (name[1] == '_' || (name[1] >= 'A' && name[1] <= 'Z')))
    name += strspn(name, "_");
  if (!name[strspn(name, "_")]) return strcpy(s, "v");
  if (*name < '0' || *name > '9') return name;
  *--name = '_';
  return name;
}

const char *names_new(Emit *e, const char *want) {
  const char *base = names_identifier(e, want), *s = base;
  while (e->names[name_slot(e, s)].s) {
    NameCell *c = &e->names[name_slot(e, base)];
    s = arena_printf(e->cx, &e->cx->scratch, "%s_%u", base, c->next++);
  }
  names_reserve(e, s);
  return s;
}

const char *names_new_and(Emit *e, const char *want, const char *suffix) {
  for (;;) {
    const char *s = names_new(e, want);
    char *more = arena_printf(e->cx, &e->cx->scratch, "%s%s", s, suffix);
    if (e->names[name_slot(e, more)].s) continue;
    names_reserve(e, more);
    return s;
  }
}

static bool names_free(Emit *e, const char *base, int64_t n) {
  for (int64_t k = 0; k < n; k++) {
    const char *s =
      arena_printf(e->cx, &e->cx->scratch, "%s_%" PRId64, base, k);
    if (e->names[name_slot(e, s)].s) return false;
  }
  return true;
}

const char *names_new_run(Emit *e, const char *want, int64_t n) {
  const char *base = names_new(e, want);
  while (!names_free(e, base, n)) base = names_new(e, want);
  for (int64_t k = 0; k < n; k++)
    names_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%s_%" PRId64, base,
                                  k));
  return base;
}

// ---- reserved words of C++ and CUDA ----

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

void names_reserve_words(Emit *e) {
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
    names_reserve(e, reserved[k]);
  for (int f = 0; f < MF_COUNT; f++) {
    const char *m = math_name((MathFn)f);
    if (strchr(m, '.')) continue;
    names_reserve(e, m);
    names_reserve(e, arena_printf(e->cx, &e->cx->scratch, "%sf", m));
  }
}

// Functions that NVRTC declares with C linkage. A local variable may have such
// a name, but a kernel may not. Most of these functions also exist with an `f`
// appended to the name.
static const char *const declared[] = {
  "acospi", "asinpi", "clock64", "clock_t", "cospi", "cudaRoundMinInf",
  "cudaRoundNearest", "cudaRoundPosInf", "cudaRoundZero", "cyl_bessel_i0",
  "cyl_bessel_i1", "erfcinv", "erfcx", "erfinv", "exp10", "fdim", "fdivide",
  "free", "frexp", "hypot", "ilogb", "j0", "j1", "jn", "labs", "ldexp",
  "lgamma", "llmax", "llmin", "llrint", "llround", "logb", "lrint", "lround",
  "make_long1", "make_long2", "make_long3", "make_long4", "make_longlong1",
  "make_longlong3", "make_longlong4", "make_longlong4_16a",
  "make_longlong4_32a", "malloc", "memcpy", "memset", "modf", "nan",
  "nearbyint", "nextafter", "norm", "norm3d", "norm4d", "normcdf",
  "normcdfinv", "ptrdiff_t", "rcbrt", "remainder", "remquo", "rhypot",
  "rnorm", "rnorm3d", "rnorm4d", "scalbln", "scalbn", "sincos", "sincospi",
  "sinpi", "tgamma", "ullmax", "ullmin", "umax", "umin", "y0", "y1", "yn"};

const char *names_kernel(Emit *e) {
  const char *name = names_identifier(e, ir_str(e->fn, e->fn->name));
  for (size_t k = 0; k < sizeof declared / sizeof *declared; k++) {
    size_t n = strlen(declared[k]);
    if (strncmp(name, declared[k], n) == 0 &&
        (!name[n] || strcmp(name + n, "f") == 0)) {
      name = arena_printf(e->cx, &e->cx->scratch, "%s_kernel", name);
      break;
    }
  }
  return names_new(e, name);
}
// SPDX-License-Identifier: MIT
