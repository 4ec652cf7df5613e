// source.c: positions of PTX instructions in the source code (.loc).
#include <string.h>

#include "ptx/inside.h"

const PtxFile *ptx_file(const PtxModule *m, const PtxLoc *l) {
  for (size_t k = 0; k < m->files.n; k++)
    if (m->files.p[k].index == l->file) return &m->files.p[k];
  return NULL;
}

// Reports whether a file is a library header, so that positions in it are not
// the user's. Headers of the system and of the CUDA toolkit are such files, for
// example /usr/local/cuda/include/cuda_fp16.hpp and
// nvidia/cu13/include/cuda/barrier. So are files of CUTLASS, tilelang and
// Triton, such as site-packages/triton/language/standard.py.
static bool is_library(const char *name) {
  static const char *const parts[] = {"/triton/language/", "/include/cute/",
                                      "/include/cutlass/", "/tl_templates/"};
  for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
    if (strstr(name, parts[k])) return true;
  }
  const char *end = strstr(name, "/include/");
  if (!end) return false;
  if (strncmp(name, "/usr/", 5) == 0 || strncmp(name, "/opt/", 5) == 0) {
    return true;
  }
  for (const char *at = name; at < end; at++) {
    if (strncmp(at, "/cuda", 5) == 0 || strncmp(at, "/nvidia/", 8) == 0) {
      return true;
    }
  }
  return false;
}

bool ptx_through(const PtxModule *m, uint32_t loc, const char *header) {
  for (uint32_t at = loc; at; at = m->locs.p[at - 1].parent) {
    const PtxFile *f = ptx_file(m, &m->locs.p[at - 1]);
    if (f && is_library(f->name) && strstr(f->name, header)) return true;
  }
  return false;
}

const PtxLoc *ptx_loc(const PtxModule *m, uint32_t loc) {
  for (uint32_t at = loc; at; at = m->locs.p[at - 1].parent) {
    const PtxFile *f = ptx_file(m, &m->locs.p[at - 1]);
    if (f && !is_library(f->name)) return &m->locs.p[at - 1];
  }
  return &m->locs.p[loc - 1];
}

const char *ptx_place(Ctx *cx, const PtxModule *m, uint32_t loc) {
  const PtxLoc *l = loc ? ptx_loc(m, loc) : NULL;
  const PtxFile *f = l ? ptx_file(m, l) : NULL;
  if (!f) return NULL;
  const char *name = strrchr(f->name, '/');
  return arena_printf(cx, &cx->scratch, "%s:%u", name ? name + 1 : f->name,
                      (unsigned)l->line);
}
// SPDX-License-Identifier: MIT
