-- Drives `cutelua lsp`: opens and changes documents, and waits for diagnostics.
local dkjson = require "dkjson"
local rpc = require "spec.rpc"

local driver = {}

local Driver = rpc.class()

--- Starts the language server.
---@param ... string options of `cutelua lsp`
function driver.start(...) return rpc.start(Driver, "headed", "lsp", ...) end

--- Sends `initialize`, and waits for the reply.
function Driver:initialize()
  local r = self:ask("initialize", {processId = dkjson.null, capabilities = {
    workspace = {inlayHint = {refreshSupport = true}}}})
  self:notify("initialized", {[1] = nil, x = 1})
  return r.result
end

--- Opens a document.
---@param uri string
---@param text string
function Driver:open(uri, text)
  self:notify("textDocument/didOpen", {textDocument = {uri = uri, version = 1,
    languageId = "lua", text = text}})
end

--- Changes a document: the part `range` {line, from, line, to}, or all of it.
function Driver:change(uri, version, text, range)
  local r = range and {start = {line = range[1], character = range[2]},
                       ["end"] = {line = range[3], character = range[4]}}
  self:notify("textDocument/didChange", {textDocument = {uri = uri,
    version = version}, contentChanges = {{range = r, text = text}}})
end

--- Waits for the diagnostics of a version of a document. `version` is nil for
-- diagnostics that name no version.
---@param uri string
---@param version integer?
function Driver:diagnostics(uri, version)
  return self:wait_for(function()
    for i, m in ipairs(self.notes) do
      if m.method == "textDocument/publishDiagnostics" and m.params.uri == uri
        and m.params.version == version then
        table.remove(self.notes, i)
        return m.params.diagnostics
      end
    end
  end, ("diagnostics of version %s"):format(version))
end

--- Waits for code actions in a range of a document: repairs of a bug arrive
-- after its diagnostics.
---@param uri string
---@param range table
function Driver:actions(uri, range)
  return self:wait_for(function()
    local list = self:ask("textDocument/codeAction", {range = range,
      context = {diagnostics = {}}, textDocument = {uri = uri}}).result
    return list[1] and list
  end, "code actions")
end

--- Waits for the facts of a check, such as bank conflicts, as inlay hints.
function Driver:facts()
  self:wait_for(function()
    for i, m in ipairs(self.notes) do
      if m.method == "workspace/inlayHint/refresh" then
        table.remove(self.notes, i)
        self:body(dkjson.encode {jsonrpc = "2.0", id = m.id,
                                 result = dkjson.null})
        return true
      end
    end
  end, "workspace/inlayHint/refresh")
end

--- Sends a request about a position in a document, and returns the result.
function Driver:at(method, uri, line, character)
  local r = self:ask("textDocument/" .. method, {textDocument = {uri = uri},
    position = {line = line, character = character}})
  assert(r.result, r.error and r.error.message)
  return r.result ~= dkjson.null and r.result or nil
end

return driver
-- SPDX-License-Identifier: MIT
