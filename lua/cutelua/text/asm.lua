--- Makes listings of a program's compiled code: of the PTX from NVRTC and, if
-- nvdisasm is found, of the SASS in the program's CUBIN. Each line of a listing
-- is related to a line of CUDA C.
--
-- A listing has text = {line, ...} and at = {line of the CUDA C or false, ...}.
-- A listing of SASS also has live = {number of live registers, ...}.
local compiler = require "cutelua.text.compiler"
local core = require "cute.core"

local asm = {}

local function lines_of(text) return (text .. "\n"):gmatch "([^\n]*)\n" end

--- Returns a listing of PTX that has line information. Omits the directives
-- .loc and .file, and the sections for debuggers.
---@param text string
---@return {text: string[], at: (integer|false)[]}
function asm.ptx(text)
  local out, at = {text = {}, at = {}}, compiler.ptx_lines(text)
  local n, inside, begun = 0, false, false
  for line in lines_of(text) do
    n = n + 1
    if line:find "^%s*%.section" or line:find "^%s*%.file" then break end
    inside = inside or line:find "^{" ~= nil
    begun = begun or line:find "^%.version" ~= nil
    local plain = line:gsub("^\t", "  "):gsub("%s*\t%s*", " ")
      :gsub("%s+$", "")
    if begun and plain ~= "" and not line:find "^%s*%.loc%s" then
      out.text[#out.text + 1] = plain
      out.at[#out.text] = inside and at[n]
    end
    if line:find "^}" then inside = false end
  end
  return out
end

---------------------------------------------------------------------------
-- SASS
---------------------------------------------------------------------------

-- A shell script that searches for nvdisasm in the CUDA toolkit and in Python
-- packages.
local FIND = [[
own=${VIRTUAL_ENV:-/usr}/lib/python3* home=$HOME/.local/lib/python3*
all=/usr/local/lib/python3*
for d in "$CUDA_HOME/bin" "$CUDA_PATH/bin" /usr/local/cuda/bin \
    /usr/local/cuda-*/bin $own/site-packages/nvidia/*/bin \
    $home/site-packages/nvidia/*/bin $all/dist-packages/nvidia/*/bin \
    $own/site-packages/triton/backends/nvidia/bin \
    $home/site-packages/triton/backends/nvidia/bin \
    $all/dist-packages/triton/backends/nvidia/bin
do
  [ -x "$d/nvdisasm" ] && echo "$d/nvdisasm" && exit
done
command -v nvdisasm]]

local found

--- Returns the path of nvdisasm, or nil and a message.
---@return string? path
---@return string? message
function asm.disassembler()
  if found == nil then
    local p <close> = io.popen(FIND)
    found = p and p:read "l" or false
  end
  if found then return found end
  return nil, "nvdisasm was not found (looked in $CUDA_HOME, $CUDA_PATH, "
    .. "/usr/local/cuda*, python's nvidia packages and $PATH) [io]"
end

local function quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- Returns nvdisasm's output for a CUBIN; nil and the reason if there is none.
local function disassembled(cubin, options)
  local path, why = asm.disassembler()
  if not path then return nil, why end
  local name = os.tmpname()
  local _ <close> = setmetatable({}, {__close = function() os.remove(name) end})
  local f <close> = assert(io.open(name, "wb"))
  f:write(cubin)
  f:close()
  local p = io.popen(("%s %s %s 2>&1"):format(quoted(path), options,
                                            quoted(name)))
  local text = p:read "a"
  local ok = p:close()
  if ok then return text end
  return nil, ("nvdisasm failed: %s [io]"):format(text:match "[^\n]+" or "?")
end

--- Returns the number of live registers at each instruction address, parsed
-- from nvdisasm's table.
---@param text string
---@return table<string, integer>
function asm.live(text)
  local live = {}
  for line in lines_of(text) do
    local at, n = line:match "/%*(%x+)%*/.*;%s*// |%s*(%d*)"
    if at then live[at] = math.tointeger(tonumber(n)) or 0 end
  end
  return live
end

--- Returns nvdisasm's output for one kernel as a listing.
---@param text string nvdisasm's output, with comments that name source lines
---@param name string the kernel's name
---@param live? table<string, integer> of asm.live
---@return {text: string[], at: (integer|false)[], live: integer[]}
function asm.sass(text, name, live)
  local out = {text = {}, at = {}, live = {}}
  local here, now, last = false, false, 0
  for line in lines_of(text) do
    local section = line:match "^%s*%.section%s+([^,%s]+)"
    if section then here = section == ".text." .. name end
    -- For inlined code, nvdisasm writes the inlined line first and the line of
    -- the call last.
    local marked = line:match "^%s*//## File"
      and (line:match ", line (%d+)%s*$" or line:match ", line (%d+)")
    local at, code = line:match "^%s*/%*(%x+)%*/(.*);"
    local label = line:match "^(%.L[%w_]*:)"
    if marked then now = math.tointeger(tonumber(marked)) end
    if here and (code or label) then
      local i = #out.text + 1
      out.text[i] = label or code:gsub("^ ? ? ? ? ? ? ? ? ? ?", "")
        :gsub("%s+$", "")
      out.at[i] = not label and now
      out.live[i] = not label and live and live[at] or 0
      if not (label or code:find "^%s*NOP") then last = i end
    end
  end
  -- Remove the padding after the last instruction.
  for i = #out.text, last + 1, -1 do
    out.text[i], out.at[i], out.live[i] = nil, nil, nil
  end
  return out
end

--- Returns the SASS of a CUBIN as a listing.
---@param cubin string
---@param name string the kernel's name
---@return table? listing
---@return string? message
function asm.of_cubin(cubin, name)
  local text, why = disassembled(cubin, "-c -gi")
  if not text then return nil, why end
  return asm.sass(text, name, asm.live(disassembled(cubin,
    "-c -plr -lrm count") or ""))
end

--- Returns the SASS of a program as text. A comment before each group of
-- instructions names the line of the script that they implement.
---@param program table
---@param arch string
---@return string? text
---@return string? message
function asm.sass_text(program, arch)
  local compiled, why = program:compile(arch, true)
  if not compiled then return nil, why end
  local _, places, name = program:cuda(arch)
  local listing
  listing, why = asm.of_cubin(compiled.cubin, name)
  if not listing then return nil, why end
  local out, last = {}, ""
  for i, line in ipairs(listing.text) do
    local place = places[listing.at[i]] or ""
    if place ~= "" and place ~= last then
      out[#out + 1] = "        // " .. place
      last = place
    end
    out[#out + 1] = line
  end
  return table.concat(out, "\n") .. "\n"
end

--- Compiles a program for an architecture. Returns {compiled =, ptx =, sass =,
-- missing = {reasons for missing parts, ...}}.
---@param program table
---@param arch string
---@return table
function asm.of(program, arch)
  local out = {missing = {}}
  local compiled, why = program:compile(arch, true)
  if not compiled then
    out.missing[1] = core.visible(why, true)
    return out
  end
  out.compiled = compiled
  if compiled.ptx then out.ptx = asm.ptx(compiled.ptx) end
  out.sass, out.missing[1] = asm.of_cubin(compiled.cubin,
                                          select(3, program:cuda(arch)))
  return out
end

return asm
-- SPDX-License-Identifier: MIT
