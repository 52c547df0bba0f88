//! Opening and closing clients (DESIGN 3, 4).

mod closing;
mod closing_beside_calls;
mod derived_handles;
mod environment;
mod every_call;
mod foreign_runtime;
#[cfg(unix)]
mod limits;
mod memory;
mod metrics;
mod moves;
mod opening;
mod shared;
#[cfg(target_os = "linux")]
mod signals;
mod spans;
mod supabase;
mod threads;
mod waiting;
