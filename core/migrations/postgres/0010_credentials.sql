-- Password hashes that another system made. A refused sign-in asks for the highest cost of a bcrypt hash, to take as long as
-- one for a user who has such a hash.
CREATE INDEX credentials_bcrypt_cost ON townsquare.credentials (substr(password_hash, 5, 2))
    WHERE substr(password_hash, 2, 1) = '2';
