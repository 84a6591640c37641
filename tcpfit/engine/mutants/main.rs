//! mutants FROM TO [SKIPPED...]: rewrites Rust files with every mutant in them, off until its number is asked for, so
//! that all of them are compiled once. Standard input names the files, relative to FROM; standard output lists the
//! mutants: number, file, line, kind, and the text changed, tab-separated.
//!
//! Kinds: a condition that always or never holds; a comparison with its boundary or sense moved; arithmetic turned
//! round; a number of the source doubled; a statement left out; a function that returns at once.

use std::collections::HashSet;
use std::io::Read;
use std::path::Path;

use proc_macro2::Span;
use quote::{quote, ToTokens};
use syn::spanned::Spanned;
use syn::visit_mut::{self, VisitMut};
use syn::{parse_quote, BinOp, Block, Expr, Lit, ReturnType, Stmt, Type};

const NUMBERS: [&str; 12] = [
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "f32", "f64",
];

struct Mutator<'a> {
    file: &'a str,
    next: u32,
    skipped: &'a HashSet<u32>,
    constants: &'a HashSet<String>,
    listed: Vec<String>,
}

impl Mutator<'_> {
    /// The number of a new mutant, if it is wanted.
    fn mutant(&mut self, span: Span, kind: &str, text: &impl ToTokens) -> Option<u32> {
        self.next += 1;
        if self.skipped.contains(&self.next) {
            return None;
        }
        let text: String = text
            .to_token_stream()
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let text: String = text.chars().take(100).collect();
        self.listed.push(format!(
            "{}\t{}\t{}\t{kind}\t{text}",
            self.next,
            self.file,
            span.start().line
        ));
        Some(self.next)
    }

    /// Each operand of a condition may always hold, or never.
    fn condition(&mut self, expr: &mut Expr) {
        match expr {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => {
                self.condition(&mut binary.left);
                self.condition(&mut binary.right);
            }
            Expr::Paren(paren) => self.condition(&mut paren.expr),
            Expr::Let(_) => self.visit_expr_mut(expr),
            _ => {
                let (span, was) = (expr.span(), expr.clone());
                self.visit_expr_mut(expr);
                for (kind, always) in [("always", true), ("never", false)] {
                    if let Some(id) = self.mutant(span, kind, &was) {
                        *expr = if always {
                            parse_quote!((#expr || crate::mutant::on(#id)))
                        } else {
                            parse_quote!((#expr && !crate::mutant::on(#id)))
                        };
                    }
                }
            }
        }
    }

    fn returns_at_once(&mut self, signature: &syn::Signature, block: &mut Block) {
        let values: Vec<Expr> = match &signature.output {
            ReturnType::Default => vec![parse_quote!(())],
            ReturnType::Type(_, kind) => match &**kind {
                Type::Path(path) => {
                    let name = last_name(&path.path);
                    match name.as_str() {
                        "bool" => vec![parse_quote!(true), parse_quote!(false)],
                        "Option" => vec![parse_quote!(None)],
                        name if NUMBERS.contains(&name) => vec![parse_quote!(Default::default())],
                        _ => vec![],
                    }
                }
                _ => vec![],
            },
        };
        for value in values {
            if let Some(id) = self.mutant(signature.ident.span(), "returns", &quote!(#signature => #value)) {
                block
                    .stmts
                    .insert(0, parse_quote!(if crate::mutant::on(#id) { return #value; }));
            }
        }
    }
}

fn of_tests(attributes: &[syn::Attribute]) -> bool {
    attributes
        .iter()
        .any(|attribute| attribute.to_token_stream().to_string().contains("test"))
}

impl VisitMut for Mutator<'_> {
    fn visit_item_mod_mut(&mut self, item: &mut syn::ItemMod) {
        if !of_tests(&item.attrs) {
            visit_mut::visit_item_mod_mut(self, item);
        }
    }

    // what the compiler works out cannot be switched
    fn visit_item_const_mut(&mut self, _: &mut syn::ItemConst) {}
    fn visit_item_static_mut(&mut self, _: &mut syn::ItemStatic) {}
    fn visit_impl_item_const_mut(&mut self, _: &mut syn::ImplItemConst) {}
    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}
    fn visit_type_mut(&mut self, _: &mut Type) {}
    fn visit_generic_argument_mut(&mut self, _: &mut syn::GenericArgument) {}
    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}

    fn visit_expr_repeat_mut(&mut self, repeat: &mut syn::ExprRepeat) {
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_item_fn_mut(&mut self, item: &mut syn::ItemFn) {
        if item.sig.constness.is_none() {
            visit_mut::visit_item_fn_mut(self, item);
            self.returns_at_once(&item.sig, &mut item.block);
        }
    }

    fn visit_impl_item_fn_mut(&mut self, item: &mut syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            visit_mut::visit_impl_item_fn_mut(self, item);
            self.returns_at_once(&item.sig, &mut item.block);
        }
    }

    fn visit_expr_if_mut(&mut self, expr: &mut syn::ExprIf) {
        self.condition(&mut expr.cond);
        self.visit_block_mut(&mut expr.then_branch);
        if let Some((_, otherwise)) = &mut expr.else_branch {
            self.visit_expr_mut(otherwise);
        }
    }

    fn visit_arm_mut(&mut self, arm: &mut syn::Arm) {
        if let Some((_, guard)) = &mut arm.guard {
            self.condition(guard);
        }
        self.visit_expr_mut(&mut arm.body);
    }

    fn visit_stmt_mut(&mut self, stmt: &mut Stmt) {
        let was = stmt.clone();
        visit_mut::visit_stmt_mut(self, stmt);
        let Stmt::Expr(expr, Some(_)) = &was else {
            return;
        };
        let deleted = match expr {
            Expr::Assign(_) | Expr::MethodCall(_) | Expr::Call(_) => true,
            Expr::Binary(binary) => !matches!(binary.op, BinOp::And(_) | BinOp::Or(_)),
            _ => false,
        };
        if deleted {
            if let Some(id) = self.mutant(expr.span(), "left out", expr) {
                *stmt = parse_quote!(if !crate::mutant::on(#id) { #stmt });
            }
        }
    }

    fn visit_expr_mut(&mut self, expr: &mut Expr) {
        let (span, was) = (expr.span(), expr.clone());
        match expr {
            Expr::Binary(binary) if matches!(binary.op, BinOp::And(_) | BinOp::Or(_)) => self.condition(expr),
            Expr::Binary(binary) => {
                let other: BinOp = match binary.op {
                    BinOp::Lt(_) => parse_quote!(<=),
                    BinOp::Le(_) => parse_quote!(<),
                    BinOp::Gt(_) => parse_quote!(>=),
                    BinOp::Ge(_) => parse_quote!(>),
                    BinOp::Eq(_) => parse_quote!(!=),
                    BinOp::Ne(_) => parse_quote!(==),
                    BinOp::Add(_) => parse_quote!(-),
                    BinOp::Sub(_) => parse_quote!(+),
                    BinOp::Mul(_) => parse_quote!(/),
                    BinOp::Div(_) => parse_quote!(*),
                    _ => return visit_mut::visit_expr_mut(self, expr),
                };
                visit_mut::visit_expr_mut(self, expr);
                let kind = format!("operator {}", other.to_token_stream());
                if let (Some(id), Expr::Binary(binary)) = (self.mutant(span, &kind, &was), &*expr) {
                    let (left, right) = (&binary.left, &binary.right);
                    let mutated = quote!((#left) #other (#right));
                    *expr = parse_quote!((if crate::mutant::on(#id) { #mutated } else { (#expr) }));
                }
            }
            Expr::While(each) => {
                // never left out of the loop: that would only hang
                self.visit_expr_mut(&mut each.cond);
                self.visit_block_mut(&mut each.body);
            }
            Expr::Path(path) => {
                let name = last_name(&path.path);
                if self.constants.contains(&name) {
                    if let Some(id) = self.mutant(span, "doubled", &was) {
                        *expr = parse_quote!(crate::mutant::doubled(#id, #was));
                    }
                }
            }
            Expr::Lit(lit) => {
                let worth = match &lit.lit {
                    Lit::Int(int) => int.base10_parse::<u128>().is_ok_and(|value| value >= 2),
                    Lit::Float(float) => float.base10_parse::<f64>().is_ok_and(|value| value != 0.0),
                    _ => false,
                };
                if worth {
                    if let Some(id) = self.mutant(span, "doubled", &was) {
                        *expr = parse_quote!(crate::mutant::doubled(#id, #was));
                    }
                }
            }
            _ => visit_mut::visit_expr_mut(self, expr),
        }
    }
}

/// Names of the constants that are numbers.
fn constants(from: &Path, names: &[&str]) -> HashSet<String> {
    let mut found = HashSet::new();
    for name in names {
        for line in std::fs::read_to_string(from.join(name))
            .expect("the file can be read")
            .lines()
        {
            let Some((_, after)) = line.split_once("const ") else {
                continue;
            };
            if let Some((name, rest)) = after.split_once(": ") {
                if NUMBERS.iter().any(|kind| rest.starts_with(&format!("{kind} ="))) {
                    found.insert(name.to_owned());
                }
            }
        }
    }
    found
}

const SWITCH: &str = "//! The mutant that is switched on.
use std::sync::LazyLock;

static CHOSEN: LazyLock<u32> = LazyLock::new(|| {
    std::env::var(\"TCPFIT_MUTANT\").ok().and_then(|number| number.parse().ok()).unwrap_or(0)
});

pub fn on(id: u32) -> bool {
    *CHOSEN == id
}

pub fn doubled<T: Copy + std::ops::Add<Output = T>>(id: u32, value: T) -> T {
    if on(id) { value + value } else { value }
}
";

/// What a path ends with: `Vec` of `std::vec::Vec`.
fn last_name(path: &syn::Path) -> String {
    path.segments
        .last()
        .map(|segment| segment.ident.to_string())
        .unwrap_or_default()
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (from, to) = (Path::new(&arguments[0]), Path::new(&arguments[1]));
    let skipped = arguments[2..]
        .iter()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let mut names = String::new();
    std::io::stdin().read_to_string(&mut names).expect("the names of files");
    let names: Vec<&str> = names.split_whitespace().collect();
    let constants = constants(from, &names);
    let mut next = 0;
    for name in names {
        let source = std::fs::read_to_string(from.join(name)).expect("the file can be read");
        let mut file = syn::parse_file(&source).expect("the file is Rust");
        let mut mutator = Mutator {
            file: name,
            next,
            skipped: &skipped,
            constants: &constants,
            listed: vec![],
        };
        mutator.visit_file_mut(&mut file);
        next = mutator.next;
        // a mutant a line: what does not compile is found by its line
        let text = file
            .to_token_stream()
            .to_string()
            .replace("crate :: mutant", "\ncrate :: mutant");
        std::fs::write(to.join(name), text).expect("the file can be written");
        for line in mutator.listed {
            println!("{line}");
        }
    }
    std::fs::write(to.join("mutant.rs"), SWITCH).expect("the file can be written");
    let lib = std::fs::read_to_string(from.join("lib.rs")).expect("lib.rs can be read");
    std::fs::write(to.join("lib.rs"), lib + "\npub mod mutant;\n").expect("lib.rs can be written");
}
