// shape.c: turns a graph of basic blocks into nested regions. A reducible graph
// keeps its blocks and needs no copies: every merge point ends a ONCE (a region
// that a BREAK can leave), and every loop header begins a LOOP (N. Ramsey,
// "Beyond Relooper", ICFP 2022). Branch targets outside a loop follow the loop,
// so that lanes which leave the loop in different iterations reconverge there.
// An irreducible graph becomes a dispatch loop.
#include "ptx/shape.h"

#include <string.h>

enum {
  DEEPEST = 2000,   // limit of nested regions, each of which is a call
  MOST_ITEMS = 16   // maximum number of ShapeItems of a block
};

typedef struct Node {
  uint32_t order;    // position in reverse postorder; SHAPE_NONE if not reached
  uint32_t idom;     // immediate dominator
  uint32_t preds;    // number of forward edges into the block
  // header of the innermost loop around the block, or SHAPE_NONE
  uint32_t loop;
  // for the header of a loop: the header of the next outer loop
  uint32_t outer;
  // List of the blocks emitted inside this block's region, sorted by `order`.
  // first: the first block of the list. next: the successor of this block in
  // the list that contains it.
  uint32_t first, next;
  uint32_t after, next_after;  // for a header: list of blocks emitted after the
                               // loop, sorted by `order`; linked by next_after
  bool header;
} Node;

// An open region that a branch can leave. IFs are not in the list of open
// regions.
typedef struct Open {
  uint32_t target;   // block that follows the region; for the inner ONCE of a
                     // loop, the loop's header
} Open;

typedef struct Build {
  Ctx *cx;
  const ShapeBlock *block;
  uint32_t n;
  Node *node;
  uint32_t *rpo, reached;
  Open *open;        // stack of at most 4 entries for each block
  size_t opened;
  Shape *out;
  int depth;
} Build;

static uint32_t succ(const Build *b, uint32_t x, int k) {
  const ShapeBlock *s = &b->block[x];
  return k == 1 && s->to[1] == s->to[0] ? SHAPE_NONE : s->to[k];
}

// Numbers the blocks in reverse postorder, without recursion.
static void order(Build *b) {
  uint32_t *stack = NEW(b->cx, uint32_t, b->n + 1);
  // By block: 0 if not visited, else 1 + the number of visited successors.
  uint8_t *seen = NEW(b->cx, uint8_t, b->n);
  memset(seen, 0, b->n);
  uint32_t n = 0, at = b->n;
  stack[n++] = 0;
  seen[0] = 1;
  while (n) {
    uint32_t x = stack[n - 1];
    if (seen[x] > 2) {
      b->rpo[--at] = x;
      n--;
      continue;
    }
    // Visit the second successor first. In the resulting order, the block of
    // the branch not taken precedes the block of the taken branch.
    uint32_t y = succ(b, x, 2 - seen[x]++);
    if (y != SHAPE_NONE && !seen[y]) {
      seen[y] = 1;
      stack[n++] = y;
    }
  }
  b->reached = b->n - at;
  memmove(b->rpo, b->rpo + at, b->reached * sizeof *b->rpo);
  for (uint32_t i = 0; i < b->reached; i++) b->node[b->rpo[i]].order = i;
}

static uint32_t meet(const Build *b, uint32_t x, uint32_t y) {
  while (x != y) {
    if (b->node[x].order > b->node[y].order) x = b->node[x].idom;
    else y = b->node[y].idom;
  }
  return x;
}

// Finds immediate dominators (Cooper, Harvey and Kennedy). One pass in reverse
// postorder suffices in a reducible graph. `loops` detects other graphs.
static void dominators(Build *b) {
  b->node[0].idom = 0;
  for (bool changed = true; changed; ) {
    changed = false;
    for (uint32_t i = 0; i < b->reached; i++) {
      uint32_t x = b->rpo[i];
      for (int k = 0; k < 2; k++) {
        uint32_t y = succ(b, x, k);
        if (y == SHAPE_NONE || y == 0) continue;
        uint32_t was = b->node[y].idom;
        uint32_t now = was == SHAPE_NONE ? x : meet(b, was, x);
        changed = changed || now != was;
        b->node[y].idom = now;
      }
    }
  }
}

static bool dominates(const Build *b, uint32_t x, uint32_t y) {
  while (b->node[y].order > b->node[x].order) y = b->node[y].idom;
  return x == y;
}

static bool in_loop(const Build *b, uint32_t x, uint32_t header) {
  uint32_t l = b->node[x].header ? x : b->node[x].loop;
  while (l != SHAPE_NONE && l != header) l = b->node[l].outer;
  return l == header;
}

// Finds the blocks of each natural loop, innermost loops first. For this,
// visits loop headers in the reverse of reverse postorder. Returns false if the
// graph is irreducible.
static bool loops(Build *b) {
  uint32_t *head = NEW(b->cx, uint32_t, b->n);    // lists of predecessors
  uint32_t *next = NEW(b->cx, uint32_t, b->n * 2);
  uint32_t *stack = NEW(b->cx, uint32_t, b->n * 2 + 1);
  for (uint32_t i = 0; i < b->n; i++) head[i] = SHAPE_NONE;
  for (uint32_t i = 0; i < b->reached; i++) {
    uint32_t x = b->rpo[i];
    for (uint32_t k = 0; k < 2; k++) {
      uint32_t y = succ(b, x, (int)k);
      if (y == SHAPE_NONE) continue;
      next[x * 2 + k] = head[y];
      head[y] = x * 2 + k;
      bool back = b->node[y].order <= i;
      if (back && !dominates(b, y, x)) return false;
      if (!back) b->node[y].preds++;
    }
  }
  for (uint32_t i = b->reached; i-- > 0; ) {
    uint32_t h = b->rpo[i], n = 0;
    for (uint32_t e = head[h]; e != SHAPE_NONE; e = next[e]) {
      if (b->node[e / 2].order >= i) stack[n++] = e / 2;
    }
    if (n == 0) continue;
    b->node[h].header = true;
    b->node[h].outer = SHAPE_NONE;
    b->out->loops++;
    while (n) {
      uint32_t x = stack[--n];
      // Find the outermost known loop around x.
      uint32_t l = b->node[x].header ? x : b->node[x].loop;
      while (l != SHAPE_NONE && l != h && b->node[l].outer != SHAPE_NONE) {
        l = b->node[l].outer;
      }
      if (x == h || l == h) continue;
      uint32_t from = x;
      if (l == SHAPE_NONE) {
        b->node[x].loop = h;
      } else {
        b->node[l].outer = h;
        from = l;
      }
      for (uint32_t e = head[from]; e != SHAPE_NONE; e = next[e]) {
        bool back = b->node[e / 2].order >= b->node[from].order;
        if (!back && n < b->n * 2) stack[n++] = e / 2;
      }
    }
  }
  return true;
}

// Attaches each block to its dominator, with which it is emitted. If the
// dominator is in a loop and the block is not, the block is emitted after that
// loop.
static void place(Build *b) {
  for (uint32_t i = b->reached; i-- > 1; ) {
    uint32_t x = b->rpo[i], p = b->node[x].idom;
    bool behind = false;
    for (;;) {
      uint32_t l = b->node[p].header ? p : b->node[p].loop;
      if (l == SHAPE_NONE || in_loop(b, x, l)) break;
      behind = true;
      p = l;
      uint32_t outer = b->node[l].outer;
      if (outer == SHAPE_NONE || in_loop(b, x, outer)) break;
      p = outer;
    }
    Node *to = &b->node[p], *own = &b->node[x];
    if (behind) {
      own->next_after = to->after;
      to->after = x;
    } else {
      own->next = to->first;
      to->first = x;
    }
  }
}

static ShapeItem *item(Build *b, ShapeKind kind, ShapeWhen when, uint32_t x) {
  ShapeItem i = {.kind = (uint8_t)kind, .when = (uint8_t)when, .b = x,
                 .to = SHAPE_NONE};
  b->out->item[b->out->n] = i;
  return &b->out->item[b->out->n++];
}

static void open_region(Build *b, ShapeKind kind, uint32_t target) {
  item(b, kind, SHAPE_ALWAYS, 0);
  Open o = {target};
  b->open[b->opened++] = o;
}

static void close_region(Build *b) {
  item(b, SHAPE_END, SHAPE_ALWAYS, 0);
  b->opened--;
}

// Returns how many ONCEs and LOOPs a jump to block y leaves, or 0 if y is
// emitted at the jump.
static uint32_t levels(const Build *b, uint32_t y) {
  for (size_t k = b->opened; k-- > 0; ) {
    if (b->open[k].target == y) return (uint32_t)(b->opened - k);
  }
  return 0;
}

static void tree(Build *b, uint32_t x);

// Emits a jump to block y at the end of a region. Leaving only the innermost
// region needs no BREAK.
static void jump(Build *b, uint32_t y) {
  uint32_t n = levels(b, y);
  if (n == 0) tree(b, y);
  else if (n > 1) item(b, SHAPE_BREAK, SHAPE_ALWAYS, 0)->levels = n;
}

static void branch(Build *b, uint32_t x) {
  uint32_t yes = b->block[x].to[0], no = succ(b, x, 1);
  if (yes == SHAPE_NONE) {
    item(b, SHAPE_EXIT, SHAPE_ALWAYS, x);
  } else if (no == SHAPE_NONE) {
    jump(b, yes);
  } else if (levels(b, yes) == 1 && levels(b, no) > 1) {
    item(b, SHAPE_BREAK, SHAPE_FALSE, x)->levels = levels(b, no);
    // `yes` follows the region, so that control reaches it without a jump.
    jump(b, yes);
  } else if (levels(b, yes)) {
    item(b, SHAPE_BREAK, SHAPE_TRUE, x)->levels = levels(b, yes);
    jump(b, no);
  } else if (levels(b, no)) {
    item(b, SHAPE_BREAK, SHAPE_FALSE, x)->levels = levels(b, no);
    jump(b, yes);
  } else {
    item(b, SHAPE_IF, SHAPE_TRUE, x);
    jump(b, yes);
    item(b, SHAPE_ELSE, SHAPE_ALWAYS, x);
    jump(b, no);
    item(b, SHAPE_END, SHAPE_ALWAYS, x);
  }
}

// Opens a ONCE region, which a BREAK can leave, for each block of a list that
// needs one. The region of the last block is the outermost region. A block
// needs no region if its only predecessor is the block to which it is attached.
static uint32_t open_all(Build *b, uint32_t y, bool after) {
  if (y == SHAPE_NONE) return 0;
  const Node *own = &b->node[y];
  uint32_t n = open_all(b, after ? own->next_after : own->next, after);
  if (!after && own->preds < 2) return n;
  open_region(b, SHAPE_ONCE, y);
  return n + 1;
}

// Closes the ONCEs from the innermost outward, and emits the blocks that follow
// them. Does not emit the last block, but returns it; the caller emits it.
static uint32_t close_all(Build *b, uint32_t y, bool after) {
  uint32_t last = SHAPE_NONE;
  for (; y != SHAPE_NONE;
       y = after ? b->node[y].next_after : b->node[y].next) {
    if (!after && b->node[y].preds < 2) continue;
    if (last != SHAPE_NONE) tree(b, last);
    close_region(b);
    last = y;
  }
  return last;
}

// Emits block x, the blocks attached to x, and the blocks after the loop of x.
static void tree(Build *b, uint32_t x) {
  if (++b->depth > DEEPEST) {
    ctx_fail(b->cx, ERR_LIMIT, "branches nested more than %d deep", DEEPEST);
  }
  while (x != SHAPE_NONE) {
    const Node *own = &b->node[x];
    if (own->header) {
      open_all(b, own->after, true);
      open_region(b, SHAPE_LOOP, SHAPE_NONE);
      // A BREAK from this inner region starts the next iteration of the loop.
      open_region(b, SHAPE_ONCE, x);
    }
    item(b, SHAPE_BLOCK, SHAPE_ALWAYS, x);
    open_all(b, own->first, false);
    branch(b, x);
    uint32_t last = close_all(b, own->first, false);
    if (own->header) {
      if (last != SHAPE_NONE) tree(b, last);
      close_region(b);
      close_region(b);
      last = close_all(b, own->after, true);
    }
    x = last;
  }
  b->depth--;
}

// ---- superfluous ONCEs ----

typedef struct Region {
  // at: index of the item that opens the region. breaks: number of BREAKs that
  // leave this region, but no region around it.
  uint32_t at, breaks;
  bool counted;         // whether the region is a ONCE or a LOOP
  bool leads;           // whether the region is a ONCE whose first item is the
                        // BREAK that leaves it
} Region;

// The fate of an item: it is KEPT or REMOVED, or, if it is a ONCE, it becomes
// an IF (MADE_IF).
enum { KEPT, REMOVED, MADE_IF };
typedef struct Fates {
  Region *open;      // stack of open regions
  uint8_t *fate;     // by item
  uint32_t *end;     // for each ONCE, the index of its END
} Fates;

static bool opens(const ShapeItem *it) {
  return it->kind == SHAPE_ONCE || it->kind == SHAPE_LOOP ||
         it->kind == SHAPE_IF || it->kind == SHAPE_CASE;
}

static Region region_at(const ShapeItem *it, size_t i) {
  return (Region){.at = (uint32_t)i,
    .counted = it->kind == SHAPE_ONCE || it->kind == SHAPE_LOOP};
}

// Item i is a BREAK. Counts it for the outermost region that it leaves.
static void count_break(const ShapeItem *it, size_t i, Region *open,
                        size_t depth) {
  uint32_t left = it->levels;
  for (size_t k = depth; k-- > 0; ) {
    if (!open[k].counted || --left) continue;
    open[k].breaks++;
    open[k].leads = open[k].leads || (open[k].at + 1 == i &&
                                      it->when != SHAPE_ALWAYS);
    return;
  }
}

// Finds the ONCEs that no BREAK leaves, and the ONCEs that only their first
// item, a BREAK, leaves.
static void find_superfluous(const Shape *s, Fates *t) {
  size_t depth = 0;
  for (size_t i = 0; i < s->n; i++) {
    const ShapeItem *it = &s->item[i];
    if (opens(it)) {
      t->open[depth++] = region_at(it, i);
    } else if (it->kind == SHAPE_BREAK) {
      count_break(it, i, t->open, depth);
    } else if (it->kind == SHAPE_END) {
      Region r = t->open[--depth];
      t->end[r.at] = (uint32_t)i;
      if (s->item[r.at].kind != SHAPE_ONCE) continue;
      if (r.breaks == 0) t->fate[r.at] = REMOVED;
      else if (r.breaks == 1 && r.leads) t->fate[r.at] = MADE_IF;
    }
  }
}

// Reduces the number of levels that BREAKs leave: subtracts the ONCEs that are
// removed or become IFs.
static void recount_levels(Shape *s, const Fates *t) {
  size_t depth = 0;
  for (size_t i = 0; i < s->n; i++) {
    ShapeItem *it = &s->item[i];
    if (opens(it)) t->open[depth++] = region_at(it, i);
    else if (it->kind == SHAPE_END) depth--;
    if (it->kind != SHAPE_BREAK) continue;
    uint32_t left = it->levels;
    for (size_t k = depth; k-- > 0 && left; ) {
      if (!t->open[k].counted) continue;
      left--;
      if (t->fate[t->open[k].at] != KEPT) it->levels--;
    }
  }
}

// Turns ONCEs into IFs, and removes items. The condition of such an IF is the
// negated condition of the ONCE's BREAK.
static void replace_items(Shape *s, Fates *t) {
  for (size_t i = 0; i < s->n; i++) {
    ShapeItem *it = &s->item[i];
    if (it->kind != SHAPE_ONCE || t->fate[i] == KEPT) continue;
    if (t->fate[i] == REMOVED) {
      t->fate[t->end[i]] = REMOVED;
      continue;
    }
    const ShapeItem *first = &s->item[i + 1];
    *it = (ShapeItem){.kind = SHAPE_IF, .b = first->b, .to = SHAPE_NONE,
      .when = first->when == SHAPE_TRUE ? SHAPE_FALSE : SHAPE_TRUE};
    t->fate[i + 1] = REMOVED;
  }
  size_t kept = 0;
  for (size_t i = 0; i < s->n; i++) {
    if (t->fate[i] != REMOVED) s->item[kept++] = s->item[i];
  }
  s->n = kept;
}

// Removes each ONCE (a region that a BREAK can leave) that no BREAK leaves. If
// only the first item of a ONCE is a BREAK out of it, turns the ONCE into an
// IF. BREAKs across such a ONCE then leave fewer levels.
static void simplify(Build *b) {
  size_t n = b->out->n;
  Fates t = {.open = NEW(b->cx, Region, n + 1),
             .fate = NEW(b->cx, uint8_t, n + 1),
             .end = NEW(b->cx, uint32_t, n + 1)};
  memset(t.fate, KEPT, n + 1);
  find_superfluous(b->out, &t);
  recount_levels(b->out, &t);
  replace_items(b->out, &t);
}

// ---- irreducible graphs ----

static void next_block(Build *b, uint32_t x, ShapeWhen when, uint32_t y) {
  item(b, SHAPE_NEXT, when, x)->to = y;
}

static void dispatch(Build *b) {
  b->out->n = 0;
  b->out->dispatch = true;
  item(b, SHAPE_LOOP, SHAPE_ALWAYS, 0);
  for (uint32_t i = 0; i < b->reached; i++) {
    uint32_t x = b->rpo[i];
    item(b, SHAPE_CASE, SHAPE_ALWAYS, x);
    item(b, SHAPE_BLOCK, SHAPE_ALWAYS, x);
    uint32_t yes = b->block[x].to[0], no = succ(b, x, 1);
    if (yes == SHAPE_NONE) {
      item(b, SHAPE_EXIT, SHAPE_ALWAYS, x);
    } else if (no == SHAPE_NONE) {
      next_block(b, x, SHAPE_ALWAYS, yes);
    } else {
      next_block(b, x, SHAPE_TRUE, yes);
      next_block(b, x, SHAPE_FALSE, no);
    }
    item(b, SHAPE_END, SHAPE_ALWAYS, x);
  }
  item(b, SHAPE_END, SHAPE_ALWAYS, 0);
}

void shape_of(Ctx *cx, const ShapeBlock *block, uint32_t n, Shape *out) {
  Build b = {.cx = cx, .block = block, .n = n, .out = out};
  b.node = NEW(cx, Node, n);
  b.rpo = NEW(cx, uint32_t, n);
  out->item = NEW(cx, ShapeItem, MOST_ITEMS * (size_t)n + MOST_ITEMS);
  b.open = NEW(cx, Open, 4 * (size_t)n);
  for (uint32_t i = 0; i < n; i++) {
    b.node[i] = (Node){.order = SHAPE_NONE, .idom = SHAPE_NONE,
      .loop = SHAPE_NONE, .outer = SHAPE_NONE, .first = SHAPE_NONE,
      .next = SHAPE_NONE, .after = SHAPE_NONE, .next_after = SHAPE_NONE};
  }
  order(&b);
  dominators(&b);
  if (!loops(&b)) {
    dispatch(&b);
    return;
  }
  place(&b);
  tree(&b, 0);
  simplify(&b);
}
// SPDX-License-Identifier: MIT
