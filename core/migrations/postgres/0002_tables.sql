-- The public tables (SPEC 2.2 to 2.7, verbatim), and indexes that the library needs besides.

CREATE TABLE public.community_configs (
    id                         UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    community_id               VARCHAR(50) NOT NULL UNIQUE,
    updated_at                 TIMESTAMP WITH TIME ZONE DEFAULT now(),
    brand_config               JSONB NOT NULL,
    assets_config              JSONB NOT NULL,
    community_config           JSONB NOT NULL,
    fidgets_config             JSONB NOT NULL,
    navigation_config          JSONB,
    ui_config                  JSONB,
    admin_identity_public_keys TEXT[],
    is_published               BOOLEAN DEFAULT true,
    custom_domain_authorized   BOOLEAN DEFAULT false,
    admin_email                TEXT
);
CREATE INDEX community_configs_community_id_idx ON public.community_configs (community_id);
CREATE INDEX community_configs_is_published_idx ON public.community_configs (is_published) WHERE is_published = true;

CREATE TABLE public.community_domains (
    id           UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    community_id VARCHAR(50) NOT NULL REFERENCES public.community_configs (community_id) ON DELETE CASCADE,
    domain       TEXT NOT NULL UNIQUE,
    domain_type  TEXT NOT NULL CHECK (domain_type IN ('blank_subdomain', 'custom')),
    created_at   TIMESTAMP WITH TIME ZONE DEFAULT now(),
    updated_at   TIMESTAMP WITH TIME ZONE DEFAULT now(),
    UNIQUE (community_id, domain_type)
);

CREATE TABLE public."spaceRegistrations" (
    "spaceId"           UUID PRIMARY KEY,
    fid                 INTEGER,
    "spaceName"         TEXT NOT NULL,
    "spaceType"         TEXT NOT NULL
        CHECK ("spaceType" IN ('profile', 'token', 'proposal', 'channel', 'navPage')),
    "identityPublicKey" TEXT,
    signature           TEXT,
    "timestamp"         TIMESTAMP WITH TIME ZONE DEFAULT now()
);

CREATE TABLE public.users (
    id         UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    email      TEXT NOT NULL UNIQUE,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now(),
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now()
);
-- Other programs may have stored addresses in mixed case. The library finds them by their lower case.
CREATE INDEX townsquare_users_lower_email ON public.users (lower(email));

CREATE TABLE public.spaces (
    id          UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    name        TEXT NOT NULL,
    description TEXT,
    owner_id    UUID REFERENCES public.users (id) ON DELETE CASCADE,
    is_public   BOOLEAN DEFAULT false,
    created_at  TIMESTAMP WITH TIME ZONE DEFAULT now(),
    updated_at  TIMESTAMP WITH TIME ZONE DEFAULT now()
);
CREATE INDEX spaces_owner_id_idx ON public.spaces (owner_id);
CREATE INDEX spaces_is_public_idx ON public.spaces (is_public) WHERE is_public = true;
CREATE INDEX spaces_owner_id_created_at_idx ON public.spaces (owner_id, created_at DESC);
CREATE INDEX spaces_is_public_created_at_idx ON public.spaces (is_public, created_at DESC) WHERE is_public = true;
-- The owners of public spaces, without their private ones: the policy of users asks for them, also for an owner with very
-- many private spaces. The condition is the one of the policy, word for word: PostgreSQL 15 draws no conclusions from it.
CREATE INDEX townsquare_public_spaces_owner ON public.spaces (owner_id) WHERE is_public IS TRUE;
-- A page after a space seeks its place. PostgreSQL does not use the first column of SPEC's own index, because the condition
-- of the index implies it.
CREATE INDEX townsquare_public_spaces_order ON public.spaces (created_at DESC, id) WHERE is_public;

CREATE TABLE public.fidgets (
    id         UUID PRIMARY KEY DEFAULT gen_random_uuid(),
    space_id   UUID REFERENCES public.spaces (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    config     JSONB,
    position   JSONB,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now(),
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now()
);
CREATE INDEX fidgets_space_id_idx ON public.fidgets (space_id);
CREATE INDEX fidgets_space_id_type_idx ON public.fidgets (space_id, type);
