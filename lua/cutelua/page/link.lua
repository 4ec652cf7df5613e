--- Scripts in links: the part of the workshop's address after the "#", which
-- browsers do not send to a server. This is JavaScript for the pages of kernels
-- and of the workshop:
--
--     cuteLink({name: "k.lua", text: "...", words: ["--m", "64"], seed: 1})
--       returns a promise of "#s=...": the object as JSON, deflated by zlib
--       (whose checksum detects a truncated link), in base64url. `words` and
--       `seed` are optional.
--     cuteUnlink("#s=...")  returns a promise of the object; if it is rejected,
--       the error is a sentence.
local core = require "cute.core"

local link = {}

--- The port of `cutelua web`.
link.PORT = 5454

local SCHEMES = {http = true, https = true, file = true}

--- Returns the workshop's address, before the "#": the given address, or the
-- default. Returns nil and a sentence for an address that a link must not have.
---@param given? string
---@return string? address
---@return string? why
function link.address(given)
  local address = given or os.getenv "CUTELUA_WORKSHOP" or ""
  address = address:gsub("#.*", "")
  if address == "" then return ("http://127.0.0.1:%d/"):format(link.PORT) end
  local scheme = address:match "^([^/?]*):"
  if address:find "[%c%s]" or scheme and not SCHEMES[scheme:lower()] then
    return nil, ("the workshop's address is '%s': one of http, https or file, "
      .. "or a path, is needed"):format(core.visible(address))
  end
  return address
end

link.script = [==[
function cuteLink(script) {
  "use strict";
  var packed = new Blob([JSON.stringify(script)]).stream()
    .pipeThrough(new CompressionStream("deflate"));
  return new Response(packed).arrayBuffer().then(function (bytes) {
    var text = "";
    new Uint8Array(bytes).forEach(function (b) {
      text += String.fromCharCode(b); });
    return "#s=" + btoa(text).replace(/\+/g, "-").replace(/\//g, "_")
      .replace(/=+$/, "");
  });
}

async function cuteUnlink(fragment) {
  "use strict";
  var MOST = 4 << 20;
  function fail(why) {
    throw new Error("This link holds no script: " + why + "."); }
  var packed = /^#s=([\w-]*)$/.exec(fragment);
  if (!packed) fail("a character after #s= is not a letter, digit, - or _");
  var bytes;
  try {
    bytes = Uint8Array.from(atob(packed[1].replace(/-/g, "+")
      .replace(/_/g, "/")), function (c) { return c.charCodeAt(0); });
  } catch (e) { fail("the end of the link is missing"); }
  var reader = new Blob([bytes]).stream()
    .pipeThrough(new DecompressionStream("deflate")).getReader();
  var parts = [], size = 0;
  for (;;) {
    var part;
    try { part = await reader.read(); } catch (e) {
      fail("the link is incomplete or was changed"); }
    if (part.done) break;
    size += part.value.length;
    if (size > MOST) {
      reader.cancel().catch(function () {});
      fail("the content of the link is larger than 4 MB when unpacked");
    }
    parts.push(part.value);
  }
  var script;
  try { script = JSON.parse(await new Blob(parts).text()); } catch (e) {
    fail("the content of the link is not JSON"); }
  if (!script || typeof script.text != "string") fail("the script has no text");
  var words = script.words === undefined ? [] : script.words;
  if (!Array.isArray(words) || words.some(function (w) {
    return typeof w != "string"; }))
    fail("the script's arguments are not a list of words");
  if (script.name !== undefined && typeof script.name != "string")
    fail("the script's name is not a string");
  if (script.seed !== undefined && !Number.isSafeInteger(script.seed))
    fail("the script's seed is not an integer");
  return {name: script.name || "script.lua", text: script.text, words: words,
    seed: script.seed};
}
]==]

return link
-- SPDX-License-Identifier: MIT
