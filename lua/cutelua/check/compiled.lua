--- Notes on a program's compiled code: descriptors that the compiler filled
-- only partly (cutelua.text.descriptors).
local asm = require "cutelua.text.asm"
local core = require "cute.core"
local descriptors = require "cutelua.text.descriptors"
local kernel = require "cute.lang.kernel"

local compiled = {}

-- The first version of NVRTC in which the fault was not found: code that writes
-- only half of a descriptor.
local MENDED = 13.2

-- The notes of each program that was examined before.
local seen = setmetatable({}, {__mode = "k"})

--- Returns a sentence for each unwritten half of a descriptor in a listing of
-- SASS. places: the lines of the script by line of the CUDA C.
---@param listing {text: string[], at: (integer|false)[]}
---@param places table<integer, string>
---@param version string of NVRTC
---@return string[]
function compiled.sentences(listing, places, version)
  local notes = {}
  for i, d in ipairs(descriptors.unwritten(listing.text)) do
    local place = places[listing.at[d.index]]
    notes[i] = ("%sNVRTC %s made code that reads UR%d, half of a descriptor, "
      .. "which no instruction writes: %s; compile with NVRTC %.1f or newer")
      :format(place and place .. ": " or "", version, d.register,
              listing.text[d.index]:match "^%s*(.-)%s*$", MENDED)
  end
  return notes
end

--- Returns notes on the code that NVRTC makes of a program for its target, from
-- sm_100 on. There are no notes without NVRTC and nvdisasm, for newer versions
-- of NVRTC, and for kernels in PTX.
---@param program table
---@return string[]
function compiled.notes(program)
  if seen[program] then return seen[program] end
  seen[program] = {}
  local sm = tonumber(program.arch and program.arch:match "^sm_(%d+)")
  local version = sm and sm >= 100 and core.nvrtc_version()
  if not version or tonumber(version) >= MENDED
      or not kernel.has_cuda(program, program.arch)
      or not asm.disassembler() then
    return seen[program]
  end
  local ok, made = pcall(program.compile, program, program.arch, true)
  if not (ok and made) then return seen[program] end
  local _, places, name = program:cuda(program.arch)
  local listing = asm.of_cubin(made.cubin, name)
  if listing then
    seen[program] = compiled.sentences(listing, places, version)
  end
  return seen[program]
end

return compiled
-- SPDX-License-Identifier: MIT
