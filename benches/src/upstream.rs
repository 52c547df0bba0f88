//! An upstream on the loopback that invents its pages as they are asked for (UPSTREAM 1), so that it needs no memory.

use std::{
    fmt::Write as _,
    io::{self, BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use crate::catalog;

/// Serves `size` apps in pages from threads that live as long as the process; any key will do.
///
/// # Errors
/// When there is no port.
pub fn serve(size: usize) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that hangs up has its reasons.
            thread::spawn(move || drop(answer(&stream, size)));
        }
    });
    Ok(address)
}

fn answer(stream: &TcpStream, size: usize) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut lines = BufReader::new(stream).lines();
    while let Some(request) = lines.next().transpose()? {
        for header in lines.by_ref() {
            if header?.is_empty() {
                break;
            }
        }
        let body = page(&request, size);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut stream = stream;
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
    }
    Ok(())
}

fn page(request: &str, size: usize) -> String {
    let parameter = |name: &str| {
        let (_, rest) = request.split_once(name)?;
        rest.split(['&', ' ']).next()?.parse::<usize>().ok()
    };
    let (start, limit) = (parameter("cursor=").unwrap_or(0), parameter("limit=").unwrap_or(100));
    let end = (start + limit).min(size);
    let rows: Vec<_> = (start..end).map(|index| catalog::frame(index).to_string()).collect();
    let mut body = format!(r#"{{"frames":[{}],"next":{{"cursor":"#, rows.join(","));
    // Writing into a string does not fail.
    let _ = if end < size { write!(body, r#""{end}"}}}}"#) } else { write!(body, "null}}}}") };
    body
}
