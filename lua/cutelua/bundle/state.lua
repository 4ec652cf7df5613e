--- The state that cute.bundle and `cutelua bundle` share.
local state = {}

--- The session that records functions, or false.
state.session = false

--- The metatable of the results of cute.bundle.number: {name = the parameter's
-- name, value = its value while the script runs}.
state.Number = {__closed = true, __host = "number of a bundle"}

return state
-- SPDX-License-Identifier: MIT
