// Prints the decoded program, with each instruction beside its IR instruction.
#include <inttypes.h>

#include "decode/prog.h"

// Prints a decoded instruction with the slot of its value (marked u if the
// value is uniform) and the target of its jump.
static void put_ins(Ctx *cx, const SimProg *p, uint32_t pc, Dump *d,
                    Buf *out) {
  const SimIns *i = &p->ins[pc];
  buf_printf(cx, out, "%5u  ", pc);
  if (i->d) buf_printf(cx, out, i->uniform ? "u%-7u" : "v%-7u", i->d);
  else buf_printf(cx, out, "%8s", "");
  if (i->ref) dump_ins(d, i->ref);
  else buf_puts(cx, out, "exit");
  if (i->jump) buf_printf(cx, out, "  -> %u", i->jump);
  buf_puts(cx, out, "\n");
}

void decode_dump(Ctx *cx, const SimProg *p, Buf *out) {
  const Fn *fn = p->fn;
  Dump *d = dump_new(cx, fn, out);
  uint32_t src = 0;
  buf_printf(cx, out, "sim %s: %d warps, %u bytes of values each, %" PRId64
             " of shared memory, narrowest access %d\n", ir_str(fn, fn->name),
             p->nwarp, p->value_bytes, p->smem_bytes, 1 << p->shift);
  for (uint32_t pc = 0; pc <= p->nins; pc++) {
    const SimIns *i = &p->ins[pc];
    if (i->src != src && i->ref)
      buf_printf(cx, out, "-- line %u\n", fn->src.p[src = i->src].line);
    put_ins(cx, p, pc, d, out);
  }
}
// SPDX-License-Identifier: MIT
