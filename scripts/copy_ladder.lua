-- The copy ladder: every rung in one process, each against the one before and
-- against the driver's own copy.
--
--   cutelua scripts/copy_ladder.lua
--   cutelua scripts/copy_ladder.lua --m 65536 --n 8192 --record copies.tsv
-- On a GPU: TB/s, all rungs interleaved. On the simulator: what each asks of
-- memory.
local copylesson = require "cute.bench.copylesson"
local lib = require "cute.bench.lessonlib"

-- script, and what it adds to the one before it.
local SCRIPTS = {
  {"copy_basic", "an element a thread, through shared memory"},
  {"copy_vector", "16 bytes a thread"},
  {"copy_async", "past the registers on the way in"},
  {"copy_swizzled", "no bank conflicts"},
  {"copy_tile", "no shared memory, a vector a thread"},
}

local rungs = {}

local function add(spec, name, kernel, gain)
  rungs[#rungs + 1] = {name = name, kernel = kernel, tile = spec.tile,
                       block = spec.block, gain = gain}
end

for _, s in ipairs(SCRIPTS) do
  local spec = lib.must({name = "copy_ladder"}, lib.script_spec(
    lib.folder() .. s[1] .. ".lua", "cute.bench.copylesson", "run"))
  for _, c in ipairs(spec.compare or {}) do
    add(spec, c.name, c.kernel, "another order of threads on the way out")
  end
  add(spec, s[1], spec.kernel, s[2])
end

copylesson.run(arg, {
  rungs = rungs, about = "All rungs of the copy ladder in one table.",
})
