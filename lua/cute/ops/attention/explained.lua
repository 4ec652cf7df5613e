--- Describes the kernel that an operation of attention uses, as a table and as
-- text.
local core = require "cute.core"
local tensor_op = require "cute.ops.tensor_op"

local explained = {}

local Explained = {}
Explained.__index = Explained
function Explained.__tostring(e) return e.text end

-- Returns the text with x in it, or no text if x is nil.
local function with(text, x) return x and text:format(x) or "" end

-- Returns the text of c, a plan's field `chosen`. The text has the problem, the
-- chosen kernel, and the reason why Hopper's kernel was not chosen.
local function text_of(c, arch)
  local q, o = c.problem, c.options or {}
  local out = {("%s rows, %d keys, %d heads of %d that share %d, %s, on "
    .. "%s"):format(q.ragged and q.S or ("%d x %d"):format(q.B, q.S), q.T, q.H,
    q.D, q.G, q.dtype, arch),
    "  " .. c.name .. with(", tile %s", o.tile and table.concat(o.tile, "x"))
      .. with(", %d stages", o.stages)
      .. with(", %d blocks for each tile of keys", o.splits ~= 1 and o.splits)
      .. with(", %s", c.how)}
  if c.refused then
    out[3] = ("  not %s: %s"):format(c.hopper, c.refused)
  end
  return table.concat(out, "\n")
end

--- Returns a description of the kernel of a plan: {kernel, tile, stages,
-- splits, how = "measured" or "by rule", refused = {{kernel, reason}}, text,
-- trace()}. tostring returns the text. Reads plan.chosen: {name = the chosen
-- kernel, hopper = Hopper's kernel, how, refused = why Hopper's kernel is not
-- used, options, problem}.
---@param nothing string the error message if no kernel is launched
function explained.of(plan, call, nothing)
  local c = plan.chosen
  if not c then core.fail("bad-argument", nothing) end
  local o = c.options or {}
  return setmetatable({kernel = c.name, stages = o.stages, splits = o.splits,
    how = c.how, tile = o.tile and {table.unpack(o.tile)},
    refused = c.refused and {{c.hopper, c.refused}} or {},
    text = text_of(c, plan.device.arch),
    trace = function() return tensor_op.trace(plan, call) end}, Explained)
end

return explained
-- SPDX-License-Identifier: MIT
