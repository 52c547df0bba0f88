//! A clock that a test moves, for `townsquare.testing`.

use pyo3::{prelude::*, types::PyDict};
use townsquare::{
    Timestamp,
    config::{Clock, ManualClock as CoreClock},
};

use crate::{
    argument::{DateTimeArg, PathArg, SecondsArg},
    client,
    errors::{Failure, expected},
    options::configuration,
    record::PyTime,
    run::{MethodResult, Mode},
};

#[doc = text_of!(ManualClock)]
#[pyclass(frozen, module = "townsquare.testing")]
pub(crate) struct ManualClock(CoreClock);

#[pymethods]
impl ManualClock {
    /// A clock that shows `now`, by default the time of the system.
    #[new]
    #[pyo3(signature = (now = None))]
    fn new(py: Python<'_>, now: Option<DateTimeArg>) -> PyResult<ManualClock> {
        let now = now.map_or_else(|| Ok(Clock::default().now()), |now| value(py, now))?;
        Ok(ManualClock(CoreClock::at(now)))
    }

    #[doc = text_of!(ManualClock.now)]
    #[getter]
    fn now(&self) -> PyTime {
        PyTime(self.0.clock().now())
    }

    #[doc = text_of!(ManualClock.advance)]
    fn advance(&self, py: Python<'_>, by: SecondsArg) -> PyResult<()> {
        let by = by.value("by").map_err(|failure| failure.into_exception(py, None))?;
        self.0.advance(by);
        Ok(())
    }

    #[doc = text_of!(ManualClock.set)]
    fn set(&self, py: Python<'_>, now: DateTimeArg) -> PyResult<()> {
        let by = value(py, now)?.duration_since(self.0.clock().now());
        match by.try_into() {
            Ok(by) => self.0.advance(by),
            Err(_) => self.0.step(by),
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        format!("<townsquare.testing.ManualClock {}>", self.0.clock().now())
    }
}

fn value(py: Python<'_>, now: DateTimeArg) -> PyResult<Timestamp> {
    now.value("now").map_err(|failure: Failure| failure.into_exception(py, None))
}

/// The clock of a [`ManualClock`].
pub(crate) struct ClockArg(Clock);

impl<'py> FromPyObject<'_, 'py> for ClockArg {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<ClockArg> {
        match value.cast::<ManualClock>() {
            Ok(clock) => Ok(ClockArg(clock.get().0.clock())),
            Err(_) => Err(expected("a ManualClock", &value)),
        }
    }
}

#[doc = text_of!(open_with_clock)]
#[pyfunction]
#[pyo3(signature = (clock, data_dir = None, **options))]
pub(crate) fn open_with_clock<'py>(
    py: Python<'py>,
    clock: ClockArg,
    data_dir: Option<PathArg>,
    options: Option<&Bound<'py, PyDict>>,
) -> MethodResult<'py> {
    let config = configuration(py, data_dir.map(|PathArg(folder)| folder), options)?.clock(clock.0);
    client::open(py, Mode::Sync, config)
}
