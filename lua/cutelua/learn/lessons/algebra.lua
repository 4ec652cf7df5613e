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
  title = "Layouts are calculated with",
  text = [==[
Layouts are functions, so they can be put one behind another. `composition(a,
b)` is `a(b(i))`: b chooses coordinates of a. With it a part of a matrix is a
layout, too, and no copy is made.

```lua
a = cute.layout "(4,8):(8,1)"
cute.composition(a, cute.layout "8:4")  --> 8:1
cute.composition(a, cute.layout "(4,4):(1,8)")  --> (4,4):(8,2)
```

One number is a coordinate of the whole layout: the first mode runs fastest.
`8:4` walks in steps of 4, past the 4 rows: it is row 0. `(4,4):(1,8)` takes
all rows of every second column.

A *divide* cuts a layout into tiles: what is in a tile, and which tile.
`zipped_divide` gives ((tile), (rest)).

```lua
cute.zipped_divide(a, {2, 4})  --> ((2,4),(2,2)):((8,1),(16,4))
cute.size(cute.zipped_divide(a, {2, 4}), 1)  --> 4
```

A tile is 2x4 with a's strides; from one tile to the next it is 16 down and 4
across. This is how a kernel finds its block's part of a matrix: `local_tile`
divides and takes one tile.

The other way about: a *product* repeats a layout. `blocked_product` and
`tile_to_shape` make big layouts of small ones.

```lua
small = cute.layout "(2,2):(2,1)"
cute.blocked_product(small, cute.layout "3:1")  --> ((2,3),(2,1)):((2,4),(1,0))
cute.tile_to_shape(small, {4, 4})  --> ((2,2),(2,2)):((2,4),(1,8))
```

`coalesce` writes a layout as short as it can be, `complement` is what a layout
leaves out, `right_inverse` goes back from offsets to coordinates. What each
step does is told by `cute.explain`:

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

And cut `a` into tiles of 2x4, so that `l(i, j)` is element i of tile j.

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
