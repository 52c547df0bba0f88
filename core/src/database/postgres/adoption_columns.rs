//! The columns of SPEC 2, and which columns of another program's table fit them.
//!
//! Invariant: a column fits when it can hold every value that SPEC allows, and each of its values can be read.

/// A column that exists.
pub(super) struct Column {
    pub(super) name: String,
    /// As PostgreSQL writes it: `character varying(50)`.
    pub(super) type_name: String,
    pub(super) is_required: bool,
    pub(super) has_default: bool,
}

/// A column of SPEC 2.
pub(super) struct Wanted {
    name: &'static str,
    kind: Kind,
    is_required: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Uuid,
    Text,
    /// Text of at most 50 characters.
    ShortText,
    Texts,
    Json,
    Flag,
    Time,
    Integer,
}

const fn required(name: &'static str, kind: Kind) -> Wanted {
    Wanted { name, kind, is_required: true }
}

const fn optional(name: &'static str, kind: Kind) -> Wanted {
    Wanted { name, kind, is_required: false }
}

/// The tables of SPEC 2.
pub(super) const TABLES: &[(&str, &[Wanted])] = &[
    (
        "community_configs",
        &[
            required("id", Kind::Uuid),
            required("community_id", Kind::ShortText),
            optional("updated_at", Kind::Time),
            required("brand_config", Kind::Json),
            required("assets_config", Kind::Json),
            required("community_config", Kind::Json),
            required("fidgets_config", Kind::Json),
            optional("navigation_config", Kind::Json),
            optional("ui_config", Kind::Json),
            optional("admin_identity_public_keys", Kind::Texts),
            optional("is_published", Kind::Flag),
            optional("custom_domain_authorized", Kind::Flag),
            optional("admin_email", Kind::Text),
        ],
    ),
    (
        "community_domains",
        &[
            required("id", Kind::Uuid),
            required("community_id", Kind::ShortText),
            required("domain", Kind::Text),
            required("domain_type", Kind::Text),
            optional("created_at", Kind::Time),
            optional("updated_at", Kind::Time),
        ],
    ),
    (
        "spaceRegistrations",
        &[
            required("spaceId", Kind::Uuid),
            optional("fid", Kind::Integer),
            required("spaceName", Kind::Text),
            required("spaceType", Kind::Text),
            optional("identityPublicKey", Kind::Text),
            optional("signature", Kind::Text),
            optional("timestamp", Kind::Time),
        ],
    ),
    (
        "users",
        &[
            required("id", Kind::Uuid),
            required("email", Kind::Text),
            optional("created_at", Kind::Time),
            optional("updated_at", Kind::Time),
        ],
    ),
    (
        "spaces",
        &[
            required("id", Kind::Uuid),
            required("name", Kind::Text),
            optional("description", Kind::Text),
            optional("owner_id", Kind::Uuid),
            optional("is_public", Kind::Flag),
            optional("created_at", Kind::Time),
            optional("updated_at", Kind::Time),
        ],
    ),
    (
        "fidgets",
        &[
            required("id", Kind::Uuid),
            optional("space_id", Kind::Uuid),
            required("type", Kind::Text),
            optional("config", Kind::Json),
            optional("position", Kind::Json),
            optional("created_at", Kind::Time),
            optional("updated_at", Kind::Time),
        ],
    ),
];

/// Why the columns of a table do not fit, and what is different without harm.
pub(super) fn fits(table: &str, wanted: &[Wanted], found: &[Column]) -> (Vec<String>, Vec<String>) {
    let (mut obstacles, mut remarks) = (Vec::new(), Vec::new());
    for Wanted { name, kind, is_required } in wanted {
        let Some(column) = found.iter().find(|column| column.name == *name) else {
            obstacles.push(format!("{table}.{name} is missing"));
            continue;
        };
        if !kind.holds(&column.type_name) {
            obstacles.push(format!("{table}.{name} is {}, not {}", column.type_name, kind.name()));
        }
        match (is_required, column.is_required) {
            (true, false) => remarks.push(format!("{table}.{name} allows NULL; such rows are left out of lists")),
            // The library never stores a time or a flag that is NULL.
            (false, true) if matches!(kind, Kind::Time | Kind::Flag) => {}
            (false, true) => obstacles.push(format!("{table}.{name} does not allow NULL")),
            _ => {}
        }
    }
    for column in found.iter().filter(|column| !wanted.iter().any(|wanted| wanted.name == column.name)) {
        let name = &column.name;
        if column.is_required && !column.has_default {
            obstacles.push(format!("{table}.{name} is a further column that requires a value and has no default"));
        } else {
            remarks.push(format!("{table}.{name} is a further column, which the library leaves alone"));
        }
    }
    (obstacles, remarks)
}

impl Kind {
    fn holds(self, type_name: &str) -> bool {
        let length = |text: &str| text.strip_prefix("character varying(")?.strip_suffix(')')?.parse::<u32>().ok();
        match self {
            Kind::ShortText => {
                matches!(type_name, "text" | "character varying")
                    || length(type_name).is_some_and(|length| length >= 50)
            }
            Kind::Text => matches!(type_name, "text" | "character varying"),
            Kind::Integer => matches!(type_name, "integer" | "bigint"),
            _ => type_name == self.name(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Uuid => "uuid",
            Kind::Text => "text",
            Kind::ShortText => "character varying(50)",
            Kind::Texts => "text[]",
            Kind::Json => "jsonb",
            Kind::Flag => "boolean",
            Kind::Time => "timestamp with time zone",
            Kind::Integer => "integer",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_fits_when_it_holds_every_value() {
        for (kind, good, bad) in [
            (Kind::Integer, "bigint", "text"),
            (Kind::ShortText, "character varying(80)", "character varying(40)"),
            (Kind::Text, "character varying", "character varying(9000)"),
            (Kind::Time, "timestamp with time zone", "timestamp without time zone"),
            (Kind::Json, "jsonb", "json"),
        ] {
            assert!(kind.holds(good) && kind.holds(kind.name()) && !kind.holds(bad), "{kind:?}");
        }
    }
}
