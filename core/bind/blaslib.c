// Lua bindings of cuBLAS and cublasLt: matrix products.
#include <string.h>

#include "bind/gpulib.h"
#include "gpu/cublas.h"

// Returns the device buffer in field `name` of the table at 2. Checks that it
// has at least rows * cols elements.
static DevBuf *field_buffer(lua_State *L, const char *name, size_t rows,
                                  size_t cols) {
  lua_getfield(L, 2, name);
  if (!face_test(L, -1, MT_DEVBUF))
    face_error(L, ERR_ARG, "%s is a %s, not a device buffer", name,
               face_typename(L, -1));
  DevBuf *b = devlib_check(L, lua_gettop(L));
  if (b->count < rows * cols)
    face_error(L, ERR_SHAPE, "%s has %zu elements, %zu by %zu needed", name,
               b->count, rows, cols);
  lua_pop(L, 1);
  return b;
}

// Returns the buffer in field `name`, which has the f32 scale factor of an
// operand, or NULL if the field is nil. The operand's type t must be an 8-bit
// float.
static DevBuf *field_scale(lua_State *L, const char *name, DType t) {
  if (lua_getfield(L, 2, name) == LUA_TNIL) return lua_pop(L, 1), NULL;
  lua_pop(L, 1);
  DevBuf *b = field_buffer(L, name, 1, 1);
  if (b->t != DT_F32)
    face_error(L, ERR_TYPE, "%s is of %s, not of f32", name, dtype_name(b->t));
  if (!dtype_is_float8(t))
    face_error(L, ERR_TYPE, "%s is valid only for an operand of 8-bit "
               "floats, not of %s", name, dtype_name(t));
  return b;
}

static int field_extent(lua_State *L, const char *name) {
  lua_getfield(L, 2, name);
  lua_Integer v = lua_isinteger(L, -1) ? lua_tointeger(L, -1) : 0;
  if (v < 1 || v > INT32_MAX)
    face_error(L, ERR_ARG, "%s = %s: a positive integer is needed", name,
               face_show(L, -1));
  lua_pop(L, 1);
  return (int)v;
}

// Returns the distance in elements between the matrices of a batch. It is in
// field step_NAME, by default the size of a matrix. Unless b is NULL, checks
// that buffer b has room for all matrices.
static int64_t field_step(lua_State *L, const char *name, int batches,
                          size_t elements, const DevBuf *b) {
  char step[] = {'s', 't', 'e', 'p', '_', *name, 0};
  int64_t v = face_get_int(L, 2, step, (int64_t)elements);
  size_t all;
  if (v < 0)
    face_error(L, ERR_ARG, "%s = %lld: the distance between matrices must be 0 "
               "or more elements",
               step, (long long)v);
  if (__builtin_mul_overflow((size_t)v, (size_t)batches - 1, &all) ||
      __builtin_add_overflow(all, elements, &all) || (b && b->count < all))
    face_error(L, ERR_SHAPE, "%s has no room for %d matrices of %zu elements, "
               "%lld elements apart", name, batches, elements, (long long)v);
  return v;
}

// Reads two fields of the table at 2 into s: `bias`, a buffer of D's type, and
// `epilogue`, the name of cublasLt's epilogue.
static void check_epilogue(lua_State *L, BlasSpec *s) {
  if (lua_getfield(L, 2, "bias") != LUA_TNIL) {
    s->bias = field_buffer(L, "bias", 1, (size_t)s->n);
    if (s->bias->t != s->td)
      face_error(L, ERR_TYPE, "bias must have D's type %s, not %s",
                 dtype_name(s->td), dtype_name(s->bias->t));
    if (s->m_major)
      face_error(L, ERR_TYPE, "bias needs a D in which N is contiguous: remove "
                 "m_major = true");
  }
  lua_getfield(L, 2, "epilogue");
  const char *name = face_optstr(L, -1, "");
  if (strcmp(name, "relu") == 0) s->epilogue = CUBLASLT_EPILOGUE_RELU;
  else if (strcmp(name, "gelu") == 0) s->epilogue = CUBLASLT_EPILOGUE_GELU;
  else if (*name)
    face_error(L, ERR_ARG, "epilogue is '%s', not relu or gelu", name);
  lua_pop(L, 2);
}

// Returns the element type of operand `name`. Sets *b to the operand's buffer.
// If b is NULL, the operand is given only as a type.
static DType field_operand(lua_State *L, const char *name, size_t rows,
                           size_t cols, DevBuf **b) {
  if (b) return (*b = field_buffer(L, name, rows, cols))->t;
  lua_getfield(L, 2, name);
  DType t = face_check_dtype(L, lua_gettop(L));
  lua_pop(L, 1);
  return t;
}

// Reads the description of a product from the table at 2. If `asked`, the
// product is only queried: its operands are given as types instead of buffers.
static BlasSpec check_spec(lua_State *L, bool asked) {
  BlasSpec s;
  face_checktype(L, 2, LUA_TTABLE);
  memset(&s, 0, sizeof s);
  s.m = field_extent(L, "m");
  s.n = field_extent(L, "n");
  s.k = field_extent(L, "k");
  size_t m = (size_t)s.m, n = (size_t)s.n, k = (size_t)s.k;
  s.ta = field_operand(L, "A", m, k, asked ? NULL : &s.a);
  s.tb = field_operand(L, "B", n, k, asked ? NULL : &s.b);
  s.td = field_operand(L, "D", m, n, asked ? NULL : &s.d);
  lua_getfield(L, 2, "batches");
  s.batches = lua_isnil(L, -1) ? 1 : field_extent(L, "batches");
  lua_pop(L, 1);
  s.step_a = field_step(L, "A", s.batches, m * k, s.a);
  s.step_b = field_step(L, "B", s.batches, n * k, s.b);
  s.step_d = field_step(L, "D", s.batches, m * n, s.d);
  s.m_major = face_get_bool(L, 2, "m_major");
  s.tf32 = face_get_bool(L, 2, "tf32");
  s.scale_a = field_scale(L, "scale_A", s.ta);
  s.scale_b = field_scale(L, "scale_B", s.tb);
  s.fast_accum = face_get_bool(L, 2, "fast_accum");
  if (s.fast_accum && !dtype_is_float8(s.ta))
    face_error(L, ERR_TYPE, "fast_accum: fast accumulation needs 8-bit floats, "
               "not %s", dtype_name(s.ta));
  lua_getfield(L, 2, "alpha");
  lua_getfield(L, 2, "beta");
  s.alpha = face_optnum(L, -2, 1);
  s.beta = face_optnum(L, -1, 0);
  lua_pop(L, 2);
  if ((s.alpha != 1 || s.beta != 0) && !dtype_is_float(s.td))
    face_error(L, ERR_TYPE, "%s needs a D of floats, not of %s",
               s.beta != 0 ? "beta" : "alpha", dtype_name(s.td));
  check_epilogue(L, &s);
  if (s.batches > 1 && (s.bias || s.scale_a || s.scale_b))
    face_error(L, ERR_ARG, "batches = %d: a batched product takes no bias, "
               "scale_A or scale_B", s.batches);
  lua_getfield(L, 2, "layout");
  const char *layout = face_optstr(L, -1, "tn");
  if (strlen(layout) != 2 || strspn(layout, "tn") != 2)
    face_error(L, ERR_ARG, "layout is '%s', not tn, nt, nn or tt", layout);
  s.a_m = layout[0] == 'n';
  s.b_n = layout[1] == 't';
  lua_pop(L, 1);
  return s;
}

// Creates the userdata of a product, which is not open yet. The userdata keeps
// the GPU, the workspace and the buffers alive. For this, it refers to the
// buffers themselves, because the user may change the table at 2.
static BlasGemm *new_blas(lua_State *L, int workspace) {
  BlasGemm *g = gpulib_handle(L, 1, sizeof *g, MT_BLAS);
  static const char *const keep[] = {"A", "B", "D", "scale_A", "scale_B",
                                     "bias"};
  enum { N = sizeof keep / sizeof *keep };
  lua_createtable(L, N + 1, 0);
  for (int i = 0; i < N; i++) {
    lua_getfield(L, 2, keep[i]);
    lua_rawseti(L, -2, i + 1);
  }
  if (workspace) {
    lua_pushvalue(L, workspace);
    lua_rawseti(L, -2, N + 1);
  }
  lua_setiuservalue(L, -2, 2);
  return g;
}

// gpu:cublas{m=, n=, k=, A=, B=, D=, layout=, m_major=, tf32=, alpha=, beta=,
// batches=, step_A=, step_B=, step_D=} -> a prepared product
int blaslib_cublas(lua_State *L) {
  Gpu *gpu = gpulib_check(L, 1);
  BlasSpec s = check_spec(L, false);
  Why w;
  BlasGemm *g = new_blas(L, 0);
  return blas_gemm_new(g, gpu, &s, &w) ? 1 : gpulib_failed(L, &w);
}

#define MAX_ALGOS 64

// gpu:cublaslt{... as for cublas, scale_A=, scale_B=, fast_accum=, bias=,
// epilogue = "relu" or "gelu", algos = 32, workspace = bytes} -> a list of
// products, one for each algorithm that cublasLt's heuristic proposes, at most
// `algos`
int blaslib_cublaslt(lua_State *L) {
  Gpu *gpu = gpulib_check(L, 1);
  BlasSpec s = check_spec(L, false);
  lua_settop(L, 2);
  Why w;
  lua_Integer max = face_get_int(L, 2, "algos", 32);
  lua_Integer bytes = face_get_int(L, 2, "workspace", 64 << 20);
  if (max < 1 || max > MAX_ALGOS || bytes < 0)
    face_error(L, ERR_ARG, "algos = %lld, workspace = %lld: algos must be 1 to "
               "%d, and workspace 0 or more bytes", (long long)max,
               (long long)bytes, MAX_ALGOS);
  DevBuf *ws = devlib_new(L, 1, DT_U8, (size_t)bytes, &w);  // stack index 3
  if (!ws) return gpulib_failed(L, &w);
  cublasLtMatmulHeuristicResult_t algos[MAX_ALGOS];
  int n = blas_lt_algos(gpu, &s, ws->bytes, algos, (int)max, &w);
  if (n < 0) return gpulib_failed(L, &w);
  lua_createtable(L, n, 0);  // list of products, at stack index 4
  int kept = 0;
  for (int i = 0; i < n; i++) {
    if (algos[i].state != CUBLAS_STATUS_SUCCESS) continue;
    BlasGemm *g = new_blas(L, 3);
    if (!blas_lt_new(g, gpu, &s, ws, &algos[i], &w))
      return gpulib_failed(L, &w);
    lua_rawseti(L, 4, ++kept);
  }
  return 1;
}

// gpu:cublaslt_first{... as for cublaslt, but A, B, D are types} -> the first
// algorithm that the heuristic proposes: {algorithm =, tile =, split =,
// reduction =, workspace =}
int blaslib_first(lua_State *L) {
  Gpu *gpu = gpulib_check(L, 1);
  BlasSpec s = check_spec(L, true);
  lua_Integer bytes = face_get_int(L, 2, "workspace", 32 << 20);
  if (bytes < 0) face_error(L, ERR_ARG, "workspace = %lld: 0 or more bytes are "
                            "needed", (long long)bytes);
  Why w;
  cublasLtMatmulHeuristicResult_t first;
  BlasAlgo a;
  if (blas_lt_algos(gpu, &s, (size_t)bytes, &first, 1, &w) < 0 ||
      !blas_lt_about(gpu, &first, &a, &w))
    return gpulib_failed(L, &w);
  const struct { const char *name; lua_Integer v; } all[] = {
    {"algorithm", a.id}, {"tile", a.tile}, {"split", a.split},
    {"reduction", a.reduction},
    {"workspace", (lua_Integer)first.workspaceSize}};
  lua_createtable(L, 0, 5);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    lua_pushinteger(L, all[i].v);
    lua_setfield(L, -2, all[i].name);
  }
  return 1;
}

static int blas_on(lua_State *L, int n, int at) {
  BlasGemm *g = face_checkudata(L, 1, MT_BLAS);
  Why w;
  gpulib_ran(L, g->own.gpu, "cuBLAS");
  gpulib_keep(L, g->own.gpu, 1);
  return gpulib_done(L, blas_gemm_run(g, gpulib_stream(L, at), n, &w), &w);
}

int blaslib_run(lua_State *L) { return blas_on(L, 1, 2); }

int blaslib_run_n(lua_State *L) {
  return blas_on(L, gpulib_times(L, 2), 3);
}

int blaslib_close(lua_State *L) {
  blas_gemm_close(face_checkudata(L, 1, MT_BLAS));
  return 0;
}

int blaslib_version(lua_State *L) {
  Why w;
  int v;
  if (!blas_version(gpulib_check(L, 1), &v, &w)) return gpulib_failed(L, &w);
  lua_pushinteger(L, v);
  return 1;
}
// SPDX-License-Identifier: MIT
