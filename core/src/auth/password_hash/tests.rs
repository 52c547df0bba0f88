//! Hashes of other implementations, and hashes that are refused.

use super::*;

/// Checks a password against a hash.
fn is_right(hash: &str, password: &str) -> bool {
    let hash = StoredHash::parse(hash).unwrap_or_else(|why| panic!("{hash}: {why}"));
    let mut memory = vec![Block::default(); hash.block_count()];
    hash.matches(password, &mut memory).expect("checked")
}

/// Hashes of other implementations, and their passwords.
const FOREIGN: [(&str, &str); 9] = [
    // jBCrypt's test vectors.
    ("$2a$06$DCq7YPn5Rq63x1Lad4cll.TV4S6ytwfsfvkgY8jIucDrjc8deX1s.", ""),
    ("$2a$06$m0CrhHm10qJ3lXRY.5zDGO3rS2KdeeWLuGmsfGlMfOxih58VYVfxe", "a"),
    ("$2a$06$If6bvum7DFjUnE9p2uDeDu0YHzrHM6tf.iqN8.yx.jNN1ILEf7h0i", "abc"),
    // crypt_blowfish's test vectors: the same hash as $2b$ and $2y$, a password of other than ASCII, one of 72 bytes.
    ("$2b$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"),
    ("$2y$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"),
    (
        "$2a$05$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui",
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789chars after 72 are ignored",
    ),
    // The test vectors of the reference implementation of Argon2: version 16 without its name, version 19, Argon2id.
    ("$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY", "password"),
    ("$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8", "password"),
    ("$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc", "password"),
];

#[test]
fn hashes_of_other_implementations_are_checked() {
    for (hash, password) in FOREIGN {
        assert!(is_right(hash, password), "{hash}");
        assert!(!is_right(hash, &format!("x{password}")), "{hash}");
        assert!(StoredHash::parse(hash).is_ok_and(|hash| hash.is_outdated()), "{hash}");
    }
}

#[test]
fn own_hashes_are_checked_and_stay() {
    let mut memory = vec![Block::default(); PARAMS.block_count()];
    let hash = new_hash("correct horse", &mut memory).expect("hashed");
    assert!(is_right(&hash, "correct horse") && !is_right(&hash, "wrong horse"));
    assert!(StoredHash::parse(&hash).is_ok_and(|hash| !hash.is_outdated()), "{hash}");
}

#[test]
fn stronger_hashes_stay_and_weaker_ones_do_not() {
    let tail = "$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc";
    let is_outdated = |head: &str| StoredHash::parse(&format!("{head}{tail}")).expect(head).is_outdated();
    for stays in ["$argon2id$v=19$m=65536,t=3,p=4", "$argon2id$v=19$t=2,p=1,m=19456", "$argon2id$v=19$m=102400,t=2,p=8"]
    {
        assert!(!is_outdated(stays), "{stays}");
    }
    let weak = [
        "$argon2id$v=19$m=65536,t=1,p=1",
        "$argon2id$v=19$m=4096,t=3,p=1",
        "$argon2i$v=19$m=65536,t=4,p=1",
        "$argon2d$v=19$m=65536,t=4,p=1",
        "$argon2id$m=65536,t=4,p=1",
    ];
    for head in weak {
        assert!(is_outdated(head), "{head}");
    }
    assert!(
        StoredHash::parse("$argon2id$v=19$m=65536,t=3,p=4$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuA")
            .expect("short")
            .is_outdated()
    );
}

#[test]
fn hashes_that_are_malformed_or_cost_too_much_are_refused_without_showing_them() {
    let bcrypt = "abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui";
    let argon2 = "$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc";
    let malformed = [
        String::new(),
        "password".to_owned(),
        format!("$2$05${bcrypt}"),
        format!("$2c$05${bcrypt}"),
        format!("$2a$+5${bcrypt}"),
        format!("$2a$05${bcrypt}x"),
        format!("$2a$05${}", &bcrypt[1..]),
        format!("$2a$05${}é", &bcrypt[2..]),
        format!(" $2a$05${bcrypt}"),
        format!("$2a$05${bcrypt}\n"),
        format!("$2a$05${}", bcrypt.replace('u', "!")),
        "$1$salt$qJH7.N4xYta3aEG/dfqo/0".to_owned(),
        "$argon2id$v=19$m=256,t=2,p=1".to_owned(),
        "$argon2id$v=19$m=256,t=2,p=1$c29tZXNhbHQ".to_owned(),
        format!("$argon2id$v=20$m=256,t=2,p=1{argon2}"),
        format!("$argon2x$v=19$m=256,t=2,p=1{argon2}"),
        format!("$argon2id$v=19$m=7,t=2,p=1{argon2}"),
        format!("$argon2id$v=19$m=256,t=0,p=1{argon2}"),
        format!("$argon2id$v=19$m=256,t=2,p=1{argon2}{}", "A".repeat(300)),
        format!("$scrypt$ln=16,r=8,p=1{argon2}"),
    ];
    let refused = malformed.iter().map(|hash| (hash.clone(), MALFORMED));
    let faulty = (format!("$2x$05${bcrypt}"), "$2x$");
    let costly = ["03", "15", "31", "99"].map(|cost| (format!("$2b${cost}${bcrypt}"), "cost"));
    let hungry =
        ["m=262145,t=1,p=1", "m=4294967295,t=1,p=1", "m=256,t=4097,p=1", "m=65536,t=17,p=1", "m=4096,t=1,p=65"]
            .map(|params| (format!("$argon2id$v=19${params}{argon2}"), "too much"));
    let odd = ["m=256,t=2", "t=2,p=1", "m=256,t=2,p=1,keyid=AAAA", "m=256,t=2,p=1,data=AAAA", "m=256,t=2,p=1,x=1"]
        .map(|params| (format!("$argon2id$v=19${params}{argon2}"), "other parameters"));
    let all = refused.chain([faulty]).chain(costly).chain(hungry).chain(odd);
    for (hash, why) in all {
        let refusal = StoredHash::parse(&hash).err().unwrap_or_else(|| panic!("{hash} is accepted"));
        assert!(refusal.contains(why), "{hash}: {refusal}");
    }
}

#[test]
fn the_most_costly_hashes_within_the_limits_are_accepted() {
    let tail = "$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc";
    for params in ["m=262144,t=4,p=1", "m=65536,t=16,p=64", "m=19456,t=2,p=1"] {
        assert!(StoredHash::parse(&format!("$argon2id$v=19${params}{tail}")).is_ok(), "{params}");
    }
    assert!(StoredHash::parse("$2b$14$abcdefghijklmnopqrstuu5s2v8.iXieOjg/.AySBTTZIIVFJeBui").is_ok());
}

#[test]
fn a_refused_sign_in_spends_no_more_than_a_hash_of_cost_12() {
    assert_eq!([4, 10, 12, 13, 14, 99].map(spent_cost), [4, 10, 12, 12, 12, 12]);
    assert_eq!(spent_cost(0), 4);
}

#[test]
fn a_wrong_password_costs_as_much_work_with_a_weaker_hash() {
    let missing = |params: &str| {
        let hash = format!("$argon2id$v=19${params}$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc");
        StoredHash::parse(&hash).unwrap_or_else(|error| panic!("{hash} {error}")).missing_kib()
    };
    assert_eq!(["m=19456,t=2,p=1", "m=65536,t=3,p=1", "m=38912,t=1,p=1"].map(missing), [0; 3]);
    assert_eq!(missing("m=512,t=2,p=1"), 19_456 - 512);
    assert_eq!(missing("m=4096,t=3,p=1"), (2 * 19_456 - 3 * 4_096) / 2);
    let mut memory = vec![Block::default(); PARAMS.block_count()];
    assert!([0, 1, 512, 19_456].into_iter().all(|kib| spend_argon2(kib, &mut memory).is_ok()));
}
