//! `apps show`: everything about one mini app. And how lists of apps are written.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use townsquare::discovery::{MiniApp, MiniApps, Selection};

use crate::{context::Context, failure::Failure, output::cut, settings::IfMissing};

/// Show one mini app.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: AppsCommand,
}

#[derive(Debug, Subcommand)]
enum AppsCommand {
    /// Show everything that the catalog has about an app. JSON: the app.
    Show {
        /// The app's id, as `search` lists it.
        id: String,
    },
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let AppsCommand::Show { id } = &arguments.command;
    context.with_client(IfMissing::UseMemory, |client| {
        let app = client.discovery().get_mini_app(id)?.ok_or_else(|| {
            Failure::not_found(format!("The catalog has no app {id:?}"), "`townsquare search NAME` lists ids.")
        })?;
        let value = app.to_json();
        if context.output.is_json {
            return context.output.json(&value);
        }
        let mut rows = Vec::new();
        add_fields("", &value, &mut rows);
        context.output.table(&["field", "value"], &rows)
    })
}

/// Adds the fields of an object, and of the objects in it, as rows: `author.username`.
fn add_fields(name: &str, value: &Value, rows: &mut Vec<Vec<String>>) {
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                add_fields(&name, value, rows);
            }
        }
        value => rows.push(vec![name.to_owned(), text_of(value)]),
    }
}

/// A JSON value as people read it.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text_of).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Which apps of a list are shown.
#[derive(Debug, Args)]
pub(crate) struct Page {
    /// Number of apps.
    #[arg(long, short = 'n', default_value_t = 20, value_name = "NUMBER")]
    limit: u32,
    /// Number of apps to leave out before the first.
    #[arg(long, default_value_t = 0, value_name = "NUMBER")]
    offset: u64,
    /// Only apps of this category (repeatable).
    #[arg(long, value_name = "NAME")]
    category: Vec<String>,
    /// Only apps on this network (repeatable).
    #[arg(long, value_name = "NAME")]
    network: Vec<String>,
}

impl Page {
    pub(crate) fn selection(&self) -> Selection {
        let page = Selection::first(self.limit).offset(self.offset);
        page.in_categories(self.category.clone()).on_networks(self.network.clone())
    }
}

/// Writes a list of apps. JSON: `apps` and `total`, the number of apps on all pages.
pub(crate) fn write_list(apps: &MiniApps, context: &Context) -> Result<(), Failure> {
    if context.output.is_json {
        let list: Vec<_> = apps.iter().map(MiniApp::to_json).collect();
        return context.output.json(&json!({ "apps": list, "total": apps.total() }));
    }
    let row = |app: &MiniApp| {
        let followers = app.engagement().follower_count.to_string();
        let category = app.category().unwrap_or("-").to_owned();
        vec![app.name().to_owned(), category, followers, app.id().to_owned(), app.home_url().to_owned()]
    };
    let width = context.output.cell_width();
    let rows: Vec<_> = apps.iter().map(|app| row(app).iter().map(|cell| cut(cell, width)).collect()).collect();
    context.output.table(&["name", "category", "followers", "id", "address"], &rows)
}
