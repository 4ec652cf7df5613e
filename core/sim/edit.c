// Changes of a decoded program: what is taken out, weakened, put in. Nothing
// else of it moves: what is put in belongs to the instruction behind it.
#include "sim/edit.h"

#include "sim/prog.h"

static void become(SimIns *d, const SimEdit *e, Op op, uint32_t full) {
  Who who = op_who(op);
  *d = (SimIns){.op = (uint8_t)op, .src = d->src, .ref = d->ref, .stat = -1,
                .imm = e->imm, .flags = e->flags, .uniform = true,
                .mask = full, .put = e->count,
                .who = (uint8_t)(who == WHO_ROW ? WHO_WARP : who)};
}

uint32_t simedit_before(const Launch *l, Ref r, uint32_t full,
                        const void *const *x, SimIns *out) {
  uint32_t n = 0;
  for (size_t k = 0; k < l->nedit; k++) {
    const SimEdit *e = &l->edit[k];
    if (e->ref != r || e->how != EDIT_BEFORE) continue;
    Ref at = r < l->fn->ins.n ? r : r - 1;
    out[n] = (SimIns){.src = ir_get(l->fn, at)->src, .ref = at};
    become(&out[n], e, (Op)e->op, full);
    out[n].scope = e->scope;
    out[n].x = x[k];
    n++;
  }
  return n;
}

void simedit_apply(const Launch *l, uint32_t full, SimIns *d) {
  for (size_t k = 0; k < l->nedit; k++) {
    const SimEdit *e = &l->edit[k];
    if (e->ref != d->ref) continue;
    if (e->how == EDIT_DROP) become(d, e, OP_GRIDLAUNCH, full);
    else if (e->how == EDIT_AS) become(d, e, (Op)e->op, full);
    else if (e->how == EDIT_AMOUNT) d->imm ^= e->imm;
    else if (e->how == EDIT_SEM) {
      if (e->sem) d->sem = e->sem;
      if (e->scope) d->scope = e->scope;
    }
  }
}
