//! Malformed rows: frames with one part missing or of a wrong type, for every part and every type (UPSTREAM 1: any
//! optional part can be missing on any row, and one malformed row must not cost the page).

use serde_json::{Value, json};

use super::Row;

/// Returns a valid frame with every optional part.
pub fn full_frame(host: &str) -> Value {
    json!({
        "version": "next",
        "image": format!("https://{host}/image.png"),
        "frames_url": format!("https://{host}/frame"),
        "title": "Button",
        "manifest": {
            "account_association": { "header": "h", "payload": "p", "signature": "s" },
            "miniapp": {
                "version": "1",
                "name": "Full House",
                "home_url": format!("https://{host}/home"),
                "icon_url": format!("https://{host}/icon.png"),
                "image_url": format!("https://{host}/card.png"),
                "button_title": "Open it",
                "splash_image_url": format!("https://{host}/splash.png"),
                "splash_background_color": "#ff8800",
                "webhook_url": format!("https://{host}/hook"),
                "subtitle": "The subtitle",
                "description": "The description",
                "screenshot_urls": [format!("https://{host}/1.png"), format!("https://{host}/2.png")],
                "primary_category": "games",
                "tags": ["one", "two"],
                "hero_image_url": format!("https://{host}/hero.png"),
                "tagline": "The tagline",
                "og_title": "The og title",
                "og_description": "The og description",
                "og_image_url": format!("https://{host}/og.png"),
                "noindex": false,
                "required_chains": ["eip155:8453", "eip155:10"],
                "required_capabilities": ["wallet.getEthereumProvider"],
            },
        },
        "author": {
            "object": "user",
            "fid": 42,
            "username": "fullhouse",
            "display_name": "Full of House",
            "pfp_url": "https://pictures.example/42.png",
            "follower_count": 1234,
            "following_count": 56,
            "score": 0.75,
            "power_badge": true,
        },
        "metadata": { "html": { "ogTitle": "x" } },
    })
}

/// A full frame with one part changed.
#[derive(Debug, Clone)]
pub struct MalformedRow {
    /// JSON pointer of the part.
    pub part: String,
    /// The change of that part.
    pub change: &'static str,
    /// Whether the row is valid JSON; a lone surrogate is not.
    pub is_text: bool,
    /// The changed frame.
    pub row: Row,
}

const SURROGATE: &str = "@surrogate@";

/// Returns a row for each part of the full frame except its URLs: with the part removed, and with each kind of JSON
/// value in its place.
///
/// # Panics
/// Never: the pointers are those of the frame itself.
pub fn malformed_rows() -> Vec<MalformedRow> {
    let mut parts = Vec::new();
    pointers(&full_frame("x"), "", &mut parts);
    parts.retain(|part| !part.ends_with("/home_url") && part != "/frames_url");
    let mut rows: Vec<MalformedRow> = Vec::new();
    for part in parts {
        let changes = [
            ("removed", None),
            ("a number", Some(json!(7.5))),
            ("a huge number", Some(json!(1e300))),
            ("a string", Some(json!("text"))),
            ("an empty string", Some(json!(""))),
            ("a list", Some(json!([1, null, { "a": "b" }]))),
            ("an object", Some(json!({ "a": [1], "name": 3 }))),
            ("null", Some(Value::Null)),
            ("true", Some(json!(true))),
            ("a lone surrogate", Some(json!(SURROGATE))),
        ];
        for (change, value) in changes {
            let host = format!("odd-{}.example", rows.len());
            let mut frame = full_frame(&host);
            let (parent, name) = part.rsplit_once('/').expect("a pointer begins with a slash");
            let parent = frame.pointer_mut(parent).and_then(Value::as_object_mut).expect("a part of an object");
            match value {
                Some(value) => drop(parent.insert(name.to_owned(), value)),
                None => drop(parent.remove(name)),
            }
            let body = frame.to_string().replace(SURROGATE, r"\ud83d alone");
            let is_text = change != "a lone surrogate";
            rows.push(MalformedRow { part: part.clone(), change, is_text, row: Row { body, ..Row::from(frame) } });
        }
    }
    rows
}

/// Collects the pointers of all object members, recursively; a list is one part.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    let Value::Object(members) = value else { return };
    for (name, member) in members {
        let pointer = format!("{at}/{name}");
        pointers(member, &pointer, into);
        into.push(pointer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_changed_in_every_way() {
        let rows = malformed_rows();
        assert!(rows.len() > 400, "{}", rows.len());
        assert!(rows.iter().any(|row| row.part == "/manifest/miniapp/tags" && row.change == "removed"));
        let bad = rows.iter().filter(|row| serde_json::from_str::<Value>(&row.row.body).is_err());
        assert!(bad.count() > 30, "lone surrogates do not parse");
    }
}
