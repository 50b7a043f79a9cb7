-- Undoes what was taken of gates.
--
-- KEYS  clock, and of each gate its state and, if it slides, its hits
-- ARGV  of each gate: kind, limit, period, cost, when it was taken

local gates = {}
local k, a = 2, 1
while k <= #KEYS do
  local g = open(KEYS[k], KEYS[k + 1], ARGV[a], ARGV[a + 1], ARGV[a + 2], ARGV[a + 3])
  g.taken = ARGV[a + 4] + 0
  gates[#gates + 1] = g
  k, a = k + (g.hits and 2 or 1), a + 5
end
for _, g in ipairs(gates) do
  if not g.hits then g.rule.undo(g, g.taken) end
end
save(gates)
for _, g in ipairs(gates) do
  if g.hits then g.rule.undo(g, g.taken) end -- writes, and the clock has to be first
end
return 1
