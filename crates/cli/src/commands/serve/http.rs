//! What a page on the loopback address needs of HTTP/1.1: a request with a body of a known length, and an
//! answer, then the connection is closed.
//!
//! Everything that a client sends is bounded, in bytes and in time, whatever it sends.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Bytes of a request before its body, and its headers.
const HEAD: usize = 16 << 10;
const HEADERS: usize = 64;
/// Bytes of a body.
const BODY: usize = 8 << 20;
/// How long a request may take to arrive, and an answer to leave.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long it is listened to a client whose request was refused, and how many bytes: else it would lose the
/// answer when the connection is closed.
const LINGER: Duration = Duration::from_millis(500);
const LINGERED: u64 = 16 << 20;

/// One request.
pub struct Request {
    pub method: String,
    /// Without what comes behind `?`.
    pub path: String,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

/// One answer.
pub struct Response {
    status: u16,
    content_type: &'static str,
    body: Cow<'static, [u8]>,
    /// Whether the request may not have been read to its end.
    is_early: bool,
}

/// Reads a request, or says why it is refused.
pub fn read(stream: &mut TcpStream) -> io::Result<Result<Request, Response>> {
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let (mut request, head) = loop {
        match Request::parse(&bytes) {
            Ok(Some(parsed)) => break parsed,
            Ok(None) if bytes.len() < HEAD => {}
            Ok(None) => return Ok(Err(Response::early(431, "the head of the request is too long"))),
            Err(error) => {
                return Ok(Err(Response::early(400, &format!("this is no request of HTTP/1.1: {error}"))));
            }
        }
        if !receive(stream, deadline, HEAD - bytes.len(), &mut bytes)? {
            return Ok(Err(Response::early(408, "the request took too long")));
        }
    };
    let length = match request.length() {
        Ok(length) => length,
        Err(refused) => return Ok(Err(refused)),
    };
    request.body = bytes.split_off(head);
    while request.body.len() < length {
        let missing = length - request.body.len();
        if !receive(stream, deadline, missing, &mut request.body)? {
            return Ok(Err(Response::early(408, "the request took too long")));
        }
    }
    request.body.truncate(length);
    Ok(Ok(request))
}

/// Appends what has arrived, at most so much; `false` if the time is over.
fn receive(stream: &mut TcpStream, deadline: Instant, most: usize, bytes: &mut Vec<u8>) -> io::Result<bool> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    stream.set_read_timeout(Some(left))?;
    let mut part = [0; 8 << 10];
    let most = most.min(part.len());
    match stream.read(&mut part[..most]) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(n) => {
            bytes.extend_from_slice(&part[..n]);
            Ok(true)
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
            Ok(false)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
        Err(error) => Err(error),
    }
}

impl Request {
    /// The head of a request and its length; `None` if there is more to come.
    fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, httparse::Error> {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS];
        let mut parsed = httparse::Request::new(&mut headers);
        let httparse::Status::Complete(head) = parsed.parse(bytes)? else { return Ok(None) };
        let path = parsed.path.unwrap_or_default();
        let path = path.split_once('?').map_or(path, |(path, _)| path);
        let header = |header: &httparse::Header<'_>| {
            (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
        };
        let request = Self {
            method: parsed.method.unwrap_or_default().to_owned(),
            path: path.to_owned(),
            headers: parsed.headers.iter().map(header).collect(),
            body: Vec::new(),
        };
        Ok(Some((request, head)))
    }

    /// A header, if it is there once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut all = self.all(name);
        all.next().filter(|_| all.next().is_none())
    }

    /// All headers of a name.
    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// How long the body is.
    fn length(&self) -> Result<usize, Response> {
        if self.all("transfer-encoding").next().is_some() {
            return Err(Response::early(411, "say how long the request is: Content-Length"));
        }
        let Some(first) = self.all("content-length").next() else {
            return match &*self.method {
                "POST" => Err(Response::early(411, "say how long the request is: Content-Length")),
                _ => Ok(0),
            };
        };
        let is_number = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || self.all("content-length").any(|other| other != first) {
            return Err(Response::early(400, "Content-Length is one number"));
        }
        match first.parse() {
            Ok(length) if length <= BODY => Ok(length),
            _ => Err(Response::early(413, &format!("a request has at most {BODY} bytes"))),
        }
    }

    /// A refusal, unless the request comes from our own page or from a program that is none.
    ///
    /// A page of somebody else can make a browser send requests here, also under a name of its own that it
    /// lets point to this machine (DNS rebinding): then `Host` has that name.
    pub fn foreign(&self, port: u16) -> Option<Response> {
        let ours = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{port}"));
        // The usual port is left out.
        let is_ours = |host: &str| {
            ours.iter().any(|ours| host == ours) || port == 80 && ["127.0.0.1", "localhost"].contains(&host)
        };
        if !self.header("host").is_some_and(is_ours) {
            return Some(Response::refusal(421, &format!("this is http://{}/ and no other", ours[0])));
        }
        let origins = self.all("origin").all(|origin| origin.strip_prefix("http://").is_some_and(is_ours));
        let sites = self.all("sec-fetch-site").all(|site| ["same-origin", "none"].contains(&site));
        // A link or an address that somebody typed may lead here, from wherever; it asks nothing.
        let is_visit = self.method == "GET" && self.all("sec-fetch-mode").any(|mode| mode == "navigate");
        if origins && (sites || is_visit) {
            return None;
        }
        Some(Response::refusal(403, "questions of other pages are not answered"))
    }
}

impl Response {
    /// An answer.
    pub fn new(status: u16, content_type: &'static str, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { status, content_type, body: body.into(), is_early: false }
    }

    /// Why there is none.
    pub fn refusal(status: u16, why: &str) -> Self {
        Self::new(status, "text/plain; charset=utf-8", format!("{why}\n").into_bytes())
    }

    /// The same before the request was read to its end.
    fn early(status: u16, why: &str) -> Self {
        Self { is_early: true, ..Self::refusal(status, why) }
    }

    /// Sends the answer, and closes the connection.
    pub fn write(&self, stream: &mut TcpStream) -> io::Result<()> {
        stream.set_write_timeout(Some(PATIENCE))?;
        let Self { status, content_type, body, .. } = self;
        let reason = match status {
            200 => "OK",
            400..500 => "Refused",
            _ => "Failed",
        };
        // The page needs nothing but its own files, whatever it is made to show.
        let head = format!(
            "HTTP/1.1 {status} {reason}\r\n\
             Content-Type: {content_type}\r\n\
             Content-Length: {}\r\n\
             Connection: close\r\n\
             Cache-Control: no-store\r\n\
             Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'\r\n\
             Cross-Origin-Resource-Policy: same-origin\r\n\
             Referrer-Policy: no-referrer\r\n\
             X-Content-Type-Options: nosniff\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body)?;
        if self.is_early {
            stream.shutdown(Shutdown::Write)?;
            stream.set_read_timeout(Some(LINGER))?;
            // Whatever it still sends.
            let _ = io::copy(&mut stream.take(LINGERED), &mut io::sink());
        }
        Ok(())
    }
}
