// st.async: stores to shared memory of another CTA of the cluster, whose
// mbarrier counts the bytes.
#include "sim/async.h"
#include "sim/mbar.h"
#include "sim/regs.h"

typedef struct Letter {
  SimLaneBuf data;       // the values that each lane sends
} Letter;

static void deliver(SimAsync *a, SimStage stage) {
  const Letter *d = a->data;
  uint8_t *smem = a->w->cluster->smem;
  if (stage != ASYNC_DELIVER) return;
  for (size_t k = 0; k < a->nspan; k++)
    memcpy(smem + a->span[k].addr, d->data[k], a->span[k].bytes);
}

static void write(SimWarp *w, const SimSend *s, int l, uint8_t *out) {
  int each = s->wide ? 8 : 4;
  for (int k = 0; k < s->n; k++) {
    uint64_t u = lane_bits(w, s->value[k], s->wide, l);
    memcpy(out + k * each, &u, (size_t)each);
  }
}

// Executes st.async for the lanes of mask, all of which name the same mbarrier.
static void send(SimWarp *w, const SimIns *i, uint32_t mask, const Access *to,
                 SimMbar *b) {
  const SimSend *s = i->x;
  SimAsync *a = simasync_start(w, i, 0, deliver, sizeof(Letter));
  if (!a) return;
  Letter *d = a->data;
  a->mbar = b;
  a->generic = true;
  for (; mask; mask &= mask - 1) {
    a->lane = __builtin_ctz(mask);
    write(w, s, a->lane, d->data[a->nspan]);
    a->bytes += (uint32_t)s->bytes;
    simasync_writes(a, s->dst.mem, simmem_address(to, a->lane),
                    (uint32_t)s->bytes);
  }
}

void st_async_run(SimWarp *w, const SimIns *i) {
  const SimSend *s = i->x;
  int64_t to[LANES], at[LANES];
  simmem_offsets(w, &s->dst, to);
  simmem_offsets(w, &s->bar, at);
  Access d = {.w = w, .i = i, .m = s->dst.mem, .off = to, .bytes = s->bytes,
              .write = true, .barrier = true};
  Access b = {.w = w, .i = i, .m = s->bar.mem, .off = at, .bytes = 8,
              .write = true, .barrier = true};
  uint32_t left = simmem_check(&d, w->active);
  left = simmem_check(&b, left);
  while (left && !w->cluster->stop) {
    int first = __builtin_ctz(left);
    uint32_t addr = simmem_address(&b, first), mask = 0;
    for (uint32_t m = left; m; m &= m - 1)
      if (simmem_address(&b, __builtin_ctz(m)) == addr) mask |= m & -m;
    left &= ~mask;
    SimMbar *bar = simmbar_for(w, i, first, s->bar.mem, addr, false);
    if (bar) send(w, i, mask, &d, bar);
  }
}
// SPDX-License-Identifier: MIT
