//! The rows that the processes share, the changes of the writer, and the subscriptions.
//!
//! Invariant: each follows from its number, so that every process knows what the others do.

use townsquare::Uuid;
use townsquare_tests::raw_sql::RawConnection;

/// The users with sessions.
pub(crate) const USERS: usize = 8;

/// One of so many spaces is private.
const PRIVATE: usize = 10;

/// Subscriptions of each process that see every change of a table.
pub(crate) const BROAD: usize = 8;

pub(crate) const PASSWORD: &str = "correct horse";

pub(crate) fn address(user: usize) -> String {
    format!("user-{user}@town.example")
}

/// The id of the space with a number.
pub(crate) fn space(number: usize) -> Uuid {
    Uuid::from_u128((1 << 100) + number as u128)
}

/// The id of the one fidget of a space.
pub(crate) fn fidget(number: usize) -> Uuid {
    Uuid::from_u128((2 << 100) + number as u128)
}

fn is_public(space: usize) -> bool {
    !space.is_multiple_of(PRIVATE)
}

fn owner(space: usize) -> usize {
    space / PRIVATE % USERS
}

/// Inserts the spaces, each with a fidget.
pub(crate) fn insert(raw: &RawConnection, spaces: usize) {
    let id = |first: &str| format!("('{first}-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid");
    raw.run(&format!(
        "INSERT INTO spaces (id, name, is_public, owner_id)
         SELECT {}, 'Space', n % {PRIVATE} <> 0, (SELECT id FROM users WHERE email = 'user-' || n / {PRIVATE} % {USERS} ||
             '@town.example') FROM generate_series(0, {last}) AS n;
         INSERT INTO fidgets (id, space_id, type, config) SELECT {}, {}, 'clock', '0' FROM generate_series(0, {last}) AS n",
        id("00000010"),
        id("00000020"),
        id("00000010"),
        last = spaces - 1
    ));
    raw.run("VACUUM ANALYZE");
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Spaces,
    Fidgets,
}

/// What the change with a number changes: the table, and the number of the space.
pub(crate) fn change(number: usize, spaces: usize) -> (Table, usize) {
    let table = if number.is_multiple_of(2) { Table::Spaces } else { Table::Fidgets };
    (table, number.wrapping_mul(7_919) % spaces)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Service,
    Anonymous,
    User(usize),
}

/// What a subscription asks for.
pub(crate) struct Wanted {
    pub(crate) caller: Caller,
    pub(crate) table: Table,
    pub(crate) filter: String,
    /// The space; `None` for all.
    of: Option<usize>,
    public_only: bool,
}

impl Wanted {
    /// The subscription with a number, of one of the processes.
    pub(crate) fn new(number: usize, process: usize, spaces: usize) -> Wanted {
        let user = Caller::User(number % USERS);
        let all = |caller, table, filter: &str, public_only| Wanted {
            caller,
            table,
            filter: filter.to_owned(),
            of: None,
            public_only,
        };
        if number < BROAD {
            return match number % 4 {
                0 => all(Caller::Service, Table::Fidgets, "", false),
                1 => all(Caller::Anonymous, Table::Spaces, "", false),
                2 => all(user, Table::Fidgets, "type=eq.clock", false),
                _ => all(user, Table::Spaces, "is_public=eq.true", true),
            };
        }
        let of = (number * 31 + process) % spaces;
        let one = |caller, table, filter: String| Wanted { caller, table, filter, of: Some(of), public_only: false };
        match number % 4 {
            0 => one(Caller::Service, Table::Spaces, format!("id=eq.{}", space(of))),
            1 => one(Caller::Anonymous, Table::Fidgets, format!("space_id=eq.{}", space(of))),
            2 => one(user, Table::Fidgets, format!("id=eq.{}", fidget(of))),
            _ => one(Caller::Anonymous, Table::Spaces, format!("id=eq.{}", space(of))),
        }
    }

    /// The number of the space whose row the subscription asks for; `None` for all rows.
    pub(crate) fn of(&self) -> Option<usize> {
        self.of
    }

    /// Whether the subscription gets a change of this row.
    pub(crate) fn gets(&self, (table, of): (Table, usize)) -> bool {
        let is_visible = is_public(of)
            || match self.caller {
                Caller::Service => true,
                Caller::Anonymous => false,
                Caller::User(user) => user == owner(of) && !self.public_only,
            };
        table == self.table && self.of.is_none_or(|wanted| wanted == of) && is_visible
    }
}
