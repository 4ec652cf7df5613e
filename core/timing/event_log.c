// Writes the event log of a cluster (event_log.h).
#include "timing/event_log.h"

#include <string.h>

enum { SECTOR = 32, LINE = 128 };

static SimTape *tape_of(const SimWarp *w) { return w->cluster->tape; }
static SimReel *reel_of(const SimWarp *w) { return &tape_of(w)->reel[w->id]; }

SimTape *event_log_new(const SimProg *p, int64_t l1, uint64_t most) {
  SimTape *t = base_realloc(NULL, sizeof *t);
  if (!t) return NULL;
  *t = (SimTape){.nreel = p->nall, .most = most, .nline = 1};
  while ((int64_t)t->nline * 2 * SECTOR <= l1) t->nline *= 2;
  size_t lines = (size_t)p->ncta * t->nline * sizeof *t->line;
  size_t reels = (size_t)p->nall * sizeof *t->reel;
  t->line = base_realloc(NULL, lines);
  t->reel = base_realloc(NULL, reels);
  if (t->reel) memset(t->reel, 0, reels);
  if (!t->reel || !t->line) {
    event_log_free(t);
    return NULL;
  }
  memset(t->line, 0, lines);
  return t;
}

void event_log_free(SimTape *t) {
  if (!t) return;
  for (int k = 0; t->reel && k < t->nreel; k++) base_free(t->reel[k].step);
  base_free(t->reel);
  base_free(t->line);
  base_free(t);
}

// Appends step s to w's log, and returns the step's index. If the log is full,
// drops s.
static size_t push(SimWarp *w, SimStep s) {
  SimTape *t = tape_of(w);
  SimReel *r = reel_of(w);
  if (t->steps++ >= t->most) {
    t->full = w->cluster->stop = true;
    return r->n ? r->n - 1 : 0;
  }
  if (r->n == r->cap) {
    size_t cap = r->cap ? r->cap * 2 : 1024;
    SimStep *p = base_realloc(r->step, cap * sizeof *p);
    if (!p) {
      w->cluster->oom = w->cluster->stop = true;
      return 0;
    }
    r->step = p;
    r->cap = cap;
  }
  r->step[r->n] = s;
  return r->n++;
}

void event_log_begin(SimWarp *w, const SimIns *i) {
  SimReel *r = reel_of(w);
  r->run = push(w, (SimStep){
    .mark = TAPE_RUN, .at = (uint32_t)(i - w->cluster->prog->ins),
    .lanes = (uint8_t)__builtin_popcount(w->active)});
  r->missed = r->lines = 0;
  if (i->stat >= 0) r->before = w->cluster->out->stat[i->stat];
}

void event_log_end(SimWarp *w, const SimIns *i, bool again) {
  SimReel *r = reel_of(w);
  if (w->cluster->stop) return;
  if (again) {
    r->n = r->run;
    return;
  }
  if (i->stat < 0) return;
  const SimStat *now = &w->cluster->out->stat[i->stat];
  SimStep *s = &r->step[r->run];
  s->lines = (uint8_t)(r->lines < UINT8_MAX ? r->lines : UINT8_MAX);
  s->passes = (uint32_t)(now->wavefronts - r->before.wavefronts);
  s->sectors = (uint32_t)(now->sectors - r->before.sectors);
  s->missed = op_effect((Op)i->op) & EF_LATER && i->op != OP_CPASYNC
                // asynchronous operations bypass L1, so all their sectors miss
                ? s->sectors : r->missed;
}

// Reports whether the L1 of w's CTA already has a sector. If not, inserts the
// sector.
static bool has(const SimWarp *w, uint64_t sector) {
  const SimTape *t = tape_of(w);
  uint64_t mix = sector ^ sector >> 13;
  uint64_t *at = t->line + (size_t)(w->cta - w->cluster->cta) * t->nline +
                 (mix & (t->nline - 1));
  if (*at == sector) return true;
  *at = sector;
  return false;
}

// Reports whether list contains x. If not, appends x.
static bool listed(uint64_t *list, int *n, uint64_t x) {
  for (int k = *n; k-- > 0;)
    if (list[k] == x) return true;
  list[(*n)++] = x;
  return false;
}

void event_log_global(SimWarp *w, uint64_t start, const int64_t *at,
                      uint32_t mask, int n, bool keeps) {
  SimReel *r = reel_of(w);
  uint64_t sector[LANES], line[LANES];
  int sectors = 0, lines = 0;
  for (; mask; mask &= mask - 1) {
    uint64_t byte = start + (uint64_t)at[__builtin_ctz(mask)];
    if (!listed(line, &lines, byte / LINE)) r->lines++;
    if (listed(sector, &sectors, byte / SECTOR)) continue;
    if (!keeps || !has(w, byte / SECTOR))
      r->missed += (uint32_t)(n + SECTOR - 1) / SECTOR;
  }
}

void event_log_mark(SimWarp *w, uint32_t name, bool begins) {
  push(w, (SimStep){.mark = begins ? TAPE_BEGIN : TAPE_END, .at = name});
}

void event_log_same(SimWarp *w, const int64_t *at, uint32_t mask) {
  SimReel *r = reel_of(w);
  if (w->cluster->stop) return;
  for (uint32_t a = mask; a; a &= a - 1) {
    int n = 0;
    int64_t word = at[__builtin_ctz(a)] / 4;
    for (uint32_t b = a; b; b &= b - 1) n += at[__builtin_ctz(b)] / 4 == word;
    if (n > r->step[r->run].same) r->step[r->run].same = (uint8_t)n;
  }
}

void event_log_give(SimWarp *w, uint32_t *gate, bool far) {
  if (!*gate) *gate = ++tape_of(w)->ngate;
  push(w, (SimStep){.mark = TAPE_GIVE, .at = *gate, .cta = far});
}

void event_log_need(SimWarp *w, uint32_t gate) {
  if (gate) push(w, (SimStep){.mark = TAPE_NEED, .at = gate});
}

size_t event_log_agent(SimWarp *w) {
  return push(w, (SimStep){.mark = TAPE_AGENT});
}

void event_log_land(SimWarp *w, size_t agent, uint32_t *gate, int cta,
                    uint32_t bytes) {
  SimTape *t = tape_of(w);
  if (w->cluster->stop) return;
  if (!*gate) *gate = ++t->ngate;
  SimStep *s = &reel_of(w)->step[agent];
  s->at = *gate;
  s->cta = (uint8_t)cta;
  s->bytes = bytes;
}
// SPDX-License-Identifier: MIT
