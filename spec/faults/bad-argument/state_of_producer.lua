-- Fault: the consumer of a pipeline waits with a producer's state.
-- expect: cutelua: PipelineAsync:consumer_wait: the state was made for a
--   producer, whose first phase is 1 [bad-argument]
-- expect: spec/faults/bad-argument/state_of_producer.lua:27 in f
-- expect: write make_consumer_state() of the pipeline
local cute = require "cute"
local P, arch = cute.pipeline, cute.arch
local Y = cute.zeros({256}, cute.f32)
cute.kernel("k", function(y)
  local g = P.CooperativeGroup(P.Agent.Thread, 64)
  local p = P.PipelineAsync {num_stages = 2, producer_group = g,
                             consumer_group = g}
  local s = cute.make_smem_tensor(cute.f32, cute.make_layout {64, 2})
  local t = arch.thread_idx()
  cute.when(t:lt(64), function()
    local at = P.make_pipeline_state("producer", 2)
    for i in cute.range(4) do
      p:producer_acquire(at)
      s[{t, at.index}] = i:to(cute.f32)
      p:producer_commit(at)
      at:advance()
    end
  end, function()
    local at = P.make_pipeline_state("producer", 2)  -- wrong
    -- mend: local at = p:make_consumer_state()
    for i in cute.range(4) do
      p:consumer_wait(at)
      y[t - 64 + i * 64] = s[{127 - t, at.index}]
      p:consumer_release(at)
      at:advance()
    end
  end)
end)(Y):launch {grid = 1, block = 128, device = "sim:sm_90a", seed = 1}
