//! Operations on spaces and fidgets by several callers, against a model: each result and each error is the one that the model computes.

use townsquare::{
    ErrorKind, Result, Uuid,
    blocking::Client,
    spaces::{Change, Fidget, FidgetPatch, NewFidget, NewSpace, Space, SpacePatch},
};

use super::{
    Target, fixture,
    tables_model::{Caller, Tables},
};

/// The most operations of an input.
const MAX_OPERATIONS: usize = 24;

const TEXTS: [&str; 8] = ["", "a", "o'clock", "żółć", "🏘", "x' OR true --", "$1", "%"];

/// See the module.
pub struct TableOperations {
    service: Client,
    callers: [(Caller, Client); 4],
    users: [Uuid; 2],
    /// The number of inputs so far: each has ids of its own, because a deleted space keeps its id.
    inputs: u128,
}

/// The bytes of an input.
struct Choices<'a> {
    bytes: &'a [u8],
    /// The first of the ids of this input.
    ids: u128,
    users: [Uuid; 2],
}

impl Target for TableOperations {
    const NAME: &'static str = "tables";

    fn new() -> TableOperations {
        let client = fixture::open(fixture::in_memory());
        let ((ann, as_ann), (bob, as_bob)) = (fixture::user(&client, "ann"), fixture::user(&client, "bob"));
        let service = client.as_service();
        let callers = [
            (Caller::User(ann), as_ann),
            (Caller::User(bob), as_bob),
            (Caller::Anonymous, client.as_anonymous()),
            (Caller::Service, service.clone()),
        ];
        TableOperations { service, callers, users: [ann, bob], inputs: 0 }
    }

    fn check(&mut self, data: &[u8]) {
        self.inputs += 1;
        let mut model = Tables::new(fixture::now(), self.users);
        let mut choices = Choices { bytes: data, ids: self.inputs << 8, users: self.users };
        for _ in 0..MAX_OPERATIONS {
            let Some(byte) = choices.take() else { break };
            let (caller, client) = &self.callers[usize::from(byte % 4)];
            operate(&mut model, *caller, client, byte / 4, &mut choices);
        }
        for (caller, client) in &self.callers {
            compare_lists(&model, *caller, client);
        }
        for id in model.spaces.keys() {
            self.service.spaces().delete_space(*id).expect("a space of the model");
        }
        assert!(self.service.spaces().get_public_spaces(1, 0).expect("a list").is_empty());
    }
}

impl Choices<'_> {
    fn take(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    fn byte(&mut self) -> u8 {
        self.take().unwrap_or_default()
    }

    fn id(&mut self) -> Uuid {
        Uuid::from_u128(self.ids + u128::from(self.byte() % 6))
    }

    fn text(&mut self) -> String {
        TEXTS[usize::from(self.byte()) % TEXTS.len()].to_owned()
    }

    fn optional<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.byte() % 2 == 1).then(|| make(self))
    }

    fn change<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Change<T> {
        match self.byte() % 4 {
            0 => Change::Keep,
            1 => Change::Clear,
            _ => Change::Set(make(self)),
        }
    }

    fn user(&mut self) -> Uuid {
        let users = self.users;
        *users.get(usize::from(self.byte() % 3)).unwrap_or(&Uuid::from_u128(9))
    }
}

/// Compares the outcome of an operation with the outcome of the model.
fn agree<T: PartialEq + std::fmt::Debug>(found: Result<T>, expected: Result<T, ErrorKind>) -> Option<T> {
    match (found, expected) {
        (Ok(found), Ok(expected)) => {
            assert_eq!(found, expected);
            Some(found)
        }
        (Err(error), Err(kind)) => {
            assert_eq!(error.kind(), kind, "{error}");
            None
        }
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

fn operate(model: &mut Tables, caller: Caller, client: &Client, operation: u8, choices: &mut Choices<'_>) {
    let (spaces, fidgets) = (client.spaces(), client.fidgets());
    match operation % 10 {
        0 | 1 => {
            let mut new = NewSpace::default();
            (new.id, new.name) =
                (Some(choices.id()), choices.optional(Choices::text).or(choices.optional(Choices::text)));
            (new.description, new.is_public) = (choices.optional(Choices::text), choices.byte() % 2 == 1);
            new.owner_id = choices.optional(Choices::user);
            let expected = model.check_space(caller, &new);
            match spaces.create_space(new.clone()) {
                Ok(made) => model.insert_space(caller, &new, &made, expected),
                Err(error) => assert_eq!(Some(error.kind()), expected.err(), "{new:?} by {caller:?}: {error}"),
            }
        }
        2 => {
            let (id, mut patch) = (choices.id(), SpacePatch::new());
            (patch.name, patch.description) = (choices.change(Choices::text), choices.change(Choices::text));
            patch.is_public = choices.change(|choices| choices.byte() % 2 == 1);
            let expected = model.updated_space(caller, id, &patch);
            if let Some(space) = agree(spaces.update_space(id, patch), expected) {
                model.spaces.insert(id, space);
            }
        }
        3 => {
            let id = choices.id();
            if agree(spaces.delete_space(id), model.own_space(caller, id).map(|_| ())).is_some() {
                model.delete_space(id);
            }
        }
        4 | 5 => {
            let (space, mut new) = (choices.id(), NewFidget::default());
            (new.id, new.kind) =
                (Some(choices.id()), choices.optional(Choices::text).or(choices.optional(Choices::text)));
            (new.config, new.position) = (json(choices), json(choices));
            let expected = model.check_fidget(caller, space, &new);
            match fidgets.create_fidget(space, new.clone()) {
                Ok(made) => model.insert_fidget(space, &new, &made, expected),
                Err(error) => assert_eq!(Some(error.kind()), expected.err(), "{new:?} by {caller:?}: {error}"),
            }
        }
        6 => {
            let (id, mut patch) = (choices.id(), FidgetPatch::new());
            patch.kind = choices.change(Choices::text);
            patch.config = choices.change(|choices| json(choices).unwrap_or_default());
            patch.position = choices.change(|choices| json(choices).unwrap_or_default());
            let expected = model.updated_fidget(caller, id, &patch);
            if let Some(fidget) = agree(fidgets.update_fidget(id, patch), expected) {
                model.fidgets.insert(id, fidget);
            }
        }
        7 => {
            let id = choices.id();
            if agree(fidgets.delete_fidget(id), model.own_fidget(caller, id).map(|_| ())).is_some() {
                model.fidgets.remove(&id);
            }
        }
        8 => {
            let id = choices.id();
            agree(spaces.get_space(id), model.space(caller, id).cloned());
            agree(fidgets.get_fidget(id), model.fidget(caller, id).cloned());
        }
        _ => compare_lists(model, caller, client),
    }
}

/// Compares the lists of public spaces, of the spaces of each user, and of the fidgets of each space.
fn compare_lists(model: &Tables, caller: Caller, client: &Client) {
    let public = client.spaces().get_public_spaces(1_000, 0).expect("a list");
    let public: Vec<Space> = public.into_iter().map(|listed| listed.space).collect();
    assert_eq!(public, model.public_spaces());
    for user in model.users {
        let own = client.spaces().get_user_spaces(user).expect("a list");
        let own: Vec<(Space, Vec<Fidget>)> = own.into_iter().map(|found| (found.space, found.fidgets)).collect();
        assert_eq!(own, model.spaces_of(caller, user), "spaces of {user} for {caller:?}");
    }
    for id in model.spaces.keys() {
        let fidgets = client.fidgets().get_space_fidgets(*id).expect("a list");
        let expected = model.space(caller, *id).map(|_| model.fidgets_of(*id)).unwrap_or_default();
        assert_eq!(fidgets, expected, "fidgets of {id} for {caller:?}");
    }
}

fn json(choices: &mut Choices<'_>) -> Option<serde_json::Value> {
    match choices.byte() % 5 {
        0 => None,
        1 => Some(serde_json::Value::Null),
        2 => Some(choices.byte().into()),
        3 => Some(choices.text().into()),
        _ => Some(serde_json::json!({"x": choices.byte(), "text": choices.text()})),
    }
}
