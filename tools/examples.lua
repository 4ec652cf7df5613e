-- examples.lua PROGRAM FILE.md...: runs the examples in documents, and updates
-- their output in these documents. `make docs` calls it;
-- spec/program/docs_spec.lua compares the output. A code block after `<!-- file
-- NAME -->` is saved as file NAME. A block after `<!-- output: COMMAND -->` is
-- replaced by the shell's output for COMMAND. COMMAND runs without a GPU, in a
-- folder with the files saved so far.
local examples = {}

local function write(path, text)
  local f <close> = assert(io.open(path, "wb"))
  assert(f:write(text))
end

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

-- Returns what COMMAND prints to standard output and standard error when it
-- runs in a folder.
local function output(folder, program, command)
  local p <close> = assert(io.popen(("cd %s && { export CUDA_VISIBLE_DEVICES= "
    .. "NO_COLOR=1; cutelua() { %s \"$@\"; }; %s; } 2>&1"):format(quote(folder),
    quote(program), command)))
  return p:read "a"
end

--- Returns the text of a document with the current output of its commands.
---@param text string
---@param program string the path of cutelua
---@return string
function examples.filled(text, program)
  local real <close> = assert(io.popen("realpath " .. quote(program)))
  program = real:read "l"
  local folder = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. quote(folder)))
  local out, block, skip = {}, nil, false
  local file, command
  for line in text:gmatch "([^\n]*)\n" do
    local fence = line:find "^```"
    if fence and block then
      if file then write(folder .. "/" .. file, table.concat(block, "\n")) end
      block, file, command, skip = nil, nil, nil, false
    elseif fence then
      block = {}
      if command then
        out[#out + 1] = line
        out[#out + 1] = (output(folder, program, command):gsub("\n+$", ""))
        line, skip = nil, true
      end
    elseif block then
      block[#block + 1] = line
      if skip then line = nil end
    else
      file = line:match "^<!%-%- file (%S+) %-%->$" or file
      command = line:match "^<!%-%- output: (.*) %-%->$" or command
    end
    out[#out + 1] = line
  end
  os.execute("rm -r " .. quote(folder))
  return table.concat(out, "\n") .. "\n"
end

if arg and arg[0] and arg[0]:find "examples%.lua$" then
  for i = 2, #arg do
    local f <close> = assert(io.open(arg[i], "rb"))
    write(arg[i], examples.filled(f:read "a", arg[1]))
  end
end

return examples
-- SPDX-License-Identifier: MIT
