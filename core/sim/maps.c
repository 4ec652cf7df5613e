// Tensor maps that a kernel makes in memory: copied from an argument's, told of
// another tensor, released to the agents and acquired by who uses them. Where
// a tensor lies is its object's number and the byte there.
#include "sim/async.h"
#include "sim/bulk.h"
#include "sim/regs.h"
#include "sim/report.h"

#include <string.h>

enum { WHERE = 40 };       // bits of the byte in an address
typedef enum MapState { MAP_WRITTEN, MAP_RELEASED, MAP_ACQUIRED } MapState;
struct SimMapNote { const uint8_t *p; MapState state; };

typedef uint64_t Words[TENSORMAP_WORDS];

static uint64_t address_of(const SimMem *m, int64_t byte) {
  return ((uint64_t)(m->index + 1) << WHERE) + (uint64_t)byte;
}

// The words at s of the lanes of mask; those lanes that have some.
static uint32_t load(SimWarp *w, const SimIns *i, const SimSide *s,
                     uint32_t mask, Words *words) {
  int64_t off[LANES];
  SimLaneBuf buf;
  simmem_offsets(w, s, off);
  for (int k = 0; k < TENSORMAP_WORDS; k++) {
    mask = simmem_load(w, i, s->mem, mask, off, 8, buf);
    for (int l = 0; l < LANES; l++) {
      memcpy(&words[l][k], buf[l], 8);
      off[l]++;
    }
  }
  return mask;
}

static void store(SimWarp *w, const SimIns *i, const SimSide *s, uint32_t mask,
                  Words *words) {
  int64_t off[LANES];
  SimLaneBuf buf;
  simmem_offsets(w, s, off);
  for (int k = 0; k < TENSORMAP_WORDS; k++) {
    for (int l = 0; l < LANES; l++) memcpy(buf[l], &words[l][k], 8);
    simmem_store(w, i, s->mem, mask, off, 8, buf);
    for (int l = 0; l < LANES; l++) off[l]++;
  }
}

// ---- who saw what ----

static struct SimMapNote *find(const SimCluster *c, const uint8_t *p) {
  for (size_t k = 0; k < c->nnote; k++)
    if (c->note[k].p == p) return &c->note[k];
  return NULL;
}

static void note(SimCluster *c, const uint8_t *p, MapState state) {
  struct SimMapNote *n = find(c, p);
  if (!n) {
    n = base_realloc(c->note, (c->nnote + 1) * sizeof *n);
    if (!n) {
      c->stop = c->oom = true;
      return;
    }
    c->note = n;
    n += c->nnote++;
  }
  *n = (struct SimMapNote){p, state};
}

void simmaps_release(SimCluster *c) {
  for (size_t k = 0; k < c->nnote; k++)
    if (c->note[k].state == MAP_WRITTEN) c->note[k].state = MAP_RELEASED;
}

void simmaps_reset(SimCluster *c) { c->nnote = 0; }

void simmaps_free(SimCluster *c) { base_free(c->note); }

// Those that stand in global memory are what copies go through.
static void note_all(SimWarp *w, const SimSide *s, uint32_t mask,
                     MapState state) {
  int64_t off[LANES];
  if (s->mem->space != SP_GMEM) return;
  simmem_offsets(w, s, off);
  for (; mask; mask &= mask - 1) {
    const uint8_t *p = s->mem->p + off[__builtin_ctz(mask)] * 8;
    const struct SimMapNote *n = find(w->cluster, p);
    if (state != MAP_ACQUIRED || (n && n->state == MAP_RELEASED))
      note(w->cluster, p, state);
  }
}

// ---- the operations ----

static void change(SimWarp *w, const SimIns *i, uint32_t mask, Words *words) {
  const SimMapOp *o = i->x;
  int64_t off[LANES];
  if (i->op == OP_MAPADDRESS) simmem_offsets(w, &o->src, off);
  for (; mask; mask &= mask - 1) {
    int l = __builtin_ctz(mask);
    TensorMap m;
    tensormap_read(words[l], &m);
    if (i->op == OP_MAPADDRESS)
      m.address = address_of(o->src.mem, off[l] * o->src.mem->bits / 8);
    else *(o->stride ? &m.stride[o->mode - 1] : &m.extent[o->mode]) =
      index_at(w, o->value, o->wide, l);
    tensormap_write(&m, words[l]);
  }
}

void simmaps_run(SimWarp *w, const SimIns *i) {
  const SimMapOp *o = i->x;
  uint32_t mask = w->active;
  Words words[LANES];
  switch (i->op) {
    case OP_MAPACQUIRE: note_all(w, &o->dst, mask, MAP_ACQUIRED); return;
    case OP_MAPCOPY: {
      TensorMap m = *o->map;
      m.address = address_of(o->src.mem, 0);
      for (int l = 0; l < LANES; l++) tensormap_encode(&m, words[l]);
      break;
    }
    case OP_MAPPUBLISH:
      mask &= ~mask + 1;  // the warp copies one
      mask = load(w, i, &o->src, mask, words);
      break;
    default:
      mask = load(w, i, &o->dst, mask, words);
      change(w, i, mask, words);
      break;
  }
  store(w, i, &o->dst, mask, words);
  note_all(w, &o->dst, mask,
           i->op == OP_MAPPUBLISH ? MAP_RELEASED : MAP_WRITTEN);
}

// ---- copies through them ----

static bool tell(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                 int64_t off, SimMapWrong how) {
  SimFault *f = simreport_fault(w, SIM_TENSORMAP, l, i->src, 0, s->mem->index,
                                off);
  if (f) f->map.how = how;
  return false;
}

// The object that an address is in; NULL: none.
static const SimMem *object_at(const SimProg *p, uint64_t address) {
  uint64_t k = address >> WHERE;
  if (k < 1 || k > p->fn->mem.n) return NULL;
  const SimMem *m = p->mem[p->fn->mem.p[k - 1].ref];
  return m && (m->space == SP_GMEM || m->space == SP_TMAP) ? m : NULL;
}

static bool is_inside(const TensorMap *m, const SimMem *of, int64_t at,
                      int64_t size) {
  int64_t last = at + size * m->extent[0];
  for (int k = 1; k < m->rank; k++) {
    int64_t n = m->extent[k] - 1, stride = m->stride[k - 1];
    if (stride && n > of->bytes / stride) return false;
    last += n * stride;
  }
  return last <= of->bytes;
}

bool simmaps_take(SimWarp *w, const SimIns *i, int l, const SimSide *s,
                  SimMapped *t, int64_t size) {
  Words words[LANES], want;
  int64_t off[LANES];
  TensorMap like = t->map;
  simmem_offsets(w, s, off);
  if (!load(w, i, s, 1u << l, words)) return false;
  memcpy(t->words, words[l], sizeof t->words);
  t->at = s->mem->p + off[l] * 8;
  tensormap_encode(&like, want);
  tensormap_read(t->words, &like);
  tensormap_write(&like, want);
  for (int k = 0; k < TENSORMAP_RANK; k++)  // modes that it has not
    if (k >= t->map.rank && like.extent[k] != 1)
      return tell(w, i, l, s, off[l], MAP_NONE);
  t->map = like;
  t->tensor = object_at(w->cluster->prog, like.address);
  if (memcmp(want, t->words, sizeof want) != 0 || !t->tensor)
    return tell(w, i, l, s, off[l], MAP_NONE);
  t->first = (int64_t)(like.address & (((uint64_t)1 << WHERE) - 1));
  if (!is_inside(&like, t->tensor, t->first, size))
    return tell(w, i, l, s, off[l], MAP_BEYOND);
  const struct SimMapNote *n = find(w->cluster, t->at);
  if (n && n->state != MAP_ACQUIRED)
    return tell(w, i, l, s, off[l], n->state == MAP_WRITTEN ? MAP_UNRELEASED
                                                            : MAP_UNACQUIRED);
  return true;
}

void simmaps_still(SimAsync *a, const SimSide *s, const SimMapped *t) {
  if (memcmp(t->at, t->words, sizeof t->words) == 0) return;
  tell(a->w, a->i, a->lane, s, (t->at - s->mem->p) / 8, MAP_CHANGED);
}
