--- `cutelua draw LAYOUT`: draws a layout, a swizzle or an atom in the terminal
-- or as a file.
local cli = require "cutelua.program.cli"
local core = require "cute.core"
local cute = require "cute"
local draw = require "cutelua.draw"

local main = {}

local SPEC = {
  name = "draw", script = "draw",
  about = "Draws a layout or a swizzle in CuTe's notation, or an atom by its "
    .. 'name: cutelua draw "(8,4):(4,1)", "Sw<2,0,3> o 0 o (8,8):(8,1)", '
    .. "SM80_16x8x16_F32BF16BF16F32_TN.",
  args = {name = "LAYOUT", help = "the layout, in quotes", required = true},
  options = {
    {"-o", "file", key = "output", help = "writes a file, which ends in .svg "
      .. ".html .tex or .txt"},
    {"--tile", "string", place = "M,N", pattern = "^%d+,%d+$",
     want = "two extents M,N",
     help = "draws a thread-value layout on a tile of M x N"},
    {"--by", "choice",
     choices = {"offset", "thread", "value", "bank", "none"},
     help = "what the colours show"},
    {"--dtype", "string", help = "element type, for banks"},
    {"--limit", "int", min = 1, max = 1 << 20,
     help = "the most cells (default 32768)"},
    {"--title", "string", help = "the picture's title"},
  },
}

-- Returns the atom with this name, or nil.
local function atom(name)
  if not name:find "^SM%d" then return nil end
  local is_mma, mma = pcall(cute.make_mma_atom, name)
  if is_mma then return mma end
  local is_copy, copy = pcall(cute.make_copy_atom, name, cute.f32)
  if is_copy then return copy end
  core.fail("unknown-name", ("draw: no atom '%s'\n  nearest MMA atoms: %s\n  "
    .. "nearest copy atoms: %s"):format(core.visible(name),
    mma:match "nearest: ([^\n]*)" or "none",
    copy:match "nearest: ([^\n]*)" or "none"))
end

-- Returns the two integers of a text "M,N"; nil without text.
local function pair(text)
  if not text then return nil end
  local m, n = text:match "^(%d+),(%d+)$"
  m, n = math.tointeger(tonumber(m)), math.tointeger(tonumber(n))
  if not (m and n and m > 0 and n > 0) then
    core.fail("bad-argument", ("draw: --tile %s: two extents of 1 or more are "
      .. "needed"):format(text))
  end
  return {m, n}
end

--- Runs `cutelua draw ...`; returns an exit code.
---@param words string[]
---@return integer
function main.main(words)
  local opt = cli.parse(words, SPEC)
  local text = opt.args[1]
  draw.draw(atom(text) or text, {file = opt.output, tile = pair(opt.tile),
    by = opt.by, dtype = opt.dtype, limit = opt.limit, title = opt.title})
  return 0
end

return main
-- SPDX-License-Identifier: MIT
