//! A TLS session over a socket that never blocks, as a transport.

use std::io::{self, BufRead, Read, Write};
use std::mem;
use std::ops::Range;
use std::time::Duration;

use rustls::Connection;

use super::config::PROTOCOL;
use super::problem::{ANOTHER_PROTOCOL, translate};
use super::subject;
use crate::deadline::Deadline;
use crate::error::{Error, Io, PeerMisbehaved};
use crate::inbound::Inbound;
use crate::link::Link;
use crate::peer::Peer;
use crate::shape::Relay;
use crate::socket::{Socket, Stopper};
use crate::soon::Soon;
use crate::transport::Transport;

/// Bytes read from the socket at once: sixteen full records.
const READ_BYTES: usize = 16 * (16 * 1024 + 22);

/// Plaintext encrypted before it is written to the socket.
const WRITE_BYTES: usize = 256 * 1024;

/// What the server says in the session once it has accepted the client. In TLS 1.3 a client is done before the server
/// has seen its certificate; without this a refusal would show only at the client's first receive.
const ACCEPTED: u8 = 1;

/// An established session, or one being established.
pub(super) struct Session {
    /// Before the relays: they are told that this side leaves by its end.
    socket: Socket,
    /// What stands between `socket` and the network.
    relays: Vec<Relay>,
    connection: Connection,
    /// Bytes from the socket; `fresh` of them are not yet given to `connection`.
    raw: Vec<u8>,
    fresh: Range<usize>,
    /// Plaintext that came while this side was sending.
    inbound: Inbound,
    soon: Soon,
    /// The peer will send nothing more.
    ended: bool,
    closed: bool,
    peer: Option<Peer>,
    rtt: Option<Duration>,
}

impl Session {
    /// Runs the handshake of `connection` over `socket` until both sides have accepted each other. `rtt`: what is known
    /// of the network.
    pub fn establish(
        socket: Socket,
        rtt: Option<Duration>,
        connection: impl Into<Connection>,
        deadline: &mut Deadline,
    ) -> Result<Self, Error> {
        let mut session = Self {
            socket,
            relays: Vec::new(),
            connection: connection.into(),
            raw: vec![0; READ_BYTES],
            fresh: 0..0,
            inbound: Inbound::default(),
            soon: Soon::default(),
            ended: false,
            closed: false,
            peer: None,
            rtt,
        };
        session.connection.set_buffer_limit(None);
        let shaken = session.shake_hands(deadline);
        if shaken.is_err() {
            // The alert that says why is already written; let it arrive.
            session.end();
        }
        shaken.map(|()| session)
    }

    fn shake_hands(&mut self, deadline: &mut Deadline) -> Result<(), Error> {
        loop {
            self.push(deadline)?;
            if !self.connection.is_handshaking() {
                break;
            }
            self.pull(deadline)?;
        }
        if self.connection.alpn_protocol() != Some(PROTOCOL) {
            let detail = "no agreement on the application protocol".to_owned();
            return Err(PeerMisbehaved::Tls { problem: ANOTHER_PROTOCOL, detail }.into());
        }
        let peer = self.connection.peer_certificates().and_then(subject::peer);
        self.peer = Some(peer.ok_or_else(|| translate(rustls::Error::NoCertificatesPresented))?);
        match self.connection {
            Connection::Server(_) => self.write(&[ACCEPTED], deadline),
            Connection::Client(_) => {
                let mut answer = [0];
                self.read(&mut answer, deadline)?;
                if answer == [ACCEPTED] {
                    return Ok(());
                }
                let detail = format!("the server greets with {}, not {ACCEPTED}", answer[0]);
                Err(PeerMisbehaved::Tls { problem: ANOTHER_PROTOCOL, detail }.into())
            }
        }
    }

    /// Writes all encrypted bytes to the socket, taking in what comes meanwhile.
    fn push(&mut self, deadline: &mut Deadline) -> Result<(), Error> {
        while self.connection.wants_write() {
            let Self { socket, connection, .. } = self;
            if let Some(count) = socket.write(|mut out| connection.write_tls(&mut out))? {
                deadline.moved(count);
                continue;
            }
            if self.socket.wait(!self.ended, true, deadline)? {
                self.keep_all()?;
                self.fill_raw()?;
                self.keep_all()?;
            }
        }
        Ok(())
    }

    /// Waits for bytes from the socket and decrypts what can be.
    fn pull(&mut self, deadline: &mut Deadline) -> Result<(), Error> {
        while self.fresh.is_empty() {
            if self.ended {
                return Err(Io::Disconnected.into());
            }
            if self.fill_raw()? {
                continue;
            }
            let mut soon = mem::take(&mut self.soon);
            let came = soon.comes(deadline, || self.fill_raw());
            self.soon = soon;
            if !came? {
                self.socket.wait(true, false, deadline)?;
            }
        }
        self.decrypt_some()
    }

    /// Reads from the socket once; false if nothing is there yet. All of `raw` must have been used.
    fn fill_raw(&mut self) -> Result<bool, Error> {
        match self.socket.read(&mut self.raw)? {
            Some(count) => {
                self.fresh = 0..count;
                self.ended = count == 0;
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Gives the connection a part of the fresh bytes. All plaintext must have been taken out of it before.
    fn decrypt_some(&mut self) -> Result<(), Error> {
        let mut bytes = &self.raw[self.fresh.clone()];
        let taken = self.connection.read_tls(&mut bytes).map_err(|error| {
            Error::from(PeerMisbehaved::Tls { problem: "a TLS record cannot be taken", detail: error.to_string() })
        })?;
        self.fresh.start += taken;
        match self.connection.process_new_packets() {
            Ok(state) => {
                self.ended |= state.peer_has_closed();
                Ok(())
            }
            Err(error) => {
                // The connection has queued an alert; the peer may be gone.
                let Self { socket, connection, .. } = self;
                let _ = socket.write(|mut out| connection.write_tls(&mut out));
                Err(translate(error))
            }
        }
    }

    /// Decrypts all fresh bytes and keeps the plaintext for later reads.
    fn keep_all(&mut self) -> Result<(), Error> {
        loop {
            self.keep_plaintext()?;
            if self.fresh.is_empty() {
                return Ok(());
            }
            self.decrypt_some()?;
        }
    }

    fn keep_plaintext(&mut self) -> Result<(), Error> {
        let mut reader = self.connection.reader();
        // "Nothing yet" and "nothing ever again" are told apart by `ended`.
        while let Ok(plaintext @ [_, ..]) = reader.fill_buf() {
            let count = plaintext.len();
            self.inbound.push(plaintext)?;
            reader.consume(count);
        }
        Ok(())
    }

    /// Says good-bye and ends the link.
    fn end(&mut self) {
        self.closed = true;
        self.connection.send_close_notify();
        let Self { socket, connection, .. } = self;
        // The peer may be gone, or take nothing more: nothing is owed to it then.
        let _ = socket.write(|mut out| connection.write_tls(&mut out));
        socket.close();
    }
}

impl Transport for Session {
    fn write(&mut self, bytes: &[u8], deadline: &mut Deadline) -> Result<(), Error> {
        for part in bytes.chunks(WRITE_BYTES) {
            self.connection.writer().write_all(part).map_err(|error| crate::socket::failure("encrypting", &error))?;
            self.push(deadline)?;
        }
        Ok(())
    }

    fn flush(&mut self, deadline: &mut Deadline) -> Result<(), Error> {
        self.push(deadline)
    }

    fn read(&mut self, out: &mut [u8], deadline: &mut Deadline) -> Result<(), Error> {
        let mut filled = self.inbound.pop(out);
        while filled < out.len() {
            match self.connection.reader().read(&mut out[filled..]) {
                Ok(count @ 1..) => {
                    filled += count;
                    deadline.moved(count);
                }
                Ok(0) => return Err(Io::Disconnected.into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.pull(deadline)?,
                Err(error) => return Err(crate::socket::failure("decrypting", &error)),
            }
        }
        Ok(())
    }

    fn close(&mut self) {
        if !self.closed {
            self.end();
        }
    }

    fn shape(&mut self, link: Link) -> Result<(), Error> {
        let (near, inner) = Socket::pair()?;
        let network = mem::replace(&mut self.socket, near);
        self.relays.push(Relay::start(inner, network, link)?);
        Ok(())
    }

    fn set_unread_limit(&mut self, bytes: usize) {
        self.inbound.set_limit(bytes);
    }

    fn is_quiet(&self) -> bool {
        !self.ended && self.fresh.is_empty() && self.socket.is_quiet()
    }

    fn stopper(&self) -> Result<Option<Stopper>, Error> {
        self.socket.stopper().map(Some)
    }

    fn peer(&self) -> Option<&Peer> {
        self.peer.as_ref()
    }

    fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.closed {
            self.connection.send_close_notify();
            let Self { socket, connection, .. } = self;
            // Best effort, without waiting: every message was framed, so a missing good-bye cannot cut one unnoticed.
            let _ = socket.write(|mut out| connection.write_tls(&mut out));
            // A stopper may hold the same socket open: without this neither the peer nor a relay would see that it ended.
            socket.end_sending();
            socket.end_receiving();
        }
    }
}
