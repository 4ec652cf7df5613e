--- Lesson: what a layout is.
return {
  title = "What a layout is",
  text = [==[
A GPU kernel has to know which thread owns which element, and at which address.
CuTe answers both with one idea. A *layout* is a function from coordinates to
offsets. It is written `shape:stride`. The offset of a coordinate is the sum of
its numbers times the strides.

```lua
cute.make_layout({4, 8}, {8, 1})  --> (4,8):(8,1)
l = cute.layout "(4,8):(8,1)"
l(2, 3)  --> 19
```

`2 * 8 + 3 * 1 = 19`. This is C's row-major order: the second coordinate runs
along memory. Without strides a layout is column-major, as in Fortran.

```lua
cute.make_layout({4, 8})  --> (4,8):(1,4)
```

A drawing shows all offsets at once, rows down, columns across.

```draw
cute.layout "(4,8):(8,1)"
```

Strides may leave gaps (a row of 8 in a matrix of 100 columns) or repeat
elements (with stride 0, each row is the same memory). Modes may be nested: a
mode of shape `(2,2)` has two strides of its own. Modes and coordinates count
from 0.

```lua
cute.layout("(4,8):(100,1)")(1, 0)  --> 100
cute.layout("(4,8):(0,1)")(3, 5)  --> 5
blocked = cute.layout "((2,2),(2,2)):((1,4),(2,8))"
blocked(1, 1)  --> 3
blocked(2, 0)  --> 4
```

`blocked` is 4x4, and each of its 2x2 blocks is contiguous in memory:

```draw
cute.layout "((2,2),(2,2)):((1,4),(2,8))"
```

Its rows have the nested shape `(2,2)`. A plain number is also a coordinate of
a nested mode. Its first part runs fastest, so row 2 is `(0,1)`.

Exercise: make `l` the layout of a row-major matrix of 6 rows and 10 columns,
in memory whose rows are 16 elements long.

```exercise rows
l = cute.make_layout({6, 10}, {10, 1})
```

Exercise: make a nested layout. `l` is 4x8 and consists of 2x4 blocks. A block
is 8 contiguous elements, row-major inside. The blocks follow each other,
row-major, too.

```exercise blocks
l = cute.layout "((2,2),(4,2)):((1,1),(1,1))"
```
]==],
  exercises = {
    rows = {
      makes = "l",
      hints = {"One row further is 16 elements further.",
        "The stride of the rows need not be the number of columns."},
      solution = "l = cute.make_layout({6, 10}, {16, 1})",
      check = function(env)
        for i = 0, 5 do
          for j = 0, 9 do
            if env.l(i, j) ~= 16 * i + j then
              return nil, ("l(%d, %d) is %s, and should be %d"):format(i, j,
                env.l(i, j), 16 * i + j)
            end
          end
        end
        return require "cute".size(env.l) == 60,
          ("l has %s elements, and should have 60"):format(
            require "cute".size(env.l))
      end,
    },
    blocks = {
      makes = "l",
      hints = {"Write what each of the four numbers of a coordinate adds: row "
        .. "in the block, block row, column in the block, block column.",
        "A row of a block has 4 elements, a block 8, a row of blocks 16."},
      solution = 'l = cute.layout "((2,2),(4,2)):((4,16),(1,8))"',
      check = function(env)
        for i = 0, 3 do
          for j = 0, 7 do
            local want = i // 2 * 16 + j // 4 * 8 + i % 2 * 4 + j % 4
            if env.l(i, j) ~= want then
              return nil, ("l(%d, %d) is %s, and should be %d"):format(i, j,
                env.l(i, j), want)
            end
          end
        end
        return true
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
