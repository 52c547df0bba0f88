-- Quotas read the sizes of an owner's files from the index.
DROP INDEX townsquare_files_owner_id;
CREATE INDEX townsquare_files_owner_id ON townsquare_files (owner_id, size) WHERE owner_id IS NOT NULL;

-- The size of the change log: `counted_bytes` is that of the entries up to `counted_id`. Writers do not count; who prunes does.
ALTER TABLE townsquare_feed ADD COLUMN counted_id INTEGER NOT NULL DEFAULT 0;
ALTER TABLE townsquare_feed ADD COLUMN counted_bytes INTEGER NOT NULL DEFAULT 0;

-- The old image of an update leaves out large columns that did not change: their values are NULL, and the key "=" lists their
-- names. The new image has their values. A library before this version delivers NULL for them in the old row.

DROP TRIGGER townsquare_change_community_configs_update;
CREATE TRIGGER townsquare_change_community_configs_update AFTER UPDATE ON community_configs WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'community_configs', 'update', json_object(
            '=', json_array(CASE WHEN length(OLD.brand_config) > 1000 AND OLD.brand_config IS NEW.brand_config THEN 'brand_config' END,
                CASE WHEN length(OLD.assets_config) > 1000 AND OLD.assets_config IS NEW.assets_config THEN 'assets_config' END,
                CASE WHEN length(OLD.community_config) > 1000 AND OLD.community_config IS NEW.community_config THEN 'community_config' END,
                CASE WHEN length(OLD.fidgets_config) > 1000 AND OLD.fidgets_config IS NEW.fidgets_config THEN 'fidgets_config' END,
                CASE WHEN length(OLD.navigation_config) > 1000 AND OLD.navigation_config IS NEW.navigation_config THEN 'navigation_config' END,
                CASE WHEN length(OLD.ui_config) > 1000 AND OLD.ui_config IS NEW.ui_config THEN 'ui_config' END),
            'id', CAST(OLD.id AS TEXT), 'community_id', CAST(OLD.community_id AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT),
            'brand_config', json(CASE WHEN length(OLD.brand_config) > 1000 AND OLD.brand_config IS NEW.brand_config THEN NULL ELSE CAST(OLD.brand_config AS TEXT) END),
            'assets_config', json(CASE WHEN length(OLD.assets_config) > 1000 AND OLD.assets_config IS NEW.assets_config THEN NULL ELSE CAST(OLD.assets_config AS TEXT) END),
            'community_config', json(CASE WHEN length(OLD.community_config) > 1000 AND OLD.community_config IS NEW.community_config THEN NULL ELSE CAST(OLD.community_config AS TEXT) END),
            'fidgets_config', json(CASE WHEN length(OLD.fidgets_config) > 1000 AND OLD.fidgets_config IS NEW.fidgets_config THEN NULL ELSE CAST(OLD.fidgets_config AS TEXT) END),
            'navigation_config', json(CASE WHEN length(OLD.navigation_config) > 1000 AND OLD.navigation_config IS NEW.navigation_config THEN NULL ELSE CAST(OLD.navigation_config AS TEXT) END),
            'ui_config', json(CASE WHEN length(OLD.ui_config) > 1000 AND OLD.ui_config IS NEW.ui_config THEN NULL ELSE CAST(OLD.ui_config AS TEXT) END),
            'admin_identity_public_keys', json(CAST(OLD.admin_identity_public_keys AS TEXT)),
            'is_published', OLD.is_published, 'custom_domain_authorized', OLD.custom_domain_authorized,
            'admin_email', CAST(OLD.admin_email AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'community_id', CAST(NEW.community_id AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT), 'brand_config', json(CAST(NEW.brand_config AS TEXT)),
            'assets_config', json(CAST(NEW.assets_config AS TEXT)),
            'community_config', json(CAST(NEW.community_config AS TEXT)),
            'fidgets_config', json(CAST(NEW.fidgets_config AS TEXT)),
            'navigation_config', json(CAST(NEW.navigation_config AS TEXT)),
            'ui_config', json(CAST(NEW.ui_config AS TEXT)),
            'admin_identity_public_keys', json(CAST(NEW.admin_identity_public_keys AS TEXT)),
            'is_published', NEW.is_published, 'custom_domain_authorized', NEW.custom_domain_authorized,
            'admin_email', CAST(NEW.admin_email AS TEXT))
    );
END;

DROP TRIGGER townsquare_change_spaces_update;
CREATE TRIGGER townsquare_change_spaces_update AFTER UPDATE ON spaces WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new) VALUES (
        'spaces', 'update', json_object(
            '=', json_array(CASE WHEN length(OLD.description) > 1000 AND OLD.description IS NEW.description THEN 'description' END),
            'id', CAST(OLD.id AS TEXT), 'name', CAST(OLD.name AS TEXT),
            'description', CASE WHEN length(OLD.description) > 1000 AND OLD.description IS NEW.description THEN NULL ELSE CAST(OLD.description AS TEXT) END, 'owner_id', CAST(OLD.owner_id AS TEXT),
            'is_public', OLD.is_public, 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'name', CAST(NEW.name AS TEXT),
            'description', CAST(NEW.description AS TEXT), 'owner_id', CAST(NEW.owner_id AS TEXT),
            'is_public', NEW.is_public, 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT))
    );
    INSERT INTO townsquare_changes (table_name, kind, new, old_context, new_context)
    SELECT 'fidgets', 'visibility', json_object(
            'id', CAST(fidget.id AS TEXT), 'space_id', CAST(fidget.space_id AS TEXT),
            'type', CAST(fidget.type AS TEXT), 'config', json(CAST(fidget.config AS TEXT)),
            'position', json(CAST(fidget.position AS TEXT)), 'created_at', CAST(fidget.created_at AS TEXT),
            'updated_at', CAST(fidget.updated_at AS TEXT)),
        CASE WHEN fidget.space_id = OLD.id THEN json_object('owner_id', CAST(OLD.owner_id AS TEXT), 'is_public', OLD.is_public) END,
        CASE WHEN fidget.space_id = NEW.id THEN json_object('owner_id', CAST(NEW.owner_id AS TEXT), 'is_public', NEW.is_public) END
    FROM fidgets AS fidget WHERE (OLD.owner_id IS NOT NEW.owner_id OR OLD.is_public IS NOT NEW.is_public OR OLD.id IS NOT NEW.id)
        AND fidget.space_id IN (OLD.id, NEW.id) ORDER BY fidget.created_at, fidget.id;
END;

DROP TRIGGER townsquare_change_fidgets_update;
CREATE TRIGGER townsquare_change_fidgets_update AFTER UPDATE ON fidgets WHEN (SELECT is_on FROM townsquare_feed)
BEGIN
    INSERT INTO townsquare_changes (table_name, kind, old, new, old_context, new_context) VALUES (
        'fidgets', 'update', json_object(
            '=', json_array(CASE WHEN length(OLD.config) > 1000 AND OLD.config IS NEW.config THEN 'config' END,
                CASE WHEN length(OLD.position) > 1000 AND OLD.position IS NEW.position THEN 'position' END),
            'id', CAST(OLD.id AS TEXT), 'space_id', CAST(OLD.space_id AS TEXT),
            'type', CAST(OLD.type AS TEXT),
            'config', json(CASE WHEN length(OLD.config) > 1000 AND OLD.config IS NEW.config THEN NULL ELSE CAST(OLD.config AS TEXT) END),
            'position', json(CASE WHEN length(OLD.position) > 1000 AND OLD.position IS NEW.position THEN NULL ELSE CAST(OLD.position AS TEXT) END), 'created_at', CAST(OLD.created_at AS TEXT),
            'updated_at', CAST(OLD.updated_at AS TEXT)),
        json_object(
            'id', CAST(NEW.id AS TEXT), 'space_id', CAST(NEW.space_id AS TEXT),
            'type', CAST(NEW.type AS TEXT), 'config', json(CAST(NEW.config AS TEXT)),
            'position', json(CAST(NEW.position AS TEXT)), 'created_at', CAST(NEW.created_at AS TEXT),
            'updated_at', CAST(NEW.updated_at AS TEXT)),
        (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = OLD.space_id),
        (SELECT json_object('owner_id', CAST(space.owner_id AS TEXT), 'is_public', space.is_public) FROM spaces AS space WHERE space.id = NEW.space_id)
    );
END;
