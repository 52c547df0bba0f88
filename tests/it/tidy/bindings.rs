//! C and Python have every call of the blocking client, and every option of its requests.
//!
//! Invariant: a call of Rust has the same name in C (`tsq_<area>_<call>`) and in Python (both clients), or stands in a list of
//! exceptions with the names that stand for it and the reason. An exception that is not needed is a complaint, too.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use proc_macro2::{TokenStream, TokenTree};
use townsquare_tests::paths::workspace;

use super::{assert_tidy, source::files};

/// A call or an option of Rust that has another name in a language, or none.
struct Exception {
    /// `TYPE.CALL` of Rust.
    rust: &'static str,
    /// The names that it has there, separated by spaces; empty if there is none.
    names: &'static str,
    why: &'static str,
}

const fn exception(rust: &'static str, names: &'static str, why: &'static str) -> Exception {
    Exception { rust, names, why }
}

const TWO_METHODS: &str = "Python has one method with an argument for it";
const ONE_TEXT: &str = "C gets the figures as text, in two forms";
const TYPE_NAME: &str = "the name without `get` is the one of the record";
const INTO_BUFFER: &str = "in C every read fills a buffer of the caller";
const PAGES: &str = "C has no iterators: a program asks for page after page";
const BY_COMMAND: &str = "the command `townsquare move --supabase` does it once, before there is a program";
const FILE_OBJECT: &str = "Python has one file object for reading and writing, with the names of Python's own";

const IN_C: &[Exception] = &[
    exception("Client.shared_with", "tsq_client_shared", "its configuration may be NULL"),
    exception("Client.metrics", "tsq_client_metrics_json tsq_client_metrics_prometheus", ONE_TEXT),
    exception("Client.restore", "tsq_restore", "it needs no client"),
    exception("Client.move_from_supabase", "", BY_COMMAND),
    exception("Client.check_move_from_supabase", "", BY_COMMAND),
    exception("Discovery.stats", "tsq_discovery_get_stats", TYPE_NAME),
    exception("Realtime.stats", "tsq_realtime_get_stats", TYPE_NAME),
    exception("Realtime.handle_events_request", "tsq_realtime_handle_events", "in C it always takes the method"),
    exception("EventBody.closer", "tsq_file_response_free", "the thread that reads a response ends it"),
    exception("ChangeStream.next_within", "tsq_change_stream_next", "in C it always takes a time-out"),
    exception("ChangeStream.closer", "tsq_change_stream_close", "any thread may close a stream"),
    exception("Spaces.iter_public_spaces", "tsq_spaces_get_public_spaces_after_id", PAGES),
    exception("Storage.iter", "tsq_storage_list", PAGES),
    exception("Storage.upload_reader", "tsq_storage_upload_stream", "C has no readers but a callback"),
    exception("Storage.reader", "tsq_storage_open_reader", "a function is named by a verb"),
    exception("Storage.writer", "tsq_storage_open_writer", "a function is named by a verb"),
    exception("FileReader.next_chunk", "tsq_file_reader_read", INTO_BUFFER),
    exception("FileWriter.write_chunk", "tsq_file_writer_write", "in C no trait has the name `write`"),
    exception("Storage.move_file", "tsq_storage_move", "`move` is a keyword of Rust only"),
    exception("ImportOptions.dry_run", "tsq_client_import_rows", "C takes it as an argument"),
    exception("MoveOptions.follow", "tsq_move_options.follow_ms", "a time is named with its unit"),
    exception("MoveOptions.sessions", "tsq_move_options.without_sessions", "zeroed options copy everything"),
    exception("Selection.collapsed", "tsq_selection.is_collapsed", "a member is named by what it says"),
    exception("Selection.in_categories", "tsq_selection.categories", "a member is named by what it holds"),
    exception("Selection.on_networks", "tsq_selection.networks", "a member is named by what it holds"),
    exception("UploadOptions.upsert", "tsq_upload_options.insert_only", "zeroed options are the defaults"),
];

const IN_PYTHON: &[Exception] = &[
    exception("Client.move_from_supabase", "", BY_COMMAND),
    exception("Client.check_move_from_supabase", "", BY_COMMAND),
    exception("Client.shared", "shared", "it is a function of the package"),
    exception("Client.shared_with", "shared", "it is a function of the package, and takes options"),
    exception("Client.is_closed", "Client.closed AsyncClient.closed", "a property is named by an adjective"),
    exception("Auth.sign_out_scope", "Auth.sign_out(scope)", TWO_METHODS),
    exception("Auth.refresh_session_of", "Auth.refresh_session(refresh_token)", TWO_METHODS),
    exception("Auth.delete_own_user", "Auth.delete_user(current_password)", TWO_METHODS),
    exception("Discovery.force_refresh", "Discovery.refresh(force)", TWO_METHODS),
    exception("Spaces.get_public_spaces_after", "Spaces.get_public_spaces(after)", TWO_METHODS),
    exception("Spaces.get_space_with_any_fidgets", "Spaces.get_space_with_fidgets(allow_empty)", TWO_METHODS),
    exception("Fidgets.get_space_fidgets_after", "Fidgets.get_space_fidgets(after)", TWO_METHODS),
    exception("Realtime.handle_events_request", "Realtime.handle_events(method)", TWO_METHODS),
    exception("Storage.download_range", "Storage.download(range)", TWO_METHODS),
    exception("Storage.upload_reader", "Storage.upload(data)", "the data may be a file object"),
    exception("Storage.reader", "Storage.open AsyncStorage.open", FILE_OBJECT),
    exception("Storage.writer", "Storage.open AsyncStorage.open", FILE_OBJECT),
    exception("FileReader.info", "Storage.open", FILE_OBJECT),
    exception("FileReader.read_at", "Storage.open", FILE_OBJECT),
    exception("FileReader.next_chunk", "Storage.open", FILE_OBJECT),
    exception("FileWriter.write_chunk", "Storage.open", FILE_OBJECT),
    exception("FileWriter.finish", "Storage.open", FILE_OBJECT),
    exception("FileWriter.abort", "Storage.open", FILE_OBJECT),
    exception("Storage.move_file", "Storage.move AsyncStorage.move", "`move` is a keyword of Rust only"),
    exception("EventBody.closer", "HttpStream.close AsyncHttpStream.close", "any thread may close a stream"),
    exception("ChangeStream.next_within", "ChangeStream.next(timeout)", TWO_METHODS),
    exception("ChangeStream.closer", "ChangeStream.close AsyncChangeStream.close", "any thread may close a stream"),
    exception("Selection.collapsed", "Discovery.search_mini_apps(collapse)", "an argument is named by a verb"),
    exception(
        "Selection.in_categories",
        "Discovery.search_mini_apps(categories)",
        "an argument is named by what it holds",
    ),
    exception("Selection.on_networks", "Discovery.search_mini_apps(networks)", "an argument is named by what it holds"),
];

/// The requests and options whose methods are members of a struct in C and arguments of a method in Python.
const INPUTS: [(&str, &str, &str); 6] = [
    ("ChangeRequest", "tsq_change_request", "Realtime.subscribe"),
    ("ImportOptions", "tsq_import_options", "Client.import_rows"),
    ("MoveOptions", "tsq_move_options", "Client.move_to"),
    ("Selection", "tsq_selection", "Discovery.search_mini_apps"),
    ("UploadOptions", "tsq_upload_options", "Storage.upload"),
    ("UrlOptions", "tsq_url_options", "Storage.signed_url"),
];

/// Returns the calls that have neither the same name in a language nor an exception, and the exceptions that are wrong.
/// `usual` returns the usual names of a call; a language has the call if it has one of each pair.
fn complaints(
    calls: &BTreeSet<String>,
    usual: impl Fn(&str) -> Vec<String>,
    names: &BTreeSet<String>,
    exceptions: &[Exception],
) -> Vec<String> {
    let mut complaints = Vec::new();
    let has_usual = |call: &str| usual(call).iter().all(|name| names.contains(name));
    for call in calls {
        if !has_usual(call) && !exceptions.iter().any(|exception| exception.rust == call) {
            complaints.push(format!("{call}: there is no {}", usual(call).join(" and no ")));
        }
    }
    for Exception { rust, names: substitutes, why } in exceptions {
        if !calls.contains(*rust) {
            complaints.push(format!("{rust}: an exception for a call that Rust does not have"));
        } else if has_usual(rust) {
            complaints.push(format!("{rust}: an exception for a call with the usual name"));
        }
        let missing = substitutes.split(' ').filter(|name| !name.is_empty() && !names.contains(*name));
        complaints.extend(missing.map(|name| format!("{rust}: there is no {name}, which stands for it")));
        if why.is_empty() {
            complaints.push(format!("{rust}: an exception without a reason"));
        }
    }
    complaints
}

/// The public calls of a file of the blocking client, as `TYPE.CALL`: methods, and the lines of `area!`.
fn calls_of(path: &str, text: &str) -> BTreeSet<String> {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut calls = BTreeSet::new();
    for item in &file.items {
        match item {
            syn::Item::Macro(item) if item.mac.path.is_ident("area") => {
                calls.extend(lines_of_area(item.mac.tokens.clone()));
            }
            syn::Item::Impl(item) => calls.extend(methods(item).map(|(name, _)| name)),
            _ => {}
        }
    }
    calls
}

/// The public methods of an `impl` without a trait, as `TYPE.METHOD`, and whether they take `self`.
fn methods(item: &syn::ItemImpl) -> impl Iterator<Item = (String, bool)> {
    let of_type = match &*item.self_ty {
        syn::Type::Path(path) if item.trait_.is_none() => path.path.segments.last().map(|last| last.ident.to_string()),
        _ => None,
    };
    item.items.iter().filter_map(move |item| match item {
        syn::ImplItem::Fn(method) if matches!(method.vis, syn::Visibility::Public(_)) && !is_hidden(&method.attrs) => {
            Some((format!("{}.{}", of_type.as_ref()?, method.sig.ident), method.sig.receiver().is_some()))
        }
        _ => None,
    })
}

fn is_hidden(attributes: &[syn::Attribute]) -> bool {
    let is_hidden = |attribute: &syn::Attribute| {
        attribute.path().is_ident("doc") && attribute.parse_args::<syn::Ident>().is_ok_and(|word| word == "hidden")
    };
    attributes.iter().any(is_hidden)
}

/// The calls of `area! { Area: call(arguments) -> Output; … }`.
fn lines_of_area(tokens: TokenStream) -> Vec<String> {
    let (mut area, mut calls, mut is_at_start) = (String::new(), Vec::new(), false);
    for token in tokens {
        match token {
            TokenTree::Ident(name) if area.is_empty() => area = name.to_string(),
            TokenTree::Ident(name) if is_at_start => {
                calls.push(format!("{area}.{name}"));
                is_at_start = false;
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' || (punct.as_char() == ':' && calls.is_empty()) => {
                is_at_start = true;
            }
            _ => {}
        }
    }
    calls
}

/// The options of a request: the public methods that take `self` in an `impl` of the type, as `TYPE.METHOD`.
fn options_of(path: &str, text: &str, of_type: &str) -> Vec<String> {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let impls = file.items.iter().filter_map(|item| if let syn::Item::Impl(item) = item { Some(item) } else { None });
    let options = impls.flat_map(methods).filter(|(_, takes_self)| *takes_self).map(|(name, _)| name);
    options.filter(|name| name.split('.').next() == Some(of_type)).collect()
}

/// The functions of the C interface, and its members as `STRUCT.MEMBER`.
fn names_of_c(abi: &str) -> BTreeSet<String> {
    let (mut names, mut of_struct) = (BTreeSet::new(), "");
    for line in abi.lines() {
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
        let last_name = |text: &str| text.rsplit(|letter| !is_name(letter)).next().unwrap_or_default().to_owned();
        if let Some(name) = line.strip_prefix("struct ") {
            of_struct = name.split(':').next().unwrap_or_default();
        } else if let Some((declaration, _)) = line.strip_prefix("  ").and_then(|line| line.split_once(", ")) {
            let member = last_name(declaration);
            names.insert(format!("{of_struct}.{member}"));
        } else if let Some((prototype, _)) = line.split_once('(') {
            names.insert(last_name(prototype));
        }
    }
    names
}

/// The functions of a stub, and its methods as `CLASS.METHOD`; with an argument in parentheses for each argument.
fn names_of_python(stub: &str) -> BTreeSet<String> {
    let (mut names, mut class) = (BTreeSet::new(), "");
    let word = |text: &str| {
        text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default().to_owned()
    };
    let mut rest = stub;
    while let Some((line, after)) = rest.split_once('\n') {
        let code = line.trim_start().trim_start_matches("async ");
        if let Some(head) = line.strip_prefix("class ") {
            class = head.split([':', '(']).next().unwrap_or_default();
        } else if let Some(head) = code.strip_prefix("def ") {
            let is_method = line.starts_with(' ');
            let name = if is_method { format!("{class}.{}", word(head)) } else { word(head) };
            let signature = &rest[line.len() - head.len()..];
            for argument in arguments(signature) {
                names.insert(format!("{name}({})", word(argument)));
            }
            names.insert(name);
        }
        rest = after;
    }
    names
}

/// The arguments in the first parentheses of a text.
fn arguments(text: &str) -> Vec<&str> {
    let Some(open) = text.find('(') else { return Vec::new() };
    let (mut arguments, mut depth, mut start) = (Vec::new(), 0, open + 1);
    for (at, letter) in text.char_indices().skip_while(|(at, _)| *at < open) {
        match letter {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        if (letter == ',' && depth == 1) || depth == 0 {
            arguments.push(text[start..at].trim());
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    arguments
}

/// The calls of the blocking client, and the options of its requests.
fn calls_of_rust() -> BTreeSet<String> {
    let mut calls = BTreeSet::new();
    for file in files(&["core/src/blocking.rs", "core/src/blocking"], &[".rs"]) {
        calls.extend(calls_of(&file.path, &file.text));
    }
    for file in files(&["core/src"], &[".rs"]) {
        for (of_type, ..) in INPUTS {
            calls.extend(options_of(&file.path, &file.text, of_type));
        }
    }
    calls
}

/// The entries of [`INPUTS`] by the type of Rust.
fn inputs() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    INPUTS.into_iter().map(|(rust, c, python)| (rust, (c, python))).collect()
}

fn usual_in_c(call: &str) -> Vec<String> {
    let (of_type, name) = call.split_once('.').unwrap_or_default();
    if let Some((of_struct, _)) = inputs().get(of_type) {
        return vec![format!("{of_struct}.{name}")];
    }
    let mut snake = String::new();
    for letter in of_type.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    vec![format!("tsq_{snake}_{name}")]
}

fn usual_in_python(call: &str) -> Vec<String> {
    let (of_type, name) = call.split_once('.').unwrap_or_default();
    match inputs().get(of_type) {
        Some((_, method)) => vec![format!("{method}({name})"), format!("Async{method}({name})")],
        None => vec![call.to_owned(), format!("Async{call}")],
    }
}

#[test]
fn c_has_every_call_of_rust() {
    let names = names_of_c(&fs::read_to_string(workspace().join("ffi/abi.txt")).expect("ffi/abi.txt is text"));
    let calls = calls_of_rust();
    assert!(calls.len() > 120, "{}", calls.len());
    assert_tidy("C has every call of the blocking client", &complaints(&calls, usual_in_c, &names, IN_C));
}

#[test]
fn python_has_every_call_of_rust() {
    let stubs = files(&["python/townsquare"], &[".pyi"]);
    let names = stubs.iter().flat_map(|stub| names_of_python(&stub.text)).collect();
    let found = complaints(&calls_of_rust(), usual_in_python, &names, IN_PYTHON);
    assert_tidy("Python has every call of the blocking client", &found);
}

#[test]
fn calls_are_read_from_areas_and_methods() {
    let text = "area! { Auth: sign_up(email: &str) -> User; list(limit: u32,\n after: Option<Uuid>) -> Vec<User>; }\n\
                impl Client { pub fn open() {} fn private() {} #[doc(hidden)] pub fn inner(&self) {} }\n\
                impl Auth<'_> { #[doc = \"x\"] pub fn hear(&self) {} }\nimpl Iterator for Files { fn next(&mut self) {} }\n";
    let calls = calls_of("x.rs", text);
    assert_eq!(calls.iter().collect::<Vec<_>>(), ["Auth.hear", "Auth.list", "Auth.sign_up", "Client.open"]);
    let request = "impl Request { pub fn table() {} pub fn until(mut self) {} fn view(&self) {} }\nimpl Other { pub fn x(self) {} }";
    assert_eq!(options_of("x.rs", request, "Request"), ["Request.until"]);
    let of_core = calls_of_rust();
    for call in ["Auth.identities_of", "Client.check_move", "ChangeRequest.until", "FileReader.read_at", "Storage.iter"]
    {
        assert!(of_core.contains(call), "{call}");
    }
}

#[test]
fn names_are_read_from_the_interface_and_the_stubs() {
    let abi = "struct tsq_x: 8 bytes, aligned to 8\n  0: const char *ptr, 8 bytes\nvoid (*tsq_call)(void *data)\n\
               tsq_status tsq_x_get(const tsq_x *x)\nconst tsq_y *tsq_y_at(size_t i)\n";
    let names = names_of_c(abi);
    for name in ["tsq_x.ptr", "tsq_x_get", "tsq_y_at"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    let stub = "def shared(folder: Optional[str] = None) -> Client:\nclass Client(Base[int]):\n    def move_to(\n        self, *,\n        \
                progress: Callable[[int, int], object], **options: int\n    ) -> None: ...\n    async def close(self) -> None: ...\n";
    let names = names_of_python(stub);
    for name in ["shared", "shared(folder)", "Client.move_to", "Client.move_to(progress)", "Client.close"] {
        assert!(names.contains(name), "{name} in {names:?}");
    }
    assert!(!names.contains("Client.move_to(object)"), "{names:?}");
}

#[test]
fn a_missing_call_and_a_wrong_exception_are_complaints() {
    let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
    let calls = set(&["Auth.list", "Auth.new", "Storage.move_file", "ChangeRequest.until"]);
    let names = set(&["tsq_auth_list", "tsq_storage_move", "tsq_change_request.since"]);
    let moved = exception("Storage.move_file", "tsq_storage_move", "a reason");
    assert_eq!(
        complaints(&calls, usual_in_c, &names, &[moved]),
        ["Auth.new: there is no tsq_auth_new", "ChangeRequest.until: there is no tsq_change_request.until"]
    );
    let wrong = [
        exception("Auth.gone", "", "a reason"),
        exception("Auth.list", "tsq_auth_list", "a reason"),
        exception("Auth.new", "tsq_auth_make", "a reason"),
        exception("Storage.move_file", "tsq_storage_move", ""),
        exception("ChangeRequest.until", "", "a reason"),
    ];
    assert_eq!(
        complaints(&calls, usual_in_c, &names, &wrong),
        [
            "Auth.gone: an exception for a call that Rust does not have",
            "Auth.list: an exception for a call with the usual name",
            "Auth.new: there is no tsq_auth_make, which stands for it",
            "Storage.move_file: an exception without a reason"
        ]
    );
    let python = set(&["Auth.list", "AsyncAuth.list", "Auth.new", "Storage.move_file", "AsyncStorage.move_file"]);
    assert_eq!(
        complaints(&calls, usual_in_python, &python, &[]),
        [
            "Auth.new: there is no Auth.new and no AsyncAuth.new",
            "ChangeRequest.until: there is no Realtime.subscribe(until) and no AsyncRealtime.subscribe(until)"
        ]
    );
}
