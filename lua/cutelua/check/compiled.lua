--- Finds faults in a program's compiled code: descriptors of which the compiler
-- wrote only a part (cutelua.text.descriptors).
local asm = require "cutelua.text.asm"
local core = require "cute.core"
local descriptors = require "cutelua.text.descriptors"
local kernel = require "cute.lang.kernel"

local compiled = {}

-- The first version of NVRTC without the fault. Older versions may write only
-- half of a descriptor.
local MENDED = 13.2

-- The notes on each program that was examined before.
local seen = setmetatable({}, {__mode = "k"})

--- Returns a sentence for each unwritten half of a descriptor in a SASS
-- listing. `places` maps lines of the CUDA C to lines of the script.
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

--- Returns notes on the code that NVRTC generates for a program. Only targets
-- from sm_100 on and NVRTC versions with the fault are examined; PTX kernels
-- are not. Without NVRTC or nvdisasm, there are no notes.
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
