--- cute.pipeline: a circular buffer of stages between those who fill them and
-- those who read them.
--
-- A tile travels through one stage of shared memory:
--
--         producer_acquire    producer_commit    consumer_wait
--     empty -----------> filling -----------> full ---------> being read
--       ^                                                        |
--       +------------------- consumer_release -------------------+
--
-- With cp.async every thread is both: it starts copies for a stage, closes
-- them as a group (commit), and goes on; later it waits until the group of the
-- stage it wants to read has landed (wait), which orders its own copies only,
-- so the threads of the block then meet at a barrier. Groups land in the order
-- in which they were committed: waiting for the oldest of n + 1 groups means
-- "at most n are still on their way". That n is all that the pipeline keeps.
--
--     local pipe = cute.pipeline.PipelineCpAsync {num_stages = 3}
--     local write = pipe:make_producer_state()
--     local read = pipe:make_consumer_state()
--     for k = 0, 1 do                            -- prologue: stages - 1 tiles
--       pipe:producer_acquire(write)
--       cute.copy(tiled_copy, tAgA(_, k), tAsA(_, write.index))
--       pipe:producer_commit(write)
--       write:advance()
--     end
--     for k in cute.range(tiles) do
--       pipe:consumer_wait(read)                 -- the tile k is here
--       ...                                      -- read stage read.index
--       pipe:consumer_release(read)
--       read:advance()
--       pipe:producer_acquire(write)
--       cute.when(cute.lt(k + 2, tiles), ...)    -- copy tile k + 2
--       pipe:producer_commit(write)              -- a group, empty at the end
--       write:advance()
--     end
--     pipe:producer_tail(write)                  -- nothing is on its way now
--
-- On Hopper those who fill and those who read are different warps, and two
-- mbarriers a stage say when it is full and when it is empty:
--
--     local pipe = cute.pipeline.PipelineTmaAsync {
--       num_stages = 4, tx_count = BYTES,
--       producer_group = Group(Agent.Thread),
--       consumer_group = Group(Agent.Warp, 8)}
--     cute.when(is_producer, function()       -- one thread
--       local write = pipe:make_producer_state()
--       for k in cute.range(tiles) do
--         pipe:producer_acquire(write)        -- empty; so many bytes will come
--         cute.copy(tma, tAgA(_, k), tAsA(_, write.index),
--                   {tma_bar_ptr = pipe:producer_get_barrier(write)})
--         write:advance()
--       end
--       pipe:producer_tail(write)
--     end, function()
--       local read = pipe:make_consumer_state()
--       for k in cute.range(tiles) do
--         pipe:consumer_wait(read)
--         ...                                 -- read stage read.index
--         pipe:consumer_release(read)
--         read:advance()
--       end
--     end)
--
-- `cute.pipe.state` has the places in a ring, `cute.pipe.sync` what threads
-- meet at, `cute.pipe.stages` the pipelines.
local sign = require "cute.lang.signature"
local pipeline = {}

for _, part in ipairs {"state", "sync", "stages"} do
  for name, v in pairs(require("cute.pipe." .. part)) do pipeline[name] = v end
end

return sign.module("cute.pipeline", pipeline)
