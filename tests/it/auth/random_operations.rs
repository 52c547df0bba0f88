//! Random operations by users, anonymous callers, the service and ended sessions, compared with the reference model of
//! the rights (SPEC 5.4, DESIGN 4).

use townsquare_tests::test_database::Engine;

use crate::model::{Mix, random_operations};

#[test]
fn random_operations_of_all_callers_match_the_model_on_sqlite() {
    random_operations(Mix::AllCallers, Engine::Sqlite, 20_000);
}

#[test]
fn random_operations_of_all_callers_match_the_model_on_postgres() {
    random_operations(Mix::AllCallers, Engine::Postgres, if cfg!(debug_assertions) { 3_000 } else { 10_000 });
}
