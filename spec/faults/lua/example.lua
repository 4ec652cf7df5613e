-- The example of the error kind `lua` in docs/errors.md.
-- expect: cutelua: attempt to perform arithmetic on a nil value (field 'bn')
--   [lua]
-- expect: spec/faults/lua/example.lua:8 in main chunk
-- expect: 'tile.bn' is nil: did you mean tile.bm?

local tile = {bm = 128}  -- wrong
local threads = tile.bn * 2        -- arithmetic on nil: there is no bn  -- wrong
-- mend: local tile = {bm = 128, bn = 64}
-- mend: local threads = tile.bn * 2
