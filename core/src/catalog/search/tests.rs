//! Tests of the search index: matching, ranking, and equivalence with a brute-force evaluation.

use super::normalize::strip_accents;
use super::query::{Expansion, TermGroup};
use super::term_dictionary::TermDictionary;
use super::tokenizer::{TokenKind, concatenate, tokenize};
use super::*;
use crate::catalog::{MiniAppRecord, mini_app::RecordContent};
use jiff::Timestamp;

fn named<'a>(names: &[&'a str]) -> Vec<Document<'a>> {
    names.iter().map(|name| Document { name, domain: "example.org", ..Document::default() }).collect()
}

fn search(documents: &[Document<'_>], query: &str) -> Vec<u32> {
    find(&index(documents.iter().copied()), query, 20, &|_| true)
}

fn find(index: &SearchIndex, text: &str, limit: usize, accept: &dyn Fn(u32) -> bool) -> Vec<u32> {
    index.search(&Query { text, first: &[], limit, groups: None, accept })
}

fn index<'a>(documents: impl Iterator<Item = Document<'a>>) -> SearchIndex {
    SearchIndex::build(documents)
}

#[track_caller]
fn assert_finds(names: &[&str], query: &str, expected: &[u32]) {
    assert_eq!(search(&named(names), query), expected, "{query:?} in {names:?}");
}

#[test]
fn case_accents_width_and_ligatures_are_folded() {
    assert_finds(&["Unikō"], "UNIKO", &[0]);
    assert_finds(&["Uniko"], "unikō", &[0]);
    assert_finds(&["Straße"], "STRASSE", &[0]);
    assert_finds(&["Ｆｕｌｌ"], "full", &[0]);
    assert_finds(&["Oﬃce"], "office", &[0]);
    assert_finds(&["𝓓𝓮𝓰𝓮𝓷"], "degen", &[0]);
    assert_finds(&["İstanbul", "Søren", "Łódź"], "soren", &[1]);
    assert_finds(&["İstanbul", "Søren", "Łódź"], "LODZ", &[2]);
    assert_finds(&["ΟΔΥΣΣΕΥΣ"], "οδυσσευς", &[0]);
}

#[test]
fn trade_mark_symbols_are_removed() {
    assert_finds(&["A Stage Reborn™"], "reborn", &[0]);
    assert_eq!(strip_accents("Reborn™"), "Reborn ");
}

#[test]
fn voicing_marks_are_kept() {
    assert_finds(&["はし", "ばし"], "ばし", &[1]);
}

#[test]
fn text_without_spaces_is_found_by_any_substring() {
    let names = ["Snake", "風呂キャン止めるくん"];
    for piece in ["風", "ん", "キャン", "止める", "風呂キャン止めるくん"] {
        assert_finds(&names, piece, &[1]);
    }
}

#[test]
fn emoji_are_words() {
    assert_finds(&["Mini Apps 🎊 Party", "🐍 Monad Snake Game", "🎊"], "🎊", &[2, 0]);
    assert_finds(&["Fireball☄️", "Fire"], "☄", &[0]);
}

#[test]
fn a_name_is_found_by_its_parts_and_with_or_without_separators() {
    let names = ["Other", "DegenFans", "mini-app", "Warp.cast", "$DEGEN", "Dan's Blog", "FastJPEG"];
    assert_finds(&names, "degenfans", &[1]);
    assert_finds(&names, "fans", &[1]);
    assert_finds(&names, "degen fans", &[1]);
    assert_finds(&names, "miniapp", &[2]);
    assert_finds(&names, "Mini App", &[2]);
    assert_finds(&names, "warpcast", &[3]);
    assert_finds(&names, "cast", &[3]);
    assert_finds(&names, "degen", &[4, 1]);
    assert_finds(&names, "dans blog", &[5]);
    assert_finds(&names, "dan", &[5]);
    assert_finds(&names, "jpeg", &[6]);
}

#[test]
fn two_words_match_their_compound() {
    assert_finds(&["The openrank explorer", "Open"], "open rank", &[0, 1]);
}

#[test]
fn a_compound_matches_its_two_words() {
    assert_finds(&["Are You A Reply Guy?", "Reply"], "replyguy", &[0]);
    assert_finds(&["GM", "GM GM"], "gm gm", &[1, 0]);
}

#[test]
fn the_last_word_is_a_prefix_and_earlier_ones_are_not() {
    assert_finds(&["Crypto Snake", "Sna"], "crypto sna", &[0, 1]);
    assert_finds(&["Crypto Snake", "Snake"], "cryp snake", &[0, 1]);
    assert_finds(&["Zebra"], "z", &[0]);
}

#[test]
fn an_equal_name_ranks_before_names_that_start_with_the_query() {
    assert_finds(&["My Rodeo", "Rodeo Club", "Rodeoville", "Rodeo"], "rodeo", &[3, 1, 2, 0]);
    assert_finds(&["Club Rodeo", "Rodeo Clubs", "Rodeo Club"], "rodeo club", &[2, 1, 0]);
}

#[test]
fn an_exact_name_ranks_before_one_that_differs_in_punctuation() {
    assert_finds(&["Yoink", "Yoink!"], "yoink!", &[1, 0]);
    assert_finds(&["Yoink!", "Yoink"], "yoink", &[1, 0]);
}

#[test]
fn equal_ranks_keep_the_trending_order() {
    assert_finds(&["GM", "GM", "GM"], "gm", &[0, 1, 2]);
}

#[test]
fn one_error_is_forgiven_from_five_letters() {
    for typo in ["mnoad", "monda", "mobad", "xonad", "monadd", "mmonad", "monax"] {
        assert_finds(&["Snake", "Monad"], typo, &[1]);
    }
    for dropped in ["nake", "sake", "snke", "snae", "snak"] {
        assert_finds(&["Snakes", "Monad"], &format!("{dropped}s"), &[0]);
    }
    assert_finds(&["Snake", "Monad"], "nomad", &[]);
    assert_finds(&["Snak", "Mond"], "monx", &[]);
}

#[test]
fn two_errors_are_forgiven_from_nine_letters() {
    for typo in ["farcastre", "fracastre", "facrastex", "xfarcasterx", "afrcatser", "arcastrer", "fxrcxster"] {
        assert_finds(&["Snake", "Farcaster"], typo, &[1]);
    }
    assert_finds(&["Predicts"], "predxxts", &[]);
}

#[test]
fn an_error_in_the_beginning_of_a_word_is_forgiven_and_ranks_below_exact_matches() {
    for typo in ["lntern", "lamtern", "lanntern", "alntern", "lanten", "lanternx"] {
        assert_finds(&["Other", "Lanternfish Quest"], typo, &[1]);
    }
    assert_finds(&["Snakes", "Stake", "Snake"], "snake", &[2, 0, 1]);
    assert_finds(&["Monad Snake", "Other"], "mnoad s", &[0]);
    assert_finds(&["Thunderstruck Quest"], "thudnerstrukc", &[0]);
    assert_finds(&["Lant"], "lanx", &[]);
    // Next to an exact match, a similar word counts in a name only.
    let documents = [
        Document { name: "A", description: Some("about snakes"), ..Document::default() },
        Document { name: "B", description: Some("about staking"), ..Document::default() },
        Document { name: "Stake", ..Document::default() },
        Document { name: "C", description: Some("the stake"), ..Document::default() },
    ];
    assert_eq!(search(&documents, "stake"), [2, 3]);
}

#[test]
fn plurals_and_singulars_are_the_same_word() {
    let names = ["Other", "My Wallet", "Wallets", "Quiz", "All Quizzes", "walletsearch"];
    assert_finds(&names, "wallets", &[2, 5, 1]);
    assert_eq!(search(&named(&names), "wallets my")[0], 1);
    assert_finds(&names, "quizzes", &[3, 4]);
    assert_eq!(search(&named(&names), "quiz all")[0], 4);
    assert_finds(&["The News", "New"], "new", &[1, 0]);
    assert_finds(&["The News", "New"], "new of", &[1]);
}

#[test]
fn words_are_found_joined_and_split() {
    let subtitled = Document { name: "A", subtitle: Some("the mini app store"), ..Document::default() };
    let documents = [subtitled, Document { name: "Mini App", ..Document::default() }];
    assert_eq!(search(&documents, "miniapp"), [1, 0]);
    assert_eq!(search(&documents, "appst"), [0]);
    assert_eq!(search(&documents, "mini app"), [1, 0]);
}

#[test]
fn words_of_addresses_are_not_indexed() {
    let hosted =
        |domain| Document { name: "A", domain, description: Some("at https://www.a.com"), ..Document::default() };
    let documents = [hosted("www.rodeo.com"), hosted("rodeo.vercel.app")];
    for word in ["www", "com", "https", "vercel", "app"] {
        assert_eq!(search(&documents, word), [0; 0], "{word}");
    }
    assert_eq!(search(&documents, "rodeo"), [0, 1]);
}

#[test]
fn arabic_spellings_and_hangul_keystrokes_are_folded() {
    for (name, query) in
        [("أخبار", "اخبار"), ("اخبار", "إخبار"), ("آخر", "اخر"), ("مـــدينة", "مدينه"), ("مَدينة", "مدينة")]
    {
        assert_finds(&["Other", name], query, &[1]);
    }
    for query in ["ㅎ", "하", "한", "한그", "한글", "한글 게", "ㄱㅔ"] {
        assert_finds(&["Other", "한글 게임"], query, &[1]);
    }
    assert_finds(&["과자", "Other"], "고", &[0]);
    assert_finds(&["Other", "하나"], "한", &[1]);
}

#[test]
fn a_good_match_is_not_followed_by_filler() {
    let listed = |name| Document { name, description: Some("a list of things to see"), ..Document::default() };
    let documents = [listed("A"), listed("B"), Document { name: "To Do List", ..Document::default() }, listed("C")];
    assert_eq!(search(&documents, "to do list"), [2]);
}

#[test]
fn function_words_do_not_outrank_other_words() {
    let described = |name, text| Document { name, description: Some(text), ..Document::default() };
    let documents = [
        described("My", "where to go"),
        described("Where Is Waldo", "my game"),
        described("Safe", "a wallet"),
        described("Wallet", "keeps coins"),
        described("My Wallet Is Here", ""),
        described("Do It", "to do: a list of games"),
        described("Lists", ""),
    ];
    assert_eq!(search(&documents, "where is my wallet"), [4, 3, 2]);
    assert_eq!(search(&documents, "where is my walet")[..2], [4, 3]);
    assert_eq!(search(&documents, "to do list"), [6, 5]);
    // The last word may be the beginning of a longer one.
    assert_eq!(search(&documents, "wallet i")[0], 4);
    // Names with function words, and queries of nothing else.
    assert_eq!(search(&documents, "where is waldo"), [1]);
    assert_eq!(search(&documents, "waldo is where"), [1]);
    assert_eq!(search(&documents, "do it")[0], 5);
    assert_eq!(search(&documents, "my where")[..2], [1, 0]);
    assert_eq!(search(&documents, "where is my qqqqqqqq")[0], 1);
}

#[test]
fn misspelt_prefixes_are_the_terms_with_a_prefix_within_the_edit_distance() {
    let mut random = Random(5);
    let mut word = |least: usize| -> String {
        let length = least + random.below(5);
        // Words in ASCII and words in another script; a word of one is no misspelling of a word of the other.
        let letters = [['a', 'b', 'c', 'd'], ['б', 'в', 'г', 'д']][random.below(4) / 3];
        (0..length).map(|_| letters[random.below(4)]).collect()
    };
    let mut terms: Vec<String> = (0..200).map(|_| word(4)).collect();
    terms.sort_unstable();
    terms.dedup();
    let dictionary = TermDictionary::build(&terms.iter().map(String::as_str).collect::<Vec<_>>());
    let nearest = |query: &str, term: &str| {
        let prefixes = term.char_indices().map(|(end, _)| &term[..end]).chain([term]);
        prefixes.map(|prefix| edit_distance(query, prefix)).min().unwrap_or_default()
    };
    for _ in 0..300 {
        let query = word(5);
        let matches = dictionary.fuzzy_prefixes(&query, 1);
        let found = |id: u32| matches.iter().any(|(matched, _)| matched.terms.contains(&id));
        for (id, term) in (0..).zip(&terms).filter(|(_, term)| !term.starts_with(&query)) {
            let is_near = nearest(&query, term) == 1;
            assert!(found(id) == is_near || matches.len() >= 32, "{query} and {term}");
            let is_whole =
                |(matched, errors): &(PrefixMatch, usize)| matched.terms.start == id && matched.is_term && *errors == 1;
            assert!(edit_distance(&query, term) != 1 || matches.iter().any(is_whole) || matches.len() >= 32, "{term}");
        }
    }
}

#[test]
fn a_long_page_and_a_short_one_are_parts_of_one_order() {
    let names: Vec<String> = (0..900_u32)
        .map(|number| format!("{} {}", ["mint", "minted", "mono"][number as usize % 3], number % 11))
        .collect();
    let index = index(named(&names.iter().map(String::as_str).collect::<Vec<_>>()).into_iter());
    for query in ["m", "mint", "mint 1", "mintd", "mono 3 minted", "monp"] {
        let all = find(&index, query, usize::MAX, &|_| true);
        for limit in [1, 20, 255, 257] {
            assert_eq!(find(&index, query, limit, &|_| true), all[..limit.min(all.len())], "{query}");
        }
    }
}

#[test]
fn an_error_in_one_of_several_words_is_forgiven() {
    assert_finds(&["Monad Club", "Monad Snake Game"], "game mnoad", &[1]);
    assert_finds(&["tic", "tic-tac-toe"], "tic-tbc-toe", &[1]);
}

#[test]
fn words_match_in_any_order_and_all_words_rank_before_some() {
    assert_eq!(search(&named(&["Mint", "Club", "A Snake of the Mint Club"]), "club mint")[0], 2);
}

#[test]
fn words_without_a_common_document_match_separately() {
    let mut found = search(&named(&["Mint", "Other", "Club"]), "club mint");
    found.sort_unstable();
    assert_eq!(found, [0, 2]);
}

#[test]
fn fields_rank_by_their_weights() {
    let of = |name| Document { name, domain: "example.org", ..Document::default() };
    let tagged = MiniAppRecord::new(
        RecordContent { tags: ["zorb".into()].into(), ..RecordContent::default() },
        Timestamp::UNIX_EPOCH,
    );
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
fn a_domain_is_found_by_its_labels_and_as_a_whole() {
    let documents = [
        Document { name: "Snake", domain: "rodeo.club", ..Document::default() },
        Document { name: "Tic", domain: "tic.club", ..Document::default() },
    ];
    assert_eq!(search(&documents, "rodeo"), [0]);
    assert_eq!(search(&documents, "rodeo.club"), [0]);
}

#[test]
fn blank_and_unknown_queries_have_no_matches() {
    for query in ["", "  \t", "?!.,", "--", "qqqqqqqqqq", "'", "\u{301}", "\u{200D}"] {
        assert_finds(&["Snake", "Monad"], query, &[]);
    }
    assert!(find(&index(std::iter::empty()), "a b", 9, &|_| true).is_empty());
    assert!(find(&index(named(&["Snake"]).into_iter()), "snake", 0, &|_| true).is_empty());
}

#[test]
fn the_filter_applies_before_the_limit() {
    let names: Vec<String> = (0..3000).map(|number| format!("Snake Game {number}")).collect();
    let documents = named(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let index = index(documents.into_iter());
    for query in ["s", "snake", "snake game", "game s", "snkae", "gmae snkae"] {
        let found = find(&index, query, 20, &|id| id > 2900);
        assert_eq!(found.len(), 20, "{query}");
        assert!(found.iter().all(|id| *id > 2900), "{query}");
        assert_eq!(find(&index, query, 5000, &|_| true).len(), 3000, "{query}");
    }
}

#[test]
fn an_evaluation_gives_the_results_of_scoring_every_document() {
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
    let index = index(texts.iter().map(|(name, description)| Document {
        name,
        description: Some(description),
        ..Document::default()
    }));
    for _ in 0..200 {
        let query = ParsedQuery::parse(&text(4));
        let cursors = query.cursors(&index.dictionary);
        let groups = || expand_words(&query, &cursors, false, &index.dictionary, &index.postings);
        // With every word known, with one unknown word, with a filter, and with optional stop words.
        let (optional, words) = make_stop_words_optional(groups(), groups().len());
        let known = groups().len();
        for (groups, words, every) in
            [(groups(), known, 1), (groups(), known + 1, 1), (groups(), known, 3), (optional, words, 1)]
        {
            let accept = |id| id % every == 0;
            let (mut top, mut expected) = (TopK::new(20, &accept), TopK::new(20, &accept));
            let evaluation = Evaluation::new(&index.postings, &groups, words);
            evaluation.add_all_words(Tier::AllWords, &mut top);
            evaluation.add_some_words(&mut top);
            for id in 0..400 {
                let scores = groups.iter().map(|group| group_score(group, id, &index.postings));
                let score = scores.clone().sum();
                let matched =
                    groups.iter().zip(scores).filter(|(group, score)| group.is_required && *score > 0).count();
                if matched > 0 {
                    let tier = if matched == words { Tier::AllWords } else { Tier::SomeWords };
                    expected.offer(Rank::new(tier, score, id));
                }
            }
            assert_eq!(top.into_ranks(), expected.into_ranks(), "{:?}", query.words);
        }
    }
}

/// The score of a document from one word, by reading every posting of the word.
fn group_score(group: &TermGroup, id: u32, postings: &Postings) -> u32 {
    let of_expansion = |expansion: &Expansion| {
        let (ids, impacts) = postings.lists(&expansion.terms);
        let own = ids.iter().zip(impacts).filter(|(other, _)| **other == id);
        own.map(|(_, impact)| expansion.weight.apply(*impact)).max().unwrap_or_default()
    };
    group.idf * group.expansions.iter().map(of_expansion).max().unwrap_or_default()
}

#[test]
fn fuzzy_matches_are_the_terms_within_the_edit_distance() {
    let mut random = Random(99);
    let mut word = |least: usize| -> String {
        let length = least + random.below(6);
        (0..length).map(|_| ['a', 'b', 'c', 'é', '日'][random.below(5)]).collect()
    };
    let mut terms: Vec<String> = (0..300).map(|_| word(3)).collect();
    terms.sort_unstable();
    terms.dedup();
    let dictionary = TermDictionary::build(&terms.iter().map(String::as_str).collect::<Vec<_>>());
    for _ in 0..400 {
        let query = word(5);
        let most = if query.chars().count() >= 9 { 2 } else { 1 };
        let counted: Vec<usize> = terms.iter().map(|term| edit_distance(&query, term)).collect();
        let nearest = if counted.contains(&1) { 1 } else { most };
        let expected: Vec<(u32, usize)> =
            (0..).zip(counted).filter(|(_, errors)| (1..=nearest).contains(errors)).collect();
        if expected.len() < 32 {
            assert_eq!(dictionary.fuzzy_matches(&query, 2), expected, "{query}");
        }
        for prefix in [query.chars().take(2).collect(), query] {
            let prefix = prefix.as_str();
            let expected = terms.iter().filter(|term| term.starts_with(prefix)).count();
            assert_eq!(dictionary.prefix_match(prefix).map_or(0, |matched| matched.terms.len()), expected);
        }
    }
}

/// The optimal string alignment distance by the textbook algorithm.
fn edit_distance(a: &str, b: &str) -> usize {
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
fn every_query_word_of_any_text_is_indexed() {
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
    let index = index(named(&texts.iter().map(String::as_str).collect::<Vec<_>>()).into_iter());
    for text in &texts {
        tokenize(text, |kind, word| {
            assert!(!word.is_empty());
            if kind != TokenKind::Variant {
                assert!(index.dictionary.prefix_match(word).is_some_and(|found| found.is_term), "{word:?} of {text:?}");
            }
        });
        let found = find(&index, text, 5, &|_| true);
        let Some(first) = found.first() else {
            assert!(concatenate(text).is_empty(), "{text:?}");
            continue;
        };
        assert_eq!(concatenate(&texts[*first as usize]), concatenate(text), "{text:?}");
        let cut: String = text.chars().take(random.below(20)).collect();
        find(&index, &cut, 3, &|id| id % 2 == 0);
    }
}

#[test]
fn long_queries_and_long_words_are_truncated() {
    let index = index(named(&["Snake", "Monad"]).into_iter());
    assert_eq!(find(&index, &"snake ".repeat(100_000), 9, &|_| true), [0]);
    assert!(find(&index, &"z".repeat(1_000_000), 9, &|_| true).is_empty());
    assert!(find(&index, &"日本".repeat(500), 9, &|_| true).is_empty());
    let long = "é".repeat(300);
    assert_finds(&[&long], &long, &[0]);
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
