//! The parameters of a request, and addresses with parameters.

use axum::http::Uri;
use townsquare::Uuid;
use url::form_urlencoded;

use super::page_error::PageError;

/// The parameters in the query of an address.
#[derive(Debug)]
pub(super) struct Parameters(Vec<(String, String)>);

impl Parameters {
    pub(super) fn of(uri: &Uri) -> Parameters {
        Parameters(form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// The first value with a name, if it is not empty.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        value.filter(|value| !value.is_empty())
    }

    /// # Errors
    /// 400 without the parameter.
    pub(super) fn required(&self, name: &str) -> Result<&str, PageError> {
        self.get(name).ok_or_else(|| PageError::bad_request(format!("The address has no parameter {name}.")))
    }

    /// # Errors
    /// 400 if the value is no id.
    pub(super) fn id(&self, name: &str) -> Result<Option<Uuid>, PageError> {
        self.get(name).map(id).transpose()
    }
}

/// # Errors
/// 400 if the text is no id.
pub(super) fn id(text: &str) -> Result<Uuid, PageError> {
    text.parse().map_err(|_| PageError::bad_request("An id is a UUID, such as 0192f0c1-7a3b-7c4d-8e5f-000000000001."))
}

/// The address of `path` with these parameters.
pub(super) fn address(path: &str, parameters: &[(&str, &str)]) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(parameters).finish();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_parameters_escaped() {
        let address = address("/admin/file", &[("path", "a b&c=\"<é"), ("bucket", "x")]);
        assert_eq!(address, "/admin/file?path=a+b%26c%3D%22%3C%C3%A9&bucket=x");
        let read = Parameters::of(&address.parse().expect("an address"));
        assert_eq!((read.get("path"), read.get("bucket"), read.get("other")), (Some("a b&c=\"<é"), Some("x"), None));
    }
}
