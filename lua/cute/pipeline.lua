--- cute.pipeline: a ring of stages between producers and consumers.
--
-- A tile travels through one stage of shared memory:
--
--         producer_acquire    producer_commit    consumer_wait
--     empty -----------> filling -----------> full ---------> being read
--       ^                                                        |
--       +------------------- consumer_release -------------------+
--
-- With cp.async every thread is both producer and consumer. A thread starts
-- copies for a stage, closes them as a group (commit), and continues. Later it
-- waits for the group of the stage that it wants to read (wait). This wait
-- covers only the thread's own copies, so the threads of the block then
-- synchronize at a barrier. Groups complete in the order in which they were
-- committed. To wait for the oldest of n + 1 groups, a thread therefore waits
-- until at most n groups are pending (cp.async.wait_group n).
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
--       pipe:consumer_wait(read)                 -- tile k is loaded
--       ...                                      -- read stage read.index
--       pipe:consumer_release(read)
--       read:advance()
--       pipe:producer_acquire(write)
--       cute.when(cute.lt(k + 2, tiles), ...)    -- copy tile k + 2
--       pipe:producer_commit(write)              -- a group, empty at the end
--       write:advance()
--     end
--     pipe:producer_tail(write)                  -- no copies are pending now
--
-- On Hopper, producers and consumers are different warps. Each stage has two
-- mbarriers, which signal that it is full and that it is empty:
--
--     local pipe = cute.pipeline.PipelineTmaAsync {
--       num_stages = 4, tx_count = BYTES,
--       producer_group = Group(Agent.Thread),
--       consumer_group = Group(Agent.Warp, 8)}
--     cute.when(is_producer, function()       -- one thread
--       local write = pipe:make_producer_state()
--       for k in cute.range(tiles) do
--         pipe:producer_acquire(write)        -- empty; expects the bytes
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
-- `cute.pipe.state` defines the positions in a ring, `cute.pipe.sync` the
-- synchronization objects, and `cute.pipe.stages` the pipelines.
local sign = require "cute.lang.signature"
local pipeline = {}

for _, part in ipairs {"state", "sync", "stages"} do
  for name, v in pairs(require("cute.pipe." .. part)) do pipeline[name] = v end
end

return sign.module("cute.pipeline", pipeline)
-- SPDX-License-Identifier: MIT
