//! Discovery (SPEC 1, 2.1, 4.1, 4.2, 8; UPSTREAM 1 and 2; DESIGN 6), against an upstream on the loopback.

mod categories;
mod collapse;
mod directory;
mod endpoint;
mod endpoint_http;
mod endpoint_routes;
mod faults;
mod file;
mod freshness;
mod further_lists;
mod key;
mod networks;
mod page;
mod paging;
mod processes;
mod record;
mod redirects;
mod router;
mod rows;
mod sample;
mod search;
mod search_quality;
mod sources;
mod stored_catalog;
mod trending;
