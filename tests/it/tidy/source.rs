//! Source files as the rules read them: as text, and as the paths and keywords of their syntax trees.

use std::{fs, path::Path};

use proc_macro2::{Span, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use townsquare_tests::paths::workspace;

/// A file of the workspace.
pub(super) struct Source {
    /// Path below the workspace, with forward slashes.
    pub(super) path: String,
    pub(super) text: String,
}

/// Reads all files below these folders of the workspace with these endings, sorted, without build output and caches.
pub(super) fn files(folders: &[&str], endings: &[&str]) -> Vec<Source> {
    let root = workspace();
    let mut sources = Vec::new();
    for folder in folders {
        walk(&root, &root.join(folder), endings, &mut sources);
    }
    sources.sort_by(|one, other| one.path.cmp(&other.path));
    sources
}

fn walk(root: &Path, at: &Path, endings: &[&str], into: &mut Vec<Source>) {
    if at.is_file() && endings.iter().any(|ending| at.to_string_lossy().ends_with(ending)) {
        let text = fs::read_to_string(at).unwrap_or_else(|error| panic!("{}: {error}", at.display()));
        let path = at.strip_prefix(root).unwrap_or(at).to_string_lossy().replace('\\', "/");
        into.push(Source { path, text });
    }
    for entry in fs::read_dir(at).into_iter().flatten().flatten() {
        let skipped = ["target", "__pycache__", ".venv", ".pytest_cache", "node_modules", ".git", "peers"];
        if !skipped.iter().any(|skipped| entry.file_name() == *skipped) {
            walk(root, &entry.path(), endings, into);
        }
    }
}

/// A path such as `std::fs::read`, or a marker such as `unsafe`, `async`, `.await`, `#[from]`, `Box<dyn Error>`.
pub(super) struct Item {
    pub(super) line: usize,
    /// Whether the item is inside `#[cfg(test)]`.
    pub(super) in_test: bool,
    /// The inline modules around the item.
    pub(super) modules: Vec<String>,
    pub(super) what: String,
}

/// Returns the items of a Rust file in their order; macro arguments are read token by token.
pub(super) fn items(path: &str, text: &str) -> Vec<Item> {
    let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut reader = Reader::default();
    reader.visit_file(&file);
    reader.items
}

/// Returns `path:line: item` for the items outside of tests that are banned.
pub(super) fn banned(path: &str, text: &str, is_banned: impl Fn(&str) -> bool) -> Vec<String> {
    let found = items(path, text).into_iter().filter(|item| !item.in_test && is_banned(&item.what));
    found.map(|item| format!("{path}:{}: {}", item.line, item.what)).collect()
}

/// Whether a path is `prefix` or begins with `prefix::`.
pub(super) fn is_below(path: &str, prefix: &str) -> bool {
    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

#[derive(Default)]
struct Reader {
    items: Vec<Item>,
    test_depth: usize,
    modules: Vec<String>,
}

impl Reader {
    fn add(&mut self, span: Span, what: impl Into<String>) {
        let (line, in_test, modules) = (span.start().line, self.test_depth > 0, self.modules.clone());
        self.items.push(Item { line, in_test, modules, what: what.into() });
    }

    /// Visits a part of the tree, as test code when its attributes contain `#[cfg(test)]`.
    fn within(&mut self, attributes: &[syn::Attribute], visit: impl FnOnce(&mut Self)) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().is_ident("cfg") && attribute.parse_args::<syn::Ident>().is_ok_and(|name| name == "test")
        };
        let depth = usize::from(attributes.iter().any(is_test));
        self.test_depth += depth;
        visit(self);
        self.test_depth -= depth;
    }

    fn use_tree(&mut self, before: &str, tree: &syn::UseTree) {
        match tree {
            syn::UseTree::Path(path) => self.use_tree(&format!("{before}{}::", path.ident), &path.tree),
            syn::UseTree::Name(name) if name.ident == "self" => {
                self.add(name.ident.span(), before.trim_end_matches("::"));
            }
            syn::UseTree::Name(name) => self.add(name.ident.span(), format!("{before}{}", name.ident)),
            syn::UseTree::Rename(name) => self.add(name.ident.span(), format!("{before}{}", name.ident)),
            syn::UseTree::Glob(glob) => self.add(glob.star_token.spans[0], before.trim_end_matches("::")),
            syn::UseTree::Group(group) => group.items.iter().for_each(|tree| self.use_tree(before, tree)),
        }
    }

    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Option<(Span, String)> = None;
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 && path.is_some() => {
                    path = path.map(|(span, path)| (span, format!("{path}::{name}")));
                    colons = 0;
                    continue;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) => {
                    if let Some((span, path)) = path.replace((name.span(), name.to_string())) {
                        self.add(span, path);
                    }
                }
                TokenTree::Group(group) => {
                    if let Some((span, path)) = path.take() {
                        self.add(span, path);
                    }
                    self.tokens(group.stream());
                }
                _ => {
                    if let Some((span, path)) = path.take() {
                        self.add(span, path);
                    }
                }
            }
            colons = 0;
        }
        if let Some((span, path)) = path {
            self.add(span, path);
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_mod(&mut self, node: &'ast syn::ItemMod) {
        self.modules.push(node.ident.to_string());
        self.within(&node.attrs, |reader| visit::visit_item_mod(reader, node));
        self.modules.pop();
    }

    fn visit_item_fn(&mut self, node: &'ast syn::ItemFn) {
        self.within(&node.attrs, |reader| visit::visit_item_fn(reader, node));
    }

    fn visit_impl_item_fn(&mut self, node: &'ast syn::ImplItemFn) {
        self.within(&node.attrs, |reader| visit::visit_impl_item_fn(reader, node));
    }

    fn visit_item_impl(&mut self, node: &'ast syn::ItemImpl) {
        if let Some(unsafety) = node.unsafety {
            self.add(unsafety.span, "unsafe");
        }
        self.within(&node.attrs, |reader| visit::visit_item_impl(reader, node));
    }

    fn visit_item_use(&mut self, node: &'ast syn::ItemUse) {
        self.within(&node.attrs, |reader| reader.use_tree("", &node.tree));
    }

    fn visit_item_foreign_mod(&mut self, node: &'ast syn::ItemForeignMod) {
        self.add(node.abi.extern_token.span, "unsafe");
        visit::visit_item_foreign_mod(self, node);
    }

    fn visit_signature(&mut self, node: &'ast syn::Signature) {
        if let Some(unsafety) = node.unsafety {
            self.add(unsafety.span, "unsafe");
        }
        if let Some(asyncness) = node.asyncness {
            self.add(asyncness.span, "async");
        }
        visit::visit_signature(self, node);
    }

    fn visit_expr_unsafe(&mut self, node: &'ast syn::ExprUnsafe) {
        self.add(node.unsafe_token.span, "unsafe");
        visit::visit_expr_unsafe(self, node);
    }

    fn visit_expr_async(&mut self, node: &'ast syn::ExprAsync) {
        self.add(node.async_token.span, "async");
        visit::visit_expr_async(self, node);
    }

    fn visit_expr_await(&mut self, node: &'ast syn::ExprAwait) {
        self.add(node.await_token.span, "await");
        visit::visit_expr_await(self, node);
    }

    fn visit_expr_method_call(&mut self, node: &'ast syn::ExprMethodCall) {
        if let Some(syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. })) = node.args.first()
            && node.method == "expect"
            && text.value().is_empty()
        {
            self.add(node.method.span(), "expect(\"\")");
        }
        visit::visit_expr_method_call(self, node);
    }

    fn visit_path(&mut self, node: &'ast syn::Path) {
        let names: Vec<_> = node.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.add(node.segments[0].ident.span(), names.join("::"));
        visit::visit_path(self, node);
    }

    fn visit_path_segment(&mut self, node: &'ast syn::PathSegment) {
        if let syn::PathArguments::AngleBracketed(arguments) = &node.arguments
            && let Some(syn::GenericArgument::Type(syn::Type::TraitObject(object))) = arguments.args.first()
            && let Some(syn::TypeParamBound::Trait(bound)) = object.bounds.first()
            && node.ident == "Box"
            && bound.path.segments.last().is_some_and(|segment| segment.ident == "Error")
        {
            self.add(node.ident.span(), "Box<dyn Error>");
        }
        visit::visit_path_segment(self, node);
    }

    fn visit_attribute(&mut self, node: &'ast syn::Attribute) {
        let name = node.path().segments[0].ident.to_string();
        self.add(node.pound_token.spans[0], format!("#[{name}]"));
        if let syn::Meta::List(list) = &node.meta {
            self.add(node.pound_token.spans[0], format!("{name}({})", list.tokens));
        }
    }

    fn visit_macro(&mut self, node: &'ast syn::Macro) {
        visit::visit_macro(self, node);
        self.tokens(node.tokens.clone());
    }
}

#[test]
fn items_are_read_from_code_and_not_from_comments_and_strings() {
    let text = "// a::b\nuse x::{y, z::{self, w as v}, *};\nfn f() { g!(\"a::b\", c::d(e::f)); unsafe {} }\n\
                #[cfg(test)]\nmod t { use q::r; }\n#[allow(unsafe_code)]\nasync fn h(_: Box<dyn std::error::Error>) {}\n";
    let (test, code): (Vec<_>, Vec<_>) = items("x.rs", text).into_iter().partition(|item| item.in_test);
    let code: Vec<_> = code.iter().map(|item| (item.what.as_str(), item.line)).collect();
    for expected in [("x::y", 2), ("x::z", 2), ("x::z::w", 2), ("x", 2), ("c::d", 3), ("e::f", 3), ("unsafe", 3)] {
        assert!(code.contains(&expected), "{expected:?} in {code:?}");
    }
    for expected in [("allow(unsafe_code)", 6), ("async", 7), ("Box<dyn Error>", 7), ("std::error::Error", 7)] {
        assert!(code.contains(&expected), "{expected:?} in {code:?}");
    }
    assert!(!code.iter().any(|(what, _)| *what == "a::b"), "{code:?}");
    assert!(test.iter().any(|item| item.what == "q::r" && item.modules == ["t"]));
}

#[test]
fn the_files_of_the_workspace_are_found() {
    let files = files(&["core/src", "tests"], &[".rs"]);
    for path in ["core/src/lib.rs", "core/src/model/space.rs", "tests/it/tidy/source.rs"] {
        assert!(files.iter().any(|file| file.path == path), "{path}");
    }
}
