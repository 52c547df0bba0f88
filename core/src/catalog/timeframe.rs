//! The timeframe of a trending order.

use std::{fmt, str::FromStr};

use crate::error::Error;

crate::model::named! {
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
        Hour1 = "1h",
        /// `6h`
        Hours6 = "6h",
        /// `12h`
        Hours12 = "12h",
        /// `24h`: the default. Category lists and search use its order.
        #[default]
        Hours24 = "24h",
        /// `7d`
        Days7 = "7d",
    }

    /// All timeframes, shortest first.
    pub const ALL;

    /// The value of the upstream's `time_window` parameter.
    ///
    /// ```
    /// use townsquare::discovery::Timeframe;
    ///
    /// assert_eq!(Timeframe::Hours6.as_str(), "6h");
    /// ```
    pub fn as_str;
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
