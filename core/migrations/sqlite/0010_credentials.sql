-- Password hashes that another system made. A refused sign-in asks for the highest cost of a bcrypt hash, to take as long as
-- one for a user who has such a hash.
CREATE INDEX townsquare_credentials_bcrypt_cost ON townsquare_credentials (substr(password_hash, 5, 2))
    WHERE substr(password_hash, 2, 1) = '2';

-- Other programs may have stored addresses in mixed case. The library finds them by their lower case.
CREATE INDEX townsquare_users_lower_email ON users (lower(email));
