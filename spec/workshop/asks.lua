-- Answers requests on standard input, a JSON list, as the workshop does. Each
-- answer is a line "answer JSON" after the output.
local json = require "cutelua.text.json"
local workshop = require "cutelua.workshop"

for _, request in ipairs(assert(json.decode(io.read "a"))) do
  io.write("\nanswer ", workshop.answer(json.encode(request)), "\n")
end
-- SPDX-License-Identifier: MIT
