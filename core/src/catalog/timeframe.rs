//! The timeframe of a trending order.

use std::{fmt, str::FromStr};

use crate::error::Error;

/// The time window that a trending order looks at.
///
/// ```
/// use townsquare::discovery::Timeframe;
///
/// assert_eq!("7d".parse::<Timeframe>()?, Timeframe::Days7);
/// assert_eq!(Timeframe::default().to_string(), "24h");
/// # Ok::<(), townsquare::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
#[non_exhaustive]
pub enum Timeframe {
    /// `1h`
    Hour1,
    /// `6h`
    Hours6,
    /// `12h`
    Hours12,
    /// `24h`: the default. Category lists and search use its order.
    #[default]
    Hours24,
    /// `7d`
    Days7,
}

impl Timeframe {
    /// All timeframes, shortest first.
    pub const ALL: [Timeframe; 5] =
        [Timeframe::Hour1, Timeframe::Hours6, Timeframe::Hours12, Timeframe::Hours24, Timeframe::Days7];

    /// The value of the upstream's `time_window` parameter.
    ///
    /// ```
    /// use townsquare::discovery::Timeframe;
    ///
    /// assert_eq!(Timeframe::Hours6.as_str(), "6h");
    /// ```
    pub const fn as_str(self) -> &'static str {
        match self {
            Timeframe::Hour1 => "1h",
            Timeframe::Hours6 => "6h",
            Timeframe::Hours12 => "12h",
            Timeframe::Hours24 => "24h",
            Timeframe::Days7 => "7d",
        }
    }
}

impl fmt::Display for Timeframe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Timeframe {
    type Err = Error;

    /// Parses `1h`, `6h`, `12h`, `24h` or `7d`.
    ///
    /// # Errors
    /// [`InvalidInput`](crate::ErrorKind::InvalidInput) for any other text.
    fn from_str(text: &str) -> Result<Timeframe, Error> {
        Timeframe::ALL.into_iter().find(|timeframe| timeframe.as_str() == text).ok_or_else(|| {
            let shown: String = text.chars().take(20).collect();
            Error::invalid_input(format!("Unknown timeframe {shown:?}: it is one of 1h, 6h, 12h, 24h, 7d"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_timeframe_parses_from_its_text() {
        for timeframe in Timeframe::ALL {
            assert_eq!(timeframe.as_str().parse::<Timeframe>().ok(), Some(timeframe));
        }
        assert!("24H".parse::<Timeframe>().is_err());
    }
}
