--- Resources and prompts of `cutelua mcp`: the documents that the program
-- contains, the reference of names, and instructions for common tasks.
local codes = require "cutelua.findings.codes"
local doc = require "cutelua.doc"
local sys = require "cute.sys"
local uris = require "cutelua.text.uri"

local texts = {}

local SCHEME = "cutelua://"

---------------------------------------------------------------------------
-- Resources
---------------------------------------------------------------------------

-- Returns the first heading of a document.
local function title_of(path)
  return sys.embedded("=[" .. path .. "]"):match "^# ([^\n]*)" or path
end

--- Returns the resources, in the form of resources/list.
---@return table[]
function texts.resources()
  local list = {{uri = SCHEME .. "codes", name = "codes",
    title = "The codes of findings", mimeType = "text/plain"}}
  for _, path in ipairs(sys.documents()) do
    list[#list + 1] = {uri = SCHEME .. path, name = path,
      title = title_of(path), mimeType = "text/markdown"}
  end
  return list
end

--- Returns the templates of resources.
---@return table[]
function texts.templates()
  return {{uriTemplate = SCHEME .. "doc/{name}", name = "doc",
    title = "The reference of a public name", mimeType = "text/plain"}}
end

local function code_list()
  local out = {}
  for i, c in ipairs(codes.list()) do
    out[i] = ("%-38s %s"):format(c.code, codes.page(c.kind))
  end
  return table.concat(out, "\n") .. "\n"
end

--- Returns the contents of a resource; nil if there is no such resource.
---@param uri string
---@return table?
function texts.read(uri)
  local name = uri:match("^" .. SCHEME .. "(.+)$")
  local kind, text = "text/plain", nil
  if name == "codes" then
    text = code_list()
  elseif name and name:find "^doc/" then
    text = doc.find(uris.unescape(name:sub(5)))
  elseif name and name:find "^docs/" then
    kind, text = "text/markdown", sys.embedded("=[" .. name .. "]")
  end
  return text and {uri = uri, mimeType = kind, text = text}
end

---------------------------------------------------------------------------
-- Prompts
---------------------------------------------------------------------------

-- The prompts of the server. Each row has the prompt's name, its title, its
-- description, a list of its arguments {name, about, required}, and its text.
-- In the text, an argument's name in capitals stands for the value of the
-- argument.
local PROMPTS = {
  {"write-kernel", "Write a kernel", "Writes a kernel and checks it.",
    {{"task", "what the kernel computes, with shapes and types", true}},
    [[
Write a Lua script for cutelua that contains a kernel for this task: TASK

Read cutelua://docs/prompt.md and cutelua://docs/kernels.md first, and look up
names with the tool `doc`. The script compares the result with a reference in
plain Lua. Call the tool `check` after each change until its verdict is ok, and
read `not_checked`: try odd sizes, too. Apply the edits of findings, the best
first. Then call `profile` and remove bank conflicts.]]},
  {"fix-kernel", "Repair a kernel", "Finds and repairs the faults of a script.",
    {{"script", "the script's text or path", true}},
    [[
Repair the faults of this cutelua script: SCRIPT

Call the tool `check`. Take the first finding that follows from no other one,
read its places, its counter-example and the section of its kind in
cutelua://docs/errors.md. Apply its first edit, or write the repair that its
advice names. Check again until the verdict is ok. Do not remove work, widen
tolerances, or silence a finding.]]},
  {"speed-up-kernel", "Speed up a kernel", "Finds what limits a kernel.",
    {{"script", "the script's text or path", true},
     {"card", "h200, h100, a100, l40s, b200, b300 or rtx5090", false}},
    [[
Make the kernel of this cutelua script faster on CARD: SCRIPT

Call the tools `estimate` and `profile`. Name the busiest unit and the line that
waits longest. Change one thing, call `diff` on both versions and `check` on the
new one, and estimate again. cutelua://docs/ladders.md shows what each
optimization gains. Keep a change only if the estimate improves and the verdict
is ok.]]},
}

--- Returns the prompts, in the form of prompts/list.
---@return table[]
function texts.prompts()
  local list = {}
  for i, row in ipairs(PROMPTS) do
    local arguments = {}
    for k, a in ipairs(row[4]) do
      arguments[k] = {name = a[1], description = a[2], required = a[3]}
    end
    list[i] = {name = row[1], title = row[2], description = row[3],
               arguments = arguments}
  end
  return list
end

--- Returns a prompt, in the form of prompts/get. Returns nil and a message if
-- the prompt does not exist or an argument is missing.
---@param name string
---@param args table<string, string>
---@return table?
---@return string? message
function texts.prompt(name, args)
  for _, row in ipairs(PROMPTS) do
    if row[1] == name then
      local text = row[5]
      for _, a in ipairs(row[4]) do
        local v = args[a[1]]
        if v == nil and a[3] then
          return nil, ("prompt %s needs the argument '%s'"):format(name, a[1])
        elseif v ~= nil and type(v) ~= "string" then
          return nil, ("prompt %s: argument '%s' must be a string"):format(name,
            a[1])
        end
        text = text:gsub(a[1]:upper(), function() return v or "h200" end)
      end
      return {description = row[3], messages = {{role = "user",
        content = {type = "text", text = text}}}}
    end
  end
  return nil, ("there is no prompt '%s'"):format(name)
end

return texts
-- SPDX-License-Identifier: MIT
