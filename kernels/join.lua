--- Sums of warps that share K, put together through shared memory in the order
-- of the warps.
local core = require "cute.core"
local cute = require "cute"

local join = {}

--- How sums of MT x NT MMAs are shared out among `warps` of them: so many along
-- each mode, and how many warps have some then.
---@param warps integer
---@return integer wm
---@return integer wn
function join.shares(warps, MT, NT)
  local wm = core.gcd(MT, warps)
  return wm, core.gcd(NT, warps // wm)
end

--- f32 of shared memory that it takes.
function join.size(block, MT, NT) return 4 * block * MT * NT end

--- Leaves in `out`, (4,MT/wm,NT/wn), this thread's share of the sums of all
-- warps, (4,MT,NT) each; of the first wm * wn of them only.
---@param sums any
---@param out any
---@param s any shared memory of f32, (4,block,MT*NT)
---@param o {warps: integer, warp: any, side: integer, at: any, tid: any,
-- wm: integer, wn: integer}
-- warps: that share K; warp: this one's number; side: threads that have the
-- same part of K, at: this one's index among them
function join.run(sums, out, s, o)
  if o.warps == 1 then
    out:store(sums:load())
    return
  end
  local MT, NT, wm, wn = cute.size(sums, 1), cute.size(sums, 2), o.wm, o.wn
  for j = 0, NT - 1 do
    for i = 0, MT - 1 do
      cute.autovec_copy(cute.coalesce(sums(cute._, i, j)),
                        s(cute._, o.tid, j * MT + i))
    end
  end
  cute.arch.sync_threads()
  local function reduce()
    for j = 0, NT // wn - 1 do
      for i = 0, MT // wm - 1 do
        local parts = {}
        for w = 0, o.warps - 1 do
          parts[w] = cute.make_rmem_tensor({4}, cute.f32)
          cute.autovec_copy(s(cute._, w * o.side + o.at, (j * wn + o.warp // wm)
            * MT + i * wm + o.warp % wm), parts[w])
        end
        local sum = parts[0]:load()
        for w = 1, o.warps - 1 do sum = sum + parts[w]:load() end
        cute.coalesce(out(cute._, i, j)):store(sum)
      end
    end
  end
  if wm * wn == o.warps then reduce()
  else cute.when(cute.lt(o.warp, wm * wn), reduce) end
end

return join
