//! The record `Finding`: what a check of a client says is wrong.

use crate::record::record;

record! {
    /// Something that is wrong, or will be.
    Finding(townsquare::check::Finding) [] as finding, hash [code, message] => {
        /// The kind of fault, such as `file_missing`: stable and documented.
        code: "str" = finding.code.as_str(),
        /// How bad it is.
        severity: "Literal['error', 'warning', 'note']" = finding.severity().as_str(),
        /// A sentence that names the file, the table or the part.
        message: "str" = &finding.message,
        /// What to do about it.
        advice: "str" = finding.advice(),
    }
}
