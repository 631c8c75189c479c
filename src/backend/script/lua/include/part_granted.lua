-- Part: answers a grant: the token, or the block of tokens that comes with a loan.
--@needs token first lent
if lent then
    return { 'LENT', first, token }
end
return token
