// Checks the grid, block and cluster dimensions of a launch: they must be valid
// for the function and for the simulator.
#include "decode/fits.h"

#include "ir/target.h"

static void check_cluster(Ctx *cx, const Launch *l, int64_t warps) {
  const int32_t *n = l->cluster;
  int64_t ctas = 1;
  for (int k = 0; k < 3; k++) {
    if (n[k] < 1 || l->grid[k] % n[k])
      ctx_fail(cx, ERR_LAUNCH, "clusters of (%d,%d,%d) blocks do not divide a "
               "grid of (%d,%d,%d)", n[0], n[1], n[2], l->grid[0], l->grid[1],
               l->grid[2]);
    ctas *= n[k];
    if (ctas > MAX_CTAS)
      ctx_fail(cx, ERR_LAUNCH, "a cluster of (%d,%d,%d) blocks is too large: "
               "at most %d blocks",
               n[0], n[1], n[2], MAX_CTAS);
  }
  if (ctas * warps > MAX_ALL)
    ctx_fail(cx, ERR_LAUNCH, "a cluster of %lld warps is too large: the "
             "simulator runs at most %d", (long long)(ctas * warps), MAX_ALL);
}

// Maximum number of blocks in a run of the whole grid. Running more blocks
// would take too long. An output with one element for each block would exceed a
// host's memory.
enum { MOST_BLOCKS = 1 << 27 };

void fits_all(Ctx *cx, const Launch *l) {
  int64_t left = MOST_BLOCKS;
  for (int k = 0; k < 3; k++) left /= l->grid[k] > 0 ? l->grid[k] : 1;
  if (left || !l->grid[0] || !l->grid[1] || !l->grid[2]) return;
  ctx_fail(cx, ERR_LAUNCH, "a grid of (%d,%d,%d) blocks is too large: the "
           "simulator runs at most %d blocks", l->grid[0], l->grid[1],
           l->grid[2], MOST_BLOCKS);
}

void fits_check(Ctx *cx, const Launch *l) {
  int64_t n = 1;
  for (int k = 0; k < 3; k++) {
    if (l->grid[k] < 0 || l->block[k] < 1)
      ctx_fail(cx, ERR_LAUNCH, "grid (%d,%d,%d) must be 0 or more, block "
               "(%d,%d,%d) positive", l->grid[0], l->grid[1], l->grid[2],
               l->block[0], l->block[1], l->block[2]);
    n *= l->block[k];
    int32_t want_n = l->fn->block[k];
    if (want_n && want_n != l->block[k])
      ctx_fail(cx, ERR_LAUNCH, "the kernel was traced for a block of "
               "(%d,%d,%d) threads, not (%d,%d,%d)", l->fn->block[0],
               l->fn->block[1], l->fn->block[2], l->block[0], l->block[1],
               l->block[2]);
  }
  if (n > LANES * MAX_WARPS)
    ctx_fail(cx, ERR_LAUNCH, "a block of %lld threads is too large: at most %d "
             "threads",
             (long long)n, LANES * MAX_WARPS);
  check_cluster(cx, l, (n + LANES - 1) / LANES);
}
int fits_sms(const SimProg *p) { return p->launch->sm < 90 ? 108 : 132; }

int fits_blocks(const SimProg *p) {
  enum { BLOCKS = 32, RESERVED = 1024 };
  int sm = p->launch->sm;
  bool small = (sm > 80 && sm < 90) || sm >= 120;
  int64_t most = (small ? 1536 : 2048) / (p->nwarp * LANES);
  int64_t room = (target_smem(sm) + RESERVED) / (p->smem_bytes + RESERVED);
  if (most > room) most = room;
  if (most > BLOCKS) most = BLOCKS;
  return p->registers || most < 1 ? 1 : (int)most;
}

uint64_t fits_resident(const SimProg *p) {
  int64_t n = (int64_t)fits_blocks(p) * fits_sms(p) / p->ncta;
  return n < 1 ? 1 : (uint64_t)n;
}
// SPDX-License-Identifier: MIT
