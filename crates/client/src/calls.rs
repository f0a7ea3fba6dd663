//! Calls of a service's control plane: JSON over TLS, made again while there is hope.
//!
//! No input and no share goes through here: these calls say which model, how, and when.

use std::fmt;
use std::io::{Read, Write};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use privet_prg::Prg;
use privet_program::MAX_BYTES;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use ureq::http::{Response, Uri};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, TcpConnector, Transport, TransportAdapter,
};
use ureq::{Agent, Body, RequestBuilder};

use crate::{Credentials, Error};

/// The largest answer in JSON: a line for each of tens of thousands of jobs. What is read of it takes up to 32 times as much memory.
const MOST_JSON: u64 = 16 << 20;

/// Characters of a text of the service's that are shown.
const LONGEST_TEXT: usize = 1000;

/// How long an answer may take beyond the time that the call asks the service to wait.
const ANSWER: Duration = Duration::from_secs(30);

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(4);

const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The control plane of one service. A call that meets a busy service or none is made again, later and later and not before the
/// service says, as long as `patience`.
pub(crate) struct Calls {
    agent: Agent,
    base: String,
    token: Option<String>,
    patience: Duration,
    /// Host and port that it is called at.
    pub(crate) address: (String, u16),
    /// The name in the certificates of the service and its workers.
    pub(crate) server_name: String,
}

impl Calls {
    /// `url`: `https://HOST:PORT`. Fails with [`Error::Misuse`] if it is no such address, or `server_name` no name.
    pub(crate) fn new(
        url: &str,
        credentials: &Credentials,
        server_name: Option<String>,
        token: Option<String>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let refused = || Error::Misuse(format!("{url:?} is not https://HOST:PORT, such as https://localhost:7480"));
        let uri: Uri = url.parse().map_err(|_| refused())?;
        let is_plain = uri.scheme_str() == Some("https") && matches!(uri.path(), "" | "/") && uri.query().is_none();
        let authority = uri.authority().filter(|_| is_plain).ok_or_else(refused)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let server_name = server_name.unwrap_or_else(|| host.clone());
        let name = ServerName::try_from(server_name.clone())
            .map_err(|_| Error::Misuse(format!("{server_name:?} is no name that a certificate could carry")))?;
        let config = Agent::config_builder()
            .http_status_as_error(false)
            .https_only(true)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(CONNECT))
            .build();
        let connector = ().chain(TcpConnector::default()).chain(Tls { config: credentials.tls.clone(), name });
        Ok(Self {
            agent: Agent::with_parts(config, connector, DefaultResolver::default()),
            base: format!("https://{authority}"),
            token,
            patience,
            address: (host, authority.port_u16().unwrap_or(443)),
            server_name,
        })
    }

    /// What a GET answers; the service may hold it for `hold`.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str, hold: Duration) -> Result<T, Error> {
        parsed(&self.call(path, None, hold, MOST_JSON)?)
    }

    /// The public half of a program that a GET answers, byte for byte.
    pub(crate) fn program(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.call(path, None, Duration::ZERO, MAX_BYTES as u64)
    }

    /// What a POST answers.
    pub(crate) fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T, Error> {
        parsed(&self.call(path, Some(body.to_string().as_bytes()), Duration::ZERO, MOST_JSON)?)
    }

    /// Asks once to delete; what is not deleted ends by itself.
    pub(crate) fn delete(&self, path: &str) {
        // Otherwise the job ends by its timeout, or when nobody comes.
        let _ = self.signed(self.agent.delete(format!("{}{path}", self.base)), CONNECT).call();
    }

    /// `most`: bytes of the answer.
    fn call(&self, path: &str, body: Option<&[u8]>, hold: Duration, most: u64) -> Result<Vec<u8>, Error> {
        let (limit, mut pause) = (Instant::now() + self.patience, PAUSE);
        loop {
            let again = match self.once(path, body, hold, most) {
                Err(Refusal::Later(again)) => again,
                Err(Refusal::Final(error)) => return Err(error),
                Ok(answer) => return Ok(answer),
            };
            // Clients that were turned away together should not come back together.
            let jitter = Prg::from_os().map_err(no_randomness)?.below(256) as f64 / 1024.0;
            let rest = again.after.max(pause).mul_f64(1.0 + jitter);
            if Instant::now() + rest > limit {
                return Err(again.error);
            }
            sleep(rest);
            pause = LONGEST_PAUSE.min(2 * pause);
        }
    }

    fn once(&self, path: &str, body: Option<&[u8]>, hold: Duration, most: u64) -> Result<Vec<u8>, Refusal> {
        let (url, limit) = (format!("{}{path}", self.base), hold + ANSWER);
        let answer = match body {
            None => self.signed(self.agent.get(url), limit).call(),
            Some(body) => self.signed(self.agent.post(url).content_type("application/json"), limit).send(body),
        };
        let mut answer = answer.map_err(|error| self.not_reached(error))?;
        let raw = answer.body_mut().with_config().limit(most).read_to_vec();
        let raw = raw.map_err(|error| self.not_reached(error))?;
        if answer.status().is_success() { Ok(raw) } else { Err(refusal(&answer, &raw)) }
    }

    fn signed<B>(&self, request: RequestBuilder<B>, limit: Duration) -> RequestBuilder<B> {
        let request = match &self.token {
            Some(token) => request.header("Authorization", format!("Bearer {token}")),
            None => request,
        };
        request.config().timeout_global(Some(limit)).build()
    }

    /// What an error of a connection means. Waiting helps unless one side does not accept the other.
    fn not_reached(&self, error: ureq::Error) -> Refusal {
        let base = &self.base;
        if let ureq::Error::BodyExceedsLimit(limit) = error {
            return Refusal::Final(Error::PeerMisbehaved(format!("{base} sent an answer of more than {limit} bytes")));
        }
        if let Some(problem) = tls_problem(&error) {
            return Refusal::Final(match problem {
                rustls::Error::InvalidCertificate(why) => Error::PeerMisbehaved(format!(
                    "the certificate of {base} is refused ({why}): it must be valid, of an authority among the client's \
                     trusted ones, and for the name {}",
                    self.server_name
                )),
                rustls::Error::AlertReceived(alert) => Error::NotAccepted(format!(
                    "{base} refuses this client ({alert:?}): use the certificate that its operator gave you, or ask for a \
                     new one if it has expired or was revoked"
                )),
                other => Error::PeerMisbehaved(format!(
                    "{base} does not speak TLS 1.3 as a service does ({other}): look at the port"
                )),
            });
        }
        let error = Error::Link(format!(
            "{base} cannot be reached: {error}. Look at the address, and whether `privet serve` runs there"
        ));
        Refusal::Later(Again { error, after: Duration::ZERO })
    }
}

pub(crate) fn no_randomness(error: privet_prg::Error) -> Error {
    Error::Session(error.into())
}

fn parsed<T: DeserializeOwned>(raw: &[u8]) -> Result<T, Error> {
    serde_json::from_slice(raw)
        .map_err(|error| Error::PeerMisbehaved(format!("the service's answer makes no sense: {error}")))
}

/// Why there is no answer.
enum Refusal {
    Later(Again),
    Final(Error),
}

/// An error for the caller who has no patience left, and how long the service wants to be left alone.
struct Again {
    error: Error,
    after: Duration,
}

/// A text of the service's as users and logs may see it: without what steers a terminal, and not endless.
pub(crate) fn printable<'de, D: Deserializer<'de>>(text: D) -> Result<String, D::Error> {
    let text = String::deserialize(text)?;
    Ok(text.chars().filter(|letter| !letter.is_control()).take(LONGEST_TEXT).collect())
}

/// As [`printable`], of a text that may be left out.
pub(crate) fn maybe_printable<'de, D: Deserializer<'de>>(text: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    struct Text(#[serde(deserialize_with = "printable")] String);
    Ok(Option::<Text>::deserialize(text)?.map(|Text(text)| text))
}

/// What the service says when it refuses.
#[derive(Default, Deserialize)]
struct Said {
    #[serde(deserialize_with = "printable")]
    error: String,
    #[serde(default)]
    reason: String,
}

fn refusal(answer: &Response<Body>, raw: &[u8]) -> Refusal {
    let status = answer.status().as_u16();
    let said: Said = serde_json::from_slice(raw).unwrap_or_default();
    let text = if said.error.is_empty() { format!("the service answered {status}") } else { said.error };
    Refusal::Final(match (status, said.reason.as_str()) {
        (429 | 503, _) => {
            let after = answer.headers().get("Retry-After").and_then(|value| value.to_str().ok()?.parse().ok());
            let after = Duration::from_secs(after.unwrap_or(0u32).into());
            return Refusal::Later(Again { error: Error::Busy(text), after });
        }
        (409, "other program") => Error::OtherProgram(text),
        (409, _) => Error::Material(text),
        (400 | 404 | 405 | 413, _) => Error::Misuse(text),
        (401 | 403, _) => Error::NotAccepted(text),
        (507, _) => Error::Busy(text),
        _ => Error::PeerMisbehaved(text),
    })
}

fn tls_problem(error: &ureq::Error) -> Option<&rustls::Error> {
    match error {
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref(),
        _ => None,
    }
}

/// Makes a TCP connection one of TLS with the service, whose certificate must carry `name` whatever the address is.
#[derive(Debug)]
struct Tls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<In: Transport> Connector<In> for Tls {
    type Out = TlsTransport;

    fn connect(&self, details: &ConnectionDetails, chained: Option<In>) -> Result<Option<TlsTransport>, ureq::Error> {
        let Some(tcp) = chained else { return Ok(None) };
        let refused = |error| std::io::Error::new(std::io::ErrorKind::InvalidInput, error);
        let mut connection = ClientConnection::new(self.config.clone(), self.name.clone()).map_err(refused)?;
        let mut tcp = TransportAdapter::new(tcp.boxed(), details.current_time.clone());
        tcp.set_timeout(details.timeout);
        connection.complete_io(&mut tcp)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(TlsTransport { buffers, stream: StreamOwned::new(connection, tcp) }))
    }
}

struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.get_mut().set_timeout(timeout);
        let amount = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(amount);
        Ok(amount > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.get_mut().get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}

impl fmt::Debug for TlsTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TlsTransport")
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;
    use std::time::SystemTime;

    use rustls::crypto::ring::default_provider;
    use rustls::pki_types::PrivateKeyDer;
    use rustls::version::TLS13;
    use rustls::{ServerConfig, ServerConnection};

    use super::*;

    /// Credentials that trust the certificate of a service at `localhost`, which ends then, and what the service serves with.
    fn parties(end: Option<SystemTime>) -> (Credentials, Arc<ServerConfig>) {
        let (root_key, key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
        let mut root = rcgen::CertificateParams::new([]).unwrap();
        root.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let trusted = root.self_signed(&root_key).unwrap().pem();
        let mut own = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        end.into_iter().for_each(|end| own.not_after = end.into());
        let certificate = own.signed_by(&key, &rcgen::Issuer::new(root, root_key)).unwrap();
        let (pem, key_pem) = (certificate.pem(), key.serialize_pem());
        let credentials = Credentials::from_pem(pem.as_bytes(), key_pem.as_bytes(), trusted.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_protocol_versions(&[&TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::try_from(key.serialize_der()).unwrap());
        (credentials, Arc::new(config.unwrap()))
    }

    /// What a service that answers so, one call after the other on one connection, is called with, and what `ask` makes of it.
    fn answered<T>(asks_with_body: bool, answers: Vec<String>, ask: impl FnOnce(&Calls) -> T) -> (Vec<String>, T) {
        let (credentials, config) = parties(None);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let service = thread::spawn(move || {
            let (tcp, _) = listener.accept().unwrap();
            let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), tcp);
            // A call with a body is over with its object.
            let end: &[u8] = if asks_with_body { b"}" } else { b"\r\n\r\n" };
            let respond = |answer: String| {
                let asked = request(&mut stream, end).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
                asked
            };
            answers.into_iter().map(respond).collect()
        });
        let reply = ask(&calls_to(port, &credentials));
        (service.join().unwrap(), reply)
    }

    fn calls_to(port: u16, credentials: &Credentials) -> Calls {
        let (name, token) = (Some("localhost".into()), Some("secret".into()));
        Calls::new(&format!("https://127.0.0.1:{port}"), credentials, name, token, Duration::from_secs(3)).unwrap()
    }

    /// What is sent up to this end.
    fn request(stream: &mut impl Read, end: &[u8]) -> std::io::Result<String> {
        let mut request = Vec::new();
        while !request.ends_with(end) {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            request.extend(byte);
        }
        Ok(String::from_utf8(request).unwrap())
    }

    fn answer(status: &str, headers: &str, body: &str) -> String {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n{headers}\r\n{body}", body.len())
    }

    #[test]
    fn a_certificate_that_has_expired_is_refused_also_where_it_was_accepted_before() {
        let end = SystemTime::now() + Duration::from_secs(3);
        let (credentials, config) = parties(Some(end));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for tcp in listener.incoming() {
                let mut stream = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), tcp.unwrap());
                if request(&mut stream, b"\r\n\r\n").is_ok() {
                    stream.write_all(answer("200 OK", "Connection: close\r\n", "{}").as_bytes()).unwrap();
                }
            }
        });
        let calls = calls_to(port, &credentials);
        calls.program("/").unwrap();
        sleep(end.duration_since(SystemTime::now()).unwrap_or_default() + Duration::from_secs(1));
        let refused = calls.program("/");
        assert!(matches!(&refused, Err(Error::PeerMisbehaved(text)) if text.contains("refused")), "{refused:?}");
    }

    #[test]
    fn a_busy_service_is_asked_again_not_before_it_says() {
        let busy = answer("503 Service Unavailable", "Retry-After: 1\r\n", r#"{"error": "full"}"#);
        let body = serde_json::json!({"key": "k"});
        let start = Instant::now();
        let answers = vec![busy, answer("202 Accepted", "", r#"{"id": "r"}"#)];
        let (asked, reply) = answered(true, answers, |calls| calls.post::<Value>("/v2/models/m/requests", &body));
        assert_eq!(reply.unwrap()["id"], "r");
        assert!(start.elapsed() >= Duration::from_secs(1));
        assert_eq!(asked[0], asked[1]);
        let [first, ..] = &asked[..] else { panic!("two calls") };
        assert!(first.starts_with("POST /v2/models/m/requests HTTP/1.1\r\n"), "{first}");
        assert!(first.to_lowercase().contains("authorization: bearer secret\r\n"), "{first}");
        assert!(first.ends_with(r#"{"key":"k"}"#), "{first}");
    }

    #[test]
    fn a_refusal_says_what_it_is() {
        let refused = |status: &str, reason: &str| {
            let said = serde_json::json!({"error": "the reason in words", "reason": reason}).to_string();
            let (_, reply) = answered(false, vec![answer(status, "", &said)], |calls| calls.program("/"));
            let error = reply.unwrap_err();
            assert_eq!(error.to_string(), "the reason in words");
            error
        };
        assert!(matches!(refused("409 Conflict", "other program"), Error::OtherProgram(_)));
        assert!(matches!(refused("409 Conflict", "used"), Error::Material(_)));
        assert!(matches!(refused("404 Not Found", ""), Error::Misuse(_)));
        assert!(matches!(refused("403 Forbidden", "policy"), Error::NotAccepted(_)));
        assert!(matches!(refused("500 Internal Server Error", ""), Error::PeerMisbehaved(_)));
    }

    #[test]
    fn a_refusal_steers_no_terminal_and_ends() {
        let said =
            serde_json::json!({"error": format!("no\x1b]0;mine\x07\u{9b}2J{}", "!".repeat(1 << 20))}).to_string();
        let (_, reply) = answered(false, vec![answer("404 Not Found", "", &said)], |calls| calls.program("/"));
        let text = reply.unwrap_err().to_string();
        assert!(text.starts_with("no]0;mine2J!") && text.len() == LONGEST_TEXT, "{text:.40}");
    }

    #[test]
    fn answers_that_make_no_sense_are_refused() {
        for body in ["", "{", "[1, 2]", &"[".repeat(100_000)] {
            let (_, reply) =
                answered(false, vec![answer("200 OK", "", body)], |calls| calls.get::<Said>("/", Duration::ZERO));
            assert!(matches!(reply, Err(Error::PeerMisbehaved(_))), "{body:.20}");
        }
        // A redirection elsewhere would take the token along.
        let away = answer("302 Found", "Location: https://example.org/\r\n", "");
        let (asked, reply) = answered(false, vec![away], |calls| calls.program("/"));
        assert!(matches!(reply, Err(Error::PeerMisbehaved(_))));
        assert_eq!(asked.len(), 1);
    }

    #[test]
    fn answers_that_are_too_long_are_refused() {
        type Ask = fn(&Calls) -> Result<(), Error>;
        let program: Ask = |calls| calls.program("/").map(drop);
        let got: Ask = |calls| calls.get::<Said>("/", Duration::ZERO).map(drop);
        for (ask, most) in [(program, MAX_BYTES as u64), (got, MOST_JSON)] {
            for more in [0, 1] {
                let body = format!(r#"{{"error": "", "more": [{}1]}}"#, "1,".repeat(most as usize / 2));
                let body = &body[..(most + more) as usize];
                let (_, reply) = answered(false, vec![answer("200 OK", "", body)], ask);
                let is_too_long = matches!(&reply, Err(Error::PeerMisbehaved(text)) if text.contains("more than"));
                assert_eq!(is_too_long, more == 1, "{reply:?}");
            }
        }
    }
}
