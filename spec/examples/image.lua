-- Builds the images of Dockerfiles without Docker, in folders that chroot
-- enters. A base image has a shell, the C library, /tmp and /proc. Supports the
-- instructions FROM, COPY, RUN, ENV, USER and CMD.
local support = require "spec.support"

local image = {}

local function must(...) return support.must {...} end

-- Enters the folder $1 as user $2 without network, and runs the other arguments
-- as a command.
local ENTER = [[mount --rbind /proc "$1/proc" || exit 125
root=$1 user=$2; shift 2; exec chroot --userspec="$user" "$root" "$@"]]

--- Reports whether this user may enter a folder as its root directory, without
-- network.
function image.possible()
  return select(3, support.exec {"unshare", "-m", "-n", "sh", "-c", ENTER, "sh",
    "/", "0:0", "true"}) == 0
end

-- Makes the root folder of a base image for a program.
local function base(root, program)
  for _, name in ipairs {"bin", "tmp", "dev", "opt", "proc",
    "usr/local/bin", "lib64"} do
    must("mkdir", "-p", root .. "/" .. name)
  end
  must("chmod", "1777", root .. "/tmp")
  must("cp", "-L", "/bin/sh", root .. "/bin/sh")
  support.write(root .. "/dev/null", "")
  must("chmod", "666", root .. "/dev/null")
  for path in must("ldd", "/bin/sh", program):gmatch "(/%S+%.so[%d.]*)" do
    must("mkdir", "-p", root .. path:match "^.*/")
    must("cp", "-L", path, root .. path)
  end
end

--- Runs words inside an image, as its user and without network; returns
-- output, errors and code. env: further environment variables.
function image.run(stage, words, env)
  local all = {"unshare", "-m", "-n", "env", "-i",
    "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
  for _, set in ipairs {stage.env, env or {}} do
    for name, value in pairs(set) do all[#all + 1] = name .. "=" .. value end
  end
  table.move({"sh", "-c", ENTER, "sh", stage.root, stage.user}, 1, 6,
             #all + 1, all)
  table.move(words, 1, #words, #all + 1, all)
  return support.exec(all)
end

-- Functions that execute an instruction of a Dockerfile on a build stage.
local STEPS = {}

function STEPS.COPY(stage, text, build)
  local from, source, to = text:match "^%-%-from=(%S+) (%S+) (%S+)$"
  if not from then source, to = text:match "^(%S+) (%S+)$" end
  local root = from and build.stages[from].root or build.context
  local target = stage.root .. to
  must("mkdir", "-p", target:match "^.*/")
  must("cp", "-r", "--no-preserve=ownership", root .. "/" .. source, target)
end

-- Installs nothing from the network. For `pip install`, calls build.installed
-- with the folder of the option --target.
function STEPS.RUN(stage, text, build)
  local target = text:match "^pip install .*%-%-target (%S+)"
  if target then return build.installed(stage.root .. target) end
  local out, err, code = image.run(stage, {"/bin/sh", "-c", text})
  assert(code == 0, text .. ": " .. err .. out)
end

function STEPS.ENV(stage, text)
  for name, value in text:gmatch "(%S+)=(%S+)" do stage.env[name] = value end
end

function STEPS.USER(stage, text) stage.user = text end

function STEPS.CMD(stage, text)
  stage.words = {}
  for word in text:gmatch '"([^"]*)"' do table.insert(stage.words, word) end
end

--- Builds the last image of a Dockerfile. Returns {root, env, user, words}.
-- build: {context = folder, folder = where image roots are made, program =
-- path, installed = function(folder)}
function image.build(path, build)
  build.stages = {}
  local stage
  local text = support.read(path):gsub("\\\n", " ")
  for line in text:gmatch "[^\n]+" do
    local name, rest = line:match "^(%u+)%s+(.-)%s*$"
    if name == "FROM" then
      local n = rest:match " AS (%S+)$" or "last"
      stage = {root = build.folder .. "/" .. n, env = {}, user = "0:0"}
      build.stages[n] = stage
      base(stage.root, build.program)
    elseif name then
      assert(STEPS[name], line)(stage, rest, build)
    end
  end
  return stage
end

return image
-- SPDX-License-Identifier: MIT
