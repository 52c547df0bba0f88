//! What people expect of the search box, one sentence each.

use super::fold::without_marks;
use super::vocabulary::Vocabulary;
use super::words::{Kind, each_word, run_together};
use super::*;
use crate::catalog::{Fields, MiniAppRecord};

fn named<'a>(names: &[&'a str]) -> Vec<Document<'a>> {
    names.iter().map(|name| Document { name, domain: "example.org", ..Document::default() }).collect()
}

fn search(documents: &[Document<'_>], query: &str) -> Vec<u32> {
    SearchIndex::build(documents.iter().copied()).search(query, 20, &|_| true)
}

#[track_caller]
fn finds(names: &[&str], query: &str, expected: &[u32]) {
    assert_eq!(search(&named(names), query), expected, "{query:?} in {names:?}");
}

#[test]
fn case_accents_width_and_ligatures_are_folded() {
    finds(&["Unikō"], "UNIKO", &[0]);
    finds(&["Uniko"], "unikō", &[0]);
    finds(&["Straße"], "STRASSE", &[0]);
    finds(&["Ｆｕｌｌ"], "full", &[0]);
    finds(&["Oﬃce"], "office", &[0]);
    finds(&["𝓓𝓮𝓰𝓮𝓷"], "degen", &[0]);
    finds(&["İstanbul", "Søren", "Łódź"], "soren", &[1]);
    finds(&["İstanbul", "Søren", "Łódź"], "LODZ", &[2]);
    finds(&["ΟΔΥΣΣΕΥΣ"], "οδυσσευς", &[0]);
}

#[test]
fn a_trade_mark_is_not_a_letter() {
    finds(&["A Stage Reborn™"], "reborn", &[0]);
    assert_eq!(without_marks("Reborn™"), "Reborn ");
}

#[test]
fn a_voicing_mark_is_not_an_accent() {
    finds(&["はし", "ばし"], "ばし", &[1]);
}

#[test]
fn text_without_spaces_is_found_by_any_piece_of_it() {
    let names = ["Snake", "風呂キャン止めるくん"];
    for piece in ["風", "ん", "キャン", "止める", "風呂キャン止めるくん"] {
        finds(&names, piece, &[1]);
    }
}

#[test]
fn emoji_are_words() {
    finds(&["Mini Apps 🎊 Party", "🐍 Monad Snake Game", "🎊"], "🎊", &[2, 0]);
    finds(&["Fireball☄️", "Fire"], "☄", &[0]);
}

#[test]
fn a_name_is_found_by_its_parts_and_run_together_and_apart() {
    let names = ["Other", "DegenFans", "mini-app", "Warp.cast", "$DEGEN", "Dan's Blog", "FastJPEG"];
    finds(&names, "degenfans", &[1]);
    finds(&names, "fans", &[1]);
    finds(&names, "degen fans", &[1, 4]);
    finds(&names, "miniapp", &[2]);
    finds(&names, "Mini App", &[2]);
    finds(&names, "warpcast", &[3]);
    finds(&names, "cast", &[3]);
    finds(&names, "degen", &[4, 1]);
    finds(&names, "dans blog", &[5]);
    finds(&names, "dan", &[5]);
    finds(&names, "jpeg", &[6]);
}

#[test]
fn two_words_find_the_name_that_writes_them_as_one() {
    finds(&["The openrank explorer", "Open"], "open rank", &[0, 1]);
}

#[test]
fn one_word_finds_the_name_that_writes_it_as_two() {
    finds(&["Are You A Reply Guy?", "Reply"], "replyguy", &[0, 1]);
    finds(&["GM", "GM GM"], "gm gm", &[1, 0]);
}

#[test]
fn the_last_word_is_a_prefix_and_earlier_ones_are_not() {
    finds(&["Crypto Snake", "Sna"], "crypto sna", &[0, 1]);
    finds(&["Crypto Snake", "Snake"], "crypt snake", &[0, 1]);
    finds(&["Zebra"], "z", &[0]);
}

#[test]
fn the_whole_name_is_first_then_names_that_start_so() {
    finds(&["My Rodeo", "Rodeo Club", "Rodeoville", "Rodeo"], "rodeo", &[3, 1, 2, 0]);
    finds(&["Club Rodeo", "Rodeo Clubs", "Rodeo Club"], "rodeo club", &[2, 1, 0]);
}

#[test]
fn of_names_alike_the_one_as_typed_is_first() {
    finds(&["Yoink", "Yoink!"], "yoink!", &[1, 0]);
    finds(&["Yoink!", "Yoink"], "yoink", &[1, 0]);
}

#[test]
fn equal_answers_keep_the_trending_order() {
    finds(&["GM", "GM", "GM"], "gm", &[0, 1, 2]);
}

#[test]
fn one_error_is_forgiven_from_five_letters() {
    for typo in ["mnoad", "monda", "mobad", "xonad", "monadd", "mmonad", "monax"] {
        finds(&["Snake", "Monad"], typo, &[1]);
    }
    for dropped in ["nake", "sake", "snke", "snae", "snak"] {
        finds(&["Snakes", "Monad"], &format!("{dropped}s"), &[0]);
    }
    finds(&["Snake", "Monad"], "nomad", &[]);
    finds(&["Snak", "Mond"], "monx", &[]);
}

#[test]
fn two_errors_are_forgiven_from_nine_letters() {
    for typo in ["farcastre", "fracastre", "facrastex", "xfarcasterx", "afrcatser", "arcastrer", "fxrcxster"] {
        finds(&["Snake", "Farcaster"], typo, &[1]);
    }
    finds(&["Predicts"], "predxxts", &[]);
}

#[test]
fn a_misspelt_word_is_forgiven_among_others() {
    finds(&["Monad Club", "Monad Snake Game"], "game mnoad", &[1, 0]);
    finds(&["tic", "tic-tac-toe"], "tic-tbc-toe", &[1, 0]);
}

#[test]
fn words_may_come_in_any_order_and_all_beat_some() {
    finds(&["Mint", "Club", "A Snake of the Mint Club"], "club mint", &[2, 0, 1]);
}

#[test]
fn words_that_never_meet_give_the_apps_of_each() {
    let mut found = search(&named(&["Mint", "Other", "Club"]), "club mint");
    found.sort_unstable();
    assert_eq!(found, [0, 2]);
}

#[test]
fn fields_weigh_in_their_order() {
    let of = |name| Document { name, domain: "example.org", ..Document::default() };
    let tagged = MiniAppRecord::from(&Fields { tags: vec!["zorb".into()], ..Fields::default() });
    let documents = [
        Document { domain: "zorb.club", ..of("A") },
        Document { description: Some("the zorb thing"), ..of("B") },
        Document { author_username: Some("zorb"), ..of("C") },
        Document { subtitle: Some("a zorb"), ..of("D") },
        Document { category: Some("zorb"), ..of("E") },
        Document { tags: tagged.tags(), ..of("F") },
        of("The Zorb"),
    ];
    assert_eq!(search(&documents, "zorb"), [6, 4, 5, 3, 2, 1, 0]);
}

#[test]
fn a_domain_is_found_whole_and_by_its_labels() {
    let documents = [
        Document { name: "Snake", domain: "rodeo.club", ..Document::default() },
        Document { name: "Tic", domain: "tic.club", ..Document::default() },
    ];
    assert_eq!(search(&documents, "rodeo"), [0]);
    assert_eq!(search(&documents, "rodeo.club"), [0, 1]);
}

#[test]
fn nothing_is_found_for_nothing_asked_or_nothing_known() {
    for query in ["", "  \t", "?!.,", "--", "qqqqqqqqqq", "'", "\u{301}", "\u{200D}"] {
        finds(&["Snake", "Monad"], query, &[]);
    }
    assert!(SearchIndex::build(std::iter::empty()).search("a b", 9, &|_| true).is_empty());
    assert!(SearchIndex::build(named(&["Snake"]).into_iter()).search("snake", 0, &|_| true).is_empty());
}

#[test]
fn the_filter_is_asked_before_the_limit_counts() {
    let names: Vec<String> = (0..3000).map(|number| format!("Snake Game {number}")).collect();
    let documents = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let index = SearchIndex::build(documents.into_iter());
    for query in ["s", "snake", "snake game", "game s", "snkae", "gmae snkae"] {
        let found = index.search(query, 20, &|id| id > 2900);
        assert_eq!(found.len(), 20, "{query}");
        assert!(found.iter().all(|id| *id > 2900), "{query}");
        assert_eq!(index.search(query, 5000, &|_| true).len(), 3000, "{query}");
    }
}

#[test]
fn a_head_answers_as_its_lists_do() {
    let names: Vec<String> = (0..3000_u32)
        .map(|number| format!("w{:x} {}", number % 7, ["ab", "abc", "abacus"][number as usize % 3]))
        .collect();
    let index = SearchIndex::build(named(&names.iter().map(String::as_str).collect::<Vec<_>>()).into_iter());
    for prefix in ["w", "a", "ab"] {
        let spelling = index.vocabulary.spelling(prefix).expect("known");
        assert!(index.heads.get(&spelling).is_some(), "{prefix}");
        let mut best = Best::new(20);
        look_through(&spelling, &index.postings, &mut best, &|_| true);
        let looked: Vec<u32> = best.into_ranks().into_iter().map(Rank::document).collect();
        assert_eq!(index.search(prefix, 20, &|_| true), looked, "{prefix}");
    }
}

#[test]
fn several_words_answer_as_scoring_every_document_does() {
    let words = ["mint", "mini", "minter", "snake", "crypto", "club", "of", "the", "monad"];
    let mut random = Random(3);
    let mut text = |most: usize| -> String {
        let length = 1 + random.below(most);
        (0..length)
            .map(|_| words[random.below(words.len()).min(random.below(words.len()))])
            .collect::<Vec<_>>()
            .join(" ")
    };
    let texts: Vec<(String, String)> = (0..400).map(|_| (text(3), text(6))).collect();
    let index = SearchIndex::build(texts.iter().map(|(name, description)| Document {
        name,
        description: Some(description),
        ..Document::default()
    }));
    for _ in 0..200 {
        let query = Query::read(&text(4));
        let paths = query.paths(&index.vocabulary);
        let groups = || groups(&query, &paths, &index.vocabulary, &index.postings);
        // With every word known, with one that nothing stands for, and with a filter.
        for (unknown, every) in [(0, 1), (1, 1), (0, 3)] {
            let evaluation = Evaluation::new(&index.postings, groups(), groups().len() + unknown);
            let tiers = if unknown == 0 { &[Tier::AllWords, Tier::SomeWords][..] } else { &[Tier::SomeWords] };
            let accept = |id| id % every == 0;
            let (mut best, mut expected) = (Best::new(20), Best::new(20));
            evaluation.all_words(&mut best, &accept);
            evaluation.some_words(&mut best, &accept);
            for id in 0..400 {
                for tier in tiers {
                    if let Some(score @ 1..) = evaluation.score(id, 0, *tier) {
                        expected.offer(Rank::new(*tier, score, id), &accept);
                    }
                }
            }
            assert_eq!(best.into_ranks(), expected.into_ranks(), "{:?}", query.words);
        }
    }
}

#[test]
fn near_terms_are_those_that_counting_edits_finds() {
    let mut random = Random(99);
    let mut word = |least: usize| -> String {
        let length = least + random.below(6);
        (0..length).map(|_| ['a', 'b', 'c', 'é', '日'][random.below(5)]).collect()
    };
    let mut terms: Vec<String> = (0..300).map(|_| word(3)).collect();
    terms.sort_unstable();
    terms.dedup();
    let vocabulary = Vocabulary::build(&terms.iter().map(String::as_str).collect::<Vec<_>>());
    for _ in 0..400 {
        let asked = word(5);
        let most = if asked.chars().count() >= 9 { 2 } else { 1 };
        let counted: Vec<usize> = terms.iter().map(|term| edits(&asked, term)).collect();
        let nearest = if counted.contains(&1) { 1 } else { most };
        let expected: Vec<(u32, usize)> =
            (0..).zip(counted).filter(|(_, errors)| (1..=nearest).contains(errors)).collect();
        if expected.len() < 32 {
            assert_eq!(vocabulary.near(&asked, 2), expected, "{asked}");
        }
        for prefix in [asked.chars().take(2).collect(), asked] {
            let prefix = prefix.as_str();
            let expected = terms.iter().filter(|term| term.starts_with(prefix)).count();
            assert_eq!(vocabulary.spelling(prefix).map_or(0, |found| found.range.len()), expected);
        }
    }
}

/// Optimal string alignment, by the book.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let least = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
                if swapped { least.min(table[i - 2][j - 2] + 1) } else { least }
            };
        }
    }
    table[a.len()][b.len()]
}

#[test]
fn each_word_of_a_text_is_indexed_and_any_text_is_survived() {
    let mut random = Random(7);
    let pieces = [
        "a", "B", "ß", "é", "日", "ん", "🐟", "🇫", "\u{301}", "'", ".", " ", "9", "İ", "\u{0}", "ﷺ", "ก", "\u{FE0F}",
        "Mini", "-",
    ];
    let texts: Vec<String> = (0..600)
        .map(|_| {
            (0..random.below(40))
                .map(|_| {
                    if random.below(9) == 0 {
                        char::from_u32(random.below(0x11_0000) as u32).unwrap_or('x').to_string()
                    } else {
                        pieces[random.below(pieces.len())].to_owned()
                    }
                })
                .collect()
        })
        .collect();
    let index = SearchIndex::build(named(&texts.iter().map(String::as_str).collect::<Vec<_>>()).into_iter());
    for text in &texts {
        each_word(text, |kind, word| {
            assert!(!word.is_empty());
            if kind != Kind::Alternative {
                assert!(index.vocabulary.spelling(word).is_some_and(|found| found.is_term), "{word:?} of {text:?}");
            }
        });
        let found = index.search(text, 5, &|_| true);
        let Some(first) = found.first() else {
            assert!(run_together(text).is_empty(), "{text:?}");
            continue;
        };
        assert_eq!(run_together(&texts[*first as usize]), run_together(text), "{text:?}");
        let cut: String = text.chars().take(random.below(20)).collect();
        index.search(&cut, 3, &|id| id % 2 == 0);
    }
}

#[test]
fn a_long_query_is_cut_and_a_long_word_is_survived() {
    let index = SearchIndex::build(named(&["Snake", "Monad"]).into_iter());
    assert_eq!(index.search(&"snake ".repeat(100_000), 9, &|_| true), [0]);
    assert!(index.search(&"z".repeat(1_000_000), 9, &|_| true).is_empty());
    assert!(index.search(&"日本".repeat(500), 9, &|_| true).is_empty());
    let long = "é".repeat(300);
    finds(&[&long], &long, &[0]);
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
