//! Random operations on the tables by the service and anonymous callers, compared with the reference model.

use townsquare_tests::test_database::Engine;

use crate::model::{Mix, random_operations};

#[test]
fn random_table_operations_match_the_model_on_sqlite() {
    random_operations(Mix::Tables, Engine::Sqlite, if cfg!(debug_assertions) { 10_000 } else { 100_000 });
}

#[test]
fn random_table_operations_match_the_model_on_postgres() {
    random_operations(Mix::Tables, Engine::Postgres, if cfg!(debug_assertions) { 2_000 } else { 10_000 });
}
