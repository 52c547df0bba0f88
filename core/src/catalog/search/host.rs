//! The words of host names: labels that name an app, without `www`, top-level domains and hosting services.

/// Suffixes under which many unrelated apps are hosted.
const HOSTING: [&str; 34] = [
    "vercel.app",
    "netlify.app",
    "ohara.ai",
    "remix.gg",
    "self.tools",
    "replit.app",
    "replit.dev",
    "repl.co",
    "railway.app",
    "ngrok.app",
    "ngrok.io",
    "ngrok-free.app",
    "ngrok-free.dev",
    "pages.dev",
    "workers.dev",
    "trycloudflare.com",
    "orbiter.website",
    "orbiter.host",
    "val.run",
    "run.app",
    "bolt.host",
    "lovable.app",
    "onrender.com",
    "fly.dev",
    "herokuapp.com",
    "web.app",
    "firebaseapp.com",
    "github.io",
    "gitlab.io",
    "surge.sh",
    "glitch.me",
    "deno.dev",
    "framer.website",
    "amazonaws.com",
];

/// The labels of a host that may name its app, in order. A hosting service's own host has its first label.
pub(super) fn labels(host: &str) -> impl Iterator<Item = &str> {
    let without_suffix = HOSTING
        .iter()
        .find_map(|suffix| host.strip_suffix(suffix)?.strip_suffix('.'))
        .or_else(|| host.rsplit_once('.').map(|(labels, _)| labels))
        .unwrap_or(host);
    without_suffix.split('.').filter(|label| !is_web_word(label))
}

/// The words of a host as the text of a query.
pub(crate) fn host_words(host: &str) -> String {
    labels(host).collect::<Vec<_>>().join(" ")
}

/// Words of addresses, which say nothing about an app.
pub(super) fn is_web_word(word: &str) -> bool {
    matches!(word, "www" | "http" | "https" | "com" | "co")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_a_host_name_its_app() {
        for (host, words) in [
            ("www.betswirl.com", "betswirl"),
            ("rodeo.club", "rodeo"),
            ("my-app.vercel.app", "my-app"),
            ("a.up.railway.app", "a up"),
            ("vercel.app", "vercel"),
            ("shop.example.co.uk", "shop example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(host_words(host), words, "{host}");
        }
    }
}
