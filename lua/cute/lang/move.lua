--- Copies and fills on a GPU where layouts differ or have gaps: a kernel moves
-- the elements. (Those that are whole are the driver's, core/bind/devlib.c.)
local core = require "cute.core"
local arch = require "cute.arch"
local kernel = require "cute.lang.kernel"
local trace = require "cute.lang.trace"

local move = {}

local BLOCK = 256

--- dst = src, element by element in colexicographic order, converted.
move.kernel = kernel.kernel("move_elements", {block = BLOCK},
  function(dst, src)
    local i = arch.block_idx() * BLOCK + arch.thread_idx()
    trace.when(i:lt(core.size(dst)), function()
      dst[i] = src[i]:to(dst.element_type)
    end)
  end)

--- Queues the copy of a tensor to another of its size, both on one GPU.
---@param dst cute.Tensor
---@param src cute.Tensor
---@param stream? any
---@return boolean done false: they have more elements than a grid threads
function move.copy(dst, src, stream)
  local n = core.size(dst)
  if n >= 1 << 31 then return false end
  move.kernel(dst, src):launch {grid = (n + BLOCK - 1) // BLOCK,
                                stream = stream}
  return true
end

return move
