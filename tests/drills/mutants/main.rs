//! Puts all mutants of a list into the source at once, each behind `crate::mutant(ID)`, so that one build has all of them.
//!
//! `mutants LIST.json SOURCE SKIPPED` changes the files below `SOURCE` in place. `LIST.json` is what `cargo mutants --list --json` prints;
//! the ID of a mutant is its position in it, from 1 on. The file `SKIPPED` has the IDs that are left out, one a line. Prints a line for each
//! mutant: `placed ID` or `left out ID`. Left out are also the mutants in constant functions, of fields of structures, and of conditions
//! with `let`, which cannot be chosen at run time.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    env, fs,
    ops::Range,
};

use proc_macro2::{LineColumn, Span};
use serde_json::Value;
use syn::{
    Arm, Block, Expr, ExprBinary, ExprUnary, ImplItemFn, ItemConst, ItemFn, Signature, TraitItemFn,
    spanned::Spanned,
    visit::{self, Visit},
};

/// What a mutant puts in the place of the original, and its ID.
type Mutants = Vec<(u32, String)>;

/// Where code changes, and how.
#[derive(Debug, Clone)]
struct Site {
    place: Range<usize>,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    /// A function returns another value.
    Body(Mutants),
    /// A condition of an arm is true or false.
    Guard(Mutants),
    /// Another operator is between two operands.
    Binary { operator: Range<usize>, mutants: Mutants },
    /// The operator before the operand is missing.
    Unary { operand: usize, mutant: u32 },
    /// An arm is missing: its pattern, which ends here, gets a condition.
    Arm { pattern_end: usize, mutant: u32 },
    /// An arm with a condition is missing.
    ArmWithGuard { guard: Range<usize>, mutant: u32 },
}

/// Finds the sites of a file.
struct Finder<'a> {
    text: &'a str,
    /// The offset of each line.
    lines: Vec<usize>,
    /// The mutants by line, column and genre.
    wanted: HashMap<(usize, usize, String), Mutants>,
    sites: Vec<Site>,
    placed: HashSet<u32>,
    /// How many constant functions and constants are around.
    constants: usize,
}

impl Finder<'_> {
    fn offset(&self, at: LineColumn) -> usize {
        let line = self.lines[at.line - 1];
        line + self.text[line..].chars().take(at.column).map(char::len_utf8).sum::<usize>()
    }

    fn place(&self, span: Span) -> Range<usize> {
        self.offset(span.start())..self.offset(span.end())
    }

    fn mutants(&self, span: Span, genre: &str) -> Mutants {
        let LineColumn { line, column } = span.start();
        self.wanted.get(&(line, column + 1, genre.to_owned())).cloned().unwrap_or_default()
    }

    fn add(&mut self, place: Range<usize>, ids: impl IntoIterator<Item = u32>, change: Change) {
        if self.constants == 0 {
            self.placed.extend(ids);
            self.sites.push(Site { place, change });
        }
    }

    fn function(&mut self, signature: &Signature, block: Option<&Block>, visit: impl FnOnce(&mut Self)) {
        let is_constant = usize::from(signature.constness.is_some());
        self.constants += is_constant;
        if let Some((first, last)) = block.and_then(|block| block.stmts.first().zip(block.stmts.last())) {
            let mutants = self.mutants(first.span(), "FnValue");
            if !mutants.is_empty() {
                let place = self.place(first.span()).start..self.place(last.span()).end;
                self.add(place, ids(&mutants), Change::Body(mutants));
            }
        }
        visit(self);
        self.constants -= is_constant;
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        self.function(&item.sig, Some(&item.block), |this| visit::visit_item_fn(this, item));
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        self.function(&item.sig, Some(&item.block), |this| visit::visit_impl_item_fn(this, item));
    }

    fn visit_trait_item_fn(&mut self, item: &'ast TraitItemFn) {
        self.function(&item.sig, item.default.as_ref(), |this| visit::visit_trait_item_fn(this, item));
    }

    fn visit_item_const(&mut self, item: &'ast ItemConst) {
        self.constants += 1;
        visit::visit_item_const(self, item);
        self.constants -= 1;
    }

    fn visit_expr_binary(&mut self, expr: &'ast ExprBinary) {
        let mutants = self.mutants(expr.op.span(), "BinaryOperator");
        if !mutants.is_empty() && !has_let(&expr.left) && !has_let(&expr.right) {
            let operator = self.place(expr.op.span());
            self.add(self.place(expr.span()), ids(&mutants), Change::Binary { operator, mutants });
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast ExprUnary) {
        if let [(mutant, _)] = self.mutants(expr.op.span(), "UnaryOperator")[..] {
            let operand = self.place(expr.expr.span()).start;
            self.add(self.place(expr.span()), [mutant], Change::Unary { operand, mutant });
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        let guard = arm.guard.as_ref().map(|(_, guard)| &**guard);
        if !guard.is_some_and(has_let) {
            if let [(mutant, _)] = self.mutants(arm.span(), "MatchArm")[..] {
                let change = match guard {
                    Some(guard) => Change::ArmWithGuard { guard: self.place(guard.span()), mutant },
                    None => Change::Arm { pattern_end: self.place(arm.pat.span()).end, mutant },
                };
                self.add(self.place(arm.span()), [mutant], change);
            }
            if let Some(guard) = guard {
                let mutants = self.mutants(guard.span(), "MatchArmGuard");
                if !mutants.is_empty() {
                    self.add(self.place(guard.span()), ids(&mutants), Change::Guard(mutants));
                }
            }
        }
        visit::visit_arm(self, arm);
    }
}

fn ids(mutants: &Mutants) -> Vec<u32> {
    mutants.iter().map(|(id, _)| *id).collect()
}

/// Whether a condition has a `let`, which cannot be in parentheses.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The text of a range with its sites, of which the outer ones come first. One mutant is active at a time, so what a mutant repeats is
/// the original.
fn with_sites(text: &str, range: Range<usize>, sites: &[Site]) -> String {
    let (mut out, mut at, mut index) = (String::new(), range.start, 0);
    while let Some(Site { place, change }) = sites.get(index) {
        let inner = &sites[index + 1..];
        let inner = &inner[..inner.iter().take_while(|site| site.place.start < place.end).count()];
        let part = |part: Range<usize>| {
            let is_in = |site: &&Site| site.place.start >= part.start && site.place.end <= part.end;
            with_sites(text, part.clone(), &inner.iter().filter(is_in).cloned().collect::<Vec<_>>())
        };
        out.push_str(&text[at..place.start]);
        // Each mutant has a line of its own, so that an error of the compiler tells which one it is.
        out.push_str(&match change {
            Change::Body(mutants) => {
                let returns = |(id, value): &(u32, String)| format!("\nif crate::mutant({id}) {{ return {value}; }}\n");
                mutants.iter().map(returns).collect::<String>() + &part(place.clone())
            }
            Change::Guard(mutants) => {
                let values = |(id, value): &(u32, String)| format!("if crate::mutant({id}) {{ {value} }}\nelse ");
                format!("\n({}{{ {} }})", mutants.iter().map(values).collect::<String>(), part(place.clone()))
            }
            Change::Binary { operator, mutants } => {
                let (left, right) = (place.start..operator.start, operator.end..place.end);
                let others = mutants.iter().map(|(id, other)| {
                    format!(
                        "if crate::mutant({id}) {{ ({} {other} {}) }}\nelse ",
                        &text[left.clone()],
                        &text[right.clone()]
                    )
                });
                let original = format!("{} {} {}", part(left.clone()), &text[operator.clone()], part(right.clone()));
                format!("\n({}{{ ({original}) }})", others.collect::<String>())
            }
            Change::Unary { operand, mutant } => {
                let (without, operator) = (&text[*operand..place.end], &text[place.start..*operand]);
                let original = part(*operand..place.end);
                format!("\n(if crate::mutant({mutant}) {{ ({without}) }}\nelse {{ ({operator}{original}) }})")
            }
            Change::Arm { pattern_end, mutant } => {
                let (pattern, rest) = (part(place.start..*pattern_end), part(*pattern_end..place.end));
                format!("{pattern}\nif !crate::mutant({mutant})\n{rest}")
            }
            Change::ArmWithGuard { guard, mutant } => {
                let (pattern, rest) = (part(place.start..guard.start), part(guard.end..place.end));
                format!("{pattern}\n!crate::mutant({mutant}) && (\n{}){rest}", part(guard.clone()))
            }
        });
        at = place.end;
        index += 1 + inner.len();
    }
    out + &text[at..range.end]
}

fn position(mutant: &Value, name: &str) -> usize {
    usize::try_from(mutant["span"]["start"][name].as_u64().expect("a number")).expect("a position")
}

fn main() {
    let [list, source, skipped] = [1, 2, 3].map(|index| env::args().nth(index).expect("LIST.json SOURCE SKIPPED"));
    let list: Vec<Value> = serde_json::from_str(&fs::read_to_string(list).expect("a list")).expect("JSON");
    let skipped = fs::read_to_string(skipped).unwrap_or_default();
    let skipped: HashSet<u32> = skipped.lines().map(|line| line.parse().expect("a number")).collect();
    let mut files: BTreeMap<&str, Vec<(u32, &Value)>> = BTreeMap::new();
    for (id, mutant) in (1..).zip(&list) {
        files.entry(mutant["file"].as_str().expect("a file")).or_default().push((id, mutant));
    }
    for (file, mutants) in files {
        let path = format!("{source}/{file}");
        let text = fs::read_to_string(&path).expect("a file");
        let mut wanted: HashMap<_, Mutants> = HashMap::new();
        for (id, mutant) in mutants.iter().filter(|(id, _)| !skipped.contains(id)) {
            let text = |name: &str| mutant[name].as_str().expect("text").to_owned();
            let at = (position(mutant, "line"), position(mutant, "column"), text("genre"));
            wanted.entry(at).or_default().push((*id, text("replacement")));
        }
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (sites, placed) = (Vec::new(), HashSet::new());
        let mut finder = Finder { text: &text, lines, wanted, sites, placed, constants: 0 };
        finder.visit_file(&syn::parse_file(&text).expect("it compiles"));
        let Finder { mut sites, placed, .. } = finder;
        // A function of one expression, and the guard of an arm, may begin and end where an operation does, which is inside.
        let rank = |site: &Site| match site.change {
            Change::Body(_) => 0,
            Change::Arm { .. } | Change::ArmWithGuard { .. } => 1,
            Change::Guard(_) => 2,
            Change::Binary { .. } | Change::Unary { .. } => 3,
        };
        sites.sort_by_key(|site| (site.place.start, usize::MAX - site.place.end, rank(site)));
        for (id, _) in mutants {
            println!("{} {id}", if placed.contains(&id) { "placed" } else { "left out" });
        }
        fs::write(&path, with_sites(&text, 0..text.len(), &sites)).expect("a file");
    }
}
