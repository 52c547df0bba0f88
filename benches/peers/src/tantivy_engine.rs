//! tantivy as a contestant: in memory, one merged segment, the same fields with the same weights, BM25, the best twenty.
//!
//! Invariant: it is asked the cheapest way it has. Queries are put together by hand, not by its parser, and the answer
//! is its own addresses, not stored documents.

use tantivy::{
    DocAddress, Index, IndexReader, IndexWriter, Score, TantivyDocument, Term,
    collector::TopDocs,
    query::{BooleanQuery, BoostQuery, FuzzyTermQuery, Occur, Query, TermQuery},
    schema::{Field, IndexRecordOption, Schema, TextFieldIndexing, TextOptions},
    tokenizer::{AsciiFoldingFilter, LowerCaser, SimpleTokenizer, TextAnalyzer},
};
use townsquare_benches::{catalog::App, comparison::Engine, queries::Kind};

/// Fields and weights, as FTS5 has them.
const FIELDS: [(&str, Score); 8] = [
    ("name", 14.0),
    ("tags", 4.0),
    ("category", 4.0),
    ("subtitle", 2.0),
    ("tagline", 2.0),
    ("author", 1.5),
    ("description", 1.0),
    ("domain", 0.8),
];

pub(crate) struct Tantivy {
    reader: IndexReader,
    fields: Vec<(Field, Score)>,
}

impl Tantivy {
    pub(crate) fn build(apps: &[App]) -> tantivy::Result<Tantivy> {
        let mut schema = Schema::builder();
        let indexing =
            TextFieldIndexing::default().set_tokenizer("folded").set_index_option(IndexRecordOption::WithFreqs);
        let options = TextOptions::default().set_indexing_options(indexing);
        let fields: Vec<_> =
            FIELDS.iter().map(|(name, weight)| (schema.add_text_field(name, options.clone()), *weight)).collect();
        let index = Index::create_in_ram(schema.build());
        let folded = TextAnalyzer::builder(SimpleTokenizer::default()).filter(LowerCaser).filter(AsciiFoldingFilter);
        index.tokenizers().register("folded", folded.build());
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 500_000_000)?;
        for app in apps {
            let tags = app.tags.join(" ");
            let text = |text: &Option<String>| text.clone().unwrap_or_default();
            let texts = [
                app.name.clone(),
                tags,
                text(&app.category),
                text(&app.subtitle),
                text(&app.tagline),
                app.author.clone(),
                text(&app.description),
                app.domain.clone(),
            ];
            let mut document = TantivyDocument::default();
            for ((field, _), text) in fields.iter().zip(texts) {
                document.add_text(*field, text);
            }
            writer.add_document(document)?;
        }
        writer.commit()?;
        let segments = index.searchable_segment_ids()?;
        if segments.len() > 1 {
            writer.merge(&segments).wait()?;
        }
        writer.wait_merging_threads()?;
        Ok(Tantivy { reader: index.reader()?, fields })
    }

    /// A word in any of the fields.
    fn word(&self, word: &str, spelling: Spelling) -> Box<dyn Query> {
        let of_field = |(field, weight): &(Field, Score)| {
            let term = Term::from_field_text(*field, word);
            let query: Box<dyn Query> = match spelling {
                Spelling::Exact => Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)),
                Spelling::Beginning => Box::new(FuzzyTermQuery::new_prefix(term, 0, true)),
                Spelling::OneError => Box::new(FuzzyTermQuery::new(term, 1, true)),
            };
            (Occur::Should, Box::new(BoostQuery::new(query, *weight)) as Box<dyn Query>)
        };
        Box::new(BooleanQuery::new(self.fields.iter().map(of_field).collect()))
    }

    fn find(&self, kind: Kind, query: &str) -> tantivy::Result<Vec<(Score, DocAddress)>> {
        let words: Vec<_> = query.split(' ').collect();
        let word = |(place, word): (usize, &&str)| match kind {
            Kind::OneTypo => self.word(word, Spelling::OneError),
            _ if kind.is_open() && place + 1 == words.len() => self.word(word, Spelling::Beginning),
            _ => self.word(word, Spelling::Exact),
        };
        let mut words: Vec<_> = words.iter().enumerate().map(|word_at| (Occur::Must, word(word_at))).collect();
        let query = if words.len() == 1 { words.remove(0).1 } else { Box::new(BooleanQuery::new(words)) };
        self.reader.searcher().search(&*query, &TopDocs::with_limit(20).order_by_score())
    }
}

/// How a word of the query stands for terms.
#[derive(Clone, Copy)]
enum Spelling {
    Exact,
    Beginning,
    OneError,
}

impl Engine for Tantivy {
    fn name(&self) -> &'static str {
        "tantivy"
    }

    fn answer(&mut self, kind: Kind, query: &str) -> usize {
        self.find(kind, query).map_or(0, |found| found.len())
    }
}
