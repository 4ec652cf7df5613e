--- Lesson: the algebra of layouts.
local cute = require "cute"

-- Reports whether two layouts have the same offsets.
local function same(l, want)
  if cute.size(l) ~= cute.size(want) then
    return nil, ("%s has %d elements, and should have %d"):format(l,
      cute.size(l), cute.size(want))
  end
  for i = 0, cute.size(want) - 1 do
    if l(i) ~= want(i) then
      return nil, ("%s: element %d is at %s, and should be at %s"):format(l, i,
        l(i), want(i))
    end
  end
  return true
end

return {
  title = "The algebra of layouts",
  text = [==[
Layouts are functions, so they can be composed. `composition(a, b)` is
`a(b(i))`: b selects coordinates of a. A part of a matrix is therefore a
layout, too, and needs no copy.

```lua
a = cute.layout "(4,8):(8,1)"
cute.composition(a, cute.layout "8:4")  --> 8:1
cute.composition(a, cute.layout "(4,4):(1,8)")  --> (4,4):(8,2)
```

A single number is a coordinate of the whole layout: the first mode runs
fastest. `8:4` steps by 4, past the 4 rows: it is row 0. `(4,4):(1,8)` takes
all rows of every second column.

A *divide* cuts a layout into tiles: one mode is inside a tile, the other
counts the tiles. `zipped_divide` returns ((tile), (rest)).

```lua
cute.zipped_divide(a, {2, 4})  --> ((2,4),(2,2)):((8,1),(16,4))
cute.size(cute.zipped_divide(a, {2, 4}), 1)  --> 4
```

A tile is 2x4 with a's strides. The next tile is 16 further down and 4 across.
A kernel finds its block's part of a matrix in this way: `local_tile` divides
and takes one tile.

The inverse operation is a *product*, which repeats a layout. `blocked_product`
and `tile_to_shape` make large layouts from small ones.

```lua
small = cute.layout "(2,2):(2,1)"
cute.blocked_product(small, cute.layout "3:1")  --> ((2,3),(2,1)):((2,4),(1,0))
cute.tile_to_shape(small, {4, 4})  --> ((2,2),(2,2)):((2,4),(1,8))
```

`coalesce` returns the shortest form of a layout, `complement` the offsets that
a layout leaves out, and `right_inverse` the layout from offsets to
coordinates. `cute.explain` reports the steps of an operation:

```lua
lines = {}
r = cute.explain(function()
  return cute.logical_divide(cute.layout "16:3", cute.layout "4:1")
end, function(line) lines[#lines + 1] = line end)
r  --> (4,4):(3,12)
#lines > 2  --> true
```

Exercise: `a` is 8x8, row-major. Make `l` the layout of its every second row:
4x8.

```exercise every
a = cute.make_layout({8, 8}, {8, 1})
l = a
```

Exercise: cut `a` into tiles of 2x4, so that `l(i, j)` is element i of tile j.

```exercise tiles
a = cute.make_layout({8, 8}, {8, 1})
l = cute.logical_divide(a, {2, 4})
```
]==],
  exercises = {
    every = {
      makes = "l",
      hints = {"As a coordinate of a, one row further is 1, one column 8.",
        "Compose a with a layout of shape (4,8)."},
      solution = [[
a = cute.make_layout({8, 8}, {8, 1})
l = cute.composition(a, cute.layout "(4,8):(2,8)")]],
      check = function(env)
        return same(env.l, cute.layout "(4,8):(16,1)")
      end,
    },
    tiles = {
      makes = "l",
      hints = {"logical_divide leaves each mode where it is: (tile, rest) by "
        .. "mode.", "zipped_divide gathers the tiles' modes."},
      solution = [[
a = cute.make_layout({8, 8}, {8, 1})
l = cute.zipped_divide(a, {2, 4})]],
      check = function(env)
        local l = env.l
        if cute.rank(l) ~= 2 or cute.size(l, 0) ~= 8 then
          return nil, ("%s has modes of %s and %s elements; a tile has 8")
            :format(l, cute.size(l, 0), cute.size(l, 1))
        end
        return same(l, cute.layout "((2,4),(4,2)):((8,1),(16,4))")
      end,
    },
  },
}
-- SPDX-License-Identifier: MIT
