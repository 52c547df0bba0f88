//! Filters of changes. A filter is accepted exactly if the model reads it, and selects the rows that the model selects.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use townsquare::{
    ErrorKind, Uuid,
    blocking::Client,
    communities::{NewRegistration, SpaceType},
    realtime::LiveRequest,
    rows::{self, ValueKind},
    spaces::{NewFidget, NewSpace},
};

use super::{Target, filter_model, fixture};

/// The tables that inputs filter.
const TABLES: [&str; 3] = ["spaces", "fidgets", "spaceRegistrations"];

/// See the module.
pub struct Filter {
    service: Client,
    tables: Vec<Rows>,
}

struct Rows {
    name: &'static str,
    columns: BTreeMap<&'static str, ValueKind>,
    rows: Vec<Map<String, Value>>,
}

impl Target for Filter {
    const NAME: &'static str = "filter";

    fn new() -> Filter {
        let clock = townsquare::config::ManualClock::at(fixture::now());
        let service = fixture::open(fixture::in_memory().clock(clock.clock())).as_service();
        write_rows(&service, || clock.advance(std::time::Duration::from_millis(1_500)));
        let all = rows::tables();
        let tables = TABLES.map(|name| {
            let table = all.iter().find(|table| table.name == name).expect("a table");
            let columns = table.columns.iter().map(|column| (column.name, column.kind)).collect();
            let rows = service.realtime().live(LiveRequest::table(name)).expect("a live query").rows;
            assert!(rows.len() >= 4, "{name} has rows");
            Rows { name, columns, rows }
        });
        Filter { service, tables: tables.into() }
    }

    fn check(&mut self, data: &[u8]) {
        let Some((&kind, rest)) = data.split_first() else { return };
        let filter = fixture::text(rest);
        let Rows { name, columns, rows } = &self.tables[usize::from(kind) % self.tables.len()];
        let model = filter_model::Filter::parse(columns, &filter);
        match self.service.realtime().live(LiveRequest::table(*name).filter(&filter)) {
            Ok(live) => {
                let model = model.unwrap_or_else(|| panic!("{filter:?} is no filter of {name}"));
                let expected: Vec<_> = rows.iter().filter(|row| model.selects(row)).collect();
                let mut found: Vec<_> = live.rows.iter().collect();
                found.sort_by_key(|row| rows.iter().position(|known| known == *row));
                assert_eq!(found, expected, "{name}: {filter:?}");
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {filter:?}: {error}");
                assert!(model.is_none(), "{name}: {filter:?}: {error}");
            }
        }
    }
}

fn write_rows(service: &Client, tick: impl Fn()) {
    let (owner, _) = fixture::user(service, "ann");
    let texts =
        ["", "a", "A", "Plaza", "pl_za%", "o'clock", "żółć", "ŻÓŁĆ", "ΣΑΣ", "straße", "🏘", "two\nlines", "a\\b"];
    for (index, text) in (0..).zip(texts) {
        tick();
        let mut space = NewSpace::named(text).with_id(Uuid::from_u128(index));
        if index % 2 == 0 {
            space = space.description(texts[(index as usize + 3) % texts.len()]).public();
        }
        if index % 3 == 0 {
            space = space.owned_by(owner);
        }
        service.spaces().create_space(space).expect("a new space");
        let fidget = NewFidget::of_type(text).with_id(Uuid::from_u128(index + 0x100)).config(text);
        service.fidgets().create_fidget(Uuid::from_u128(index % 3), fidget).expect("a new fidget");
        let mut registration = NewRegistration::new(Uuid::from_u128(index), text, SpaceType::Profile);
        registration.fid = [None, Some(0), Some(-1), Some(i32::MAX), Some(i32::MIN), Some(42)][index as usize % 6];
        registration.signature = Some(text.to_owned()).filter(|_| index % 2 == 0);
        service.communities().register_space(registration).expect("a new registration");
    }
}
