-- Part: takes `terms` apart, what a claim has beside its owner: with ATLEAST a tab and for how long
-- after the grant the name stays taken, ms; with DATA a line end and the data. `atleast` is nil if
-- there is none.
--@needs terms
--@leaves data atleast
local data, atleast = terms, nil
if string.byte(terms) == 9 then
    atleast, data = string.match(terms, '^\t(%d+)(.*)$')
end
