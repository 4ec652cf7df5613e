--- Returns problem sizes that expose errors in kernels. Each mode alone, and
-- then all modes together, get the extent 1 or a ragged extent. Each mode alone
-- also gets one tile less and one tile more.
local core = require "cute.core"

local sizes = {}

local TILE = 16

-- Returns the values to check for a mode besides its extent. These are 1, one
-- tile less, one tile more, and finally a value that is not a multiple of the
-- tile.
local function others(extent, tile, i)
  local list = {}
  for _, x in ipairs {1, extent - tile, extent + tile,
                      extent - tile // 2 - i} do
    if x >= 1 and x ~= extent then list[#list + 1] = x end
  end
  return list
end

--- Returns the sizes to check for a base size, each once. The base size comes
-- first.
---@param base integer[]
---@param tile? integer[] extents of a tile; 16 when absent
---@return integer[][]
function sizes.around(base, tile)
  local list, known, ones, ragged = {}, {}, {}, {}
  local function add(size)
    local key = table.concat(size, "x")
    if not known[key] then known[key], list[#list + 1] = true, size end
  end
  add(base)
  for i, x in ipairs(base) do
    local more = others(x, tile and tile[i] or TILE, i)
    ones[i], ragged[i] = 1, more[#more] or x
    for _, y in ipairs(more) do
      local size = table.move(base, 1, #base, 1, {})
      size[i] = y
      add(size)
    end
  end
  add(ones)
  add(ragged)
  return list
end

--- Returns the first line of the error with which a kernel rejects a size.
-- Lua's own errors ("attempt to ...") and unknown names are mistakes of the
-- script at any size, and are raised again.
---@param why any
---@return string
function sizes.refusal(why)
  local text = tostring(type(why) == "table" and why.message or why)
  if text:find "attempt to " or text:find "%[unknown%-name%]" then
    error(why, 0)
  end
  return core.visible(text:match "^[^\n]*")
end

--- Returns a list of {size =, verdict =, why =} as lines of text: one line for
-- each verdict, and one line with the reason for each rejected size.
---@param list table[]
---@return string[]
function sizes.told(list)
  local by, text = {}, {}
  for _, s in ipairs(list) do
    local key = s.verdict .. (s.why and ": " .. s.why or "")
    by[key] = by[key] or {}
    table.insert(by[key], table.concat(s.size, "x"))
  end
  for _, verdict in ipairs {"ok", "bug", "incomplete", "refused"} do
    for _, s in ipairs(list) do
      local why = s.why and ": " .. s.why or ""
      local at = s.verdict == verdict and by[verdict .. why]
      if at then
        text[#text + 1] = ("%s at %s%s"):format(verdict,
          table.concat(at, ", "), why)
        by[verdict .. why] = nil
      end
    end
  end
  return text
end

return sizes
-- SPDX-License-Identifier: MIT
