-- The new tokens of a refresh are made from the spent refresh token and this random text, so that a refresh whose reply was
-- lost can be repeated. NULL: the tokens cannot be made again.
ALTER TABLE townsquare_spent_tokens ADD COLUMN nonce TEXT;
