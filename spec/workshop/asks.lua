-- Reads requests to the workshop from standard input, as a JSON list, and
-- executes them. Each response is a line "answer JSON" after the output of its
-- request.
local json = require "cutelua.text.json"
local workshop = require "cutelua.workshop"

for _, request in ipairs(assert(json.decode(io.read "a"))) do
  io.write("\nanswer ", workshop.answer(json.encode(request)), "\n")
end
-- SPDX-License-Identifier: MIT
