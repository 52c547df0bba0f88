//! Opening and closing clients (DESIGN 3, 4).

mod closing;
mod derived_handles;
mod opening;
mod shared;
mod threads;
mod waiting;
