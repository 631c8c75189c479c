//! Addresses, sockets, and the Redis protocol.
use crate::{Error, ErrorKind, Result, LEAST_TIMEOUT};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const PORT: u16 = 5625;

/// A command: its words.
pub(crate) type Command = Vec<Vec<u8>>;

/// Makes a [`Command`] of anything that has a text.
macro_rules! command {
    ($($word:expr),* $(,)?) => { vec![$($word.to_string().into_bytes()),*] };
}
pub(crate) use command;

#[derive(Debug)]
pub(crate) enum Value {
    Nil,
    Int(i64),
    Text(Vec<u8>),
    List(Vec<Value>),
    Push(Vec<Value>),
    Error(Error),
}

impl Value {
    pub(crate) fn text(&self) -> String {
        match self {
            Value::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            _ => String::new(),
        }
    }

    pub(crate) fn int(&self) -> Result<i64> {
        match self {
            Value::Int(number) => Ok(*number),
            Value::Error(error) => Err(error.clone()),
            _ => Err(Error::new(ErrorKind::Other, "a number was expected as the answer")),
        }
    }
}

enum Place {
    Tcp(String, u16),
    #[cfg(unix)]
    Unix(String),
}

/// `redis://[[user]:password@]host[:port]` or `unix://[[user]:password@]/path`.
pub(crate) struct Address {
    place: Place,
    login: Option<(String, String)>,
}

impl Address {
    pub(crate) fn parse(url: &str) -> Result<Address> {
        let wrong = |why: &str| Error::new(ErrorKind::Other, &format!("{}: {}", strip_login(url), why));
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("an address begins with redis://"))?;
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) if !rest.starts_with('/') => {
                let (user, password) = login.split_once(':').unwrap_or(("", login));
                let user = if user.is_empty() { "default" } else { user };
                (Some((decode(user), decode(password))), place)
            }
            _ => (None, rest), // of the path of a socket an @ is a part
        };
        let place = match scheme {
            "redis" => {
                let authority = place.split(&['/', '?'][..]).next().unwrap_or("");
                let (host, port) = match authority.rsplit_once(':') {
                    Some((host, port)) if !port.contains(']') => {
                        (host, port.parse().map_err(|_| wrong("the port is no number"))?)
                    }
                    _ => (authority, PORT),
                };
                let host = host.trim_start_matches('[').trim_end_matches(']');
                Place::Tcp(if host.is_empty() { "localhost" } else { host }.to_string(), port)
            }
            #[cfg(unix)]
            "unix" => Place::Unix(place.to_string()),
            "rediss" => return Err(wrong("this crate has no TLS")),
            _ => return Err(wrong("an address begins with redis:// or unix://")),
        };
        Ok(Address { place, login })
    }

    /// The command that begins a connection; its answer shows that latchd itself is there.
    fn greeting(&self, with_pushes: bool) -> Command {
        match (&self.login, with_pushes) {
            (None, false) => command!["PING"],
            (None, true) => command!["HELLO", 3],
            (Some((user, password)), false) => command!["AUTH", user, password],
            (Some((user, password)), true) => command!["HELLO", 3, "AUTH", user, password],
        }
    }
}

fn strip_login(url: &str) -> &str {
    url.rsplit('@').next().unwrap_or("")
}

/// Percent-encoding.
fn decode(text: &str) -> String {
    let (bytes, mut decoded, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (bytes[at], code) {
            (b'%', Some(byte)) => {
                decoded.push(byte);
                at += 3;
            }
            (byte, _) => {
                decoded.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(UnixStream),
}

macro_rules! each {
    ($self:expr, $socket:ident => $call:expr) => {
        match $self {
            Socket::Tcp($socket) => $call,
            #[cfg(unix)]
            Socket::Unix($socket) => $call,
        }
    };
}

impl Socket {
    fn connect(place: &Place, within: Duration) -> io::Result<Socket> {
        let (host, port) = match place {
            #[cfg(unix)]
            Place::Unix(path) => return UnixStream::connect(path).map(Socket::Unix),
            Place::Tcp(host, port) => (host.as_str(), *port),
        };
        let (end, mut trouble) = (Instant::now() + within, None);
        for address in (host, port).to_socket_addrs()? {
            let left = end.saturating_duration_since(Instant::now()).max(LEAST_TIMEOUT);
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    return Ok(Socket::Tcp(socket));
                }
                Err(error) => trouble = Some(error),
            }
        }
        Err(trouble.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the host has no address")))
    }

    pub(crate) fn try_clone(&self) -> io::Result<Socket> {
        Ok(match self {
            Socket::Tcp(socket) => Socket::Tcp(socket.try_clone()?),
            #[cfg(unix)]
            Socket::Unix(socket) => Socket::Unix(socket.try_clone()?),
        })
    }

    pub(crate) fn shut(&self, how: Shutdown) {
        let _ = each!(self, socket => socket.shutdown(how)); // it may have ended by itself
    }

    pub(crate) fn send(&mut self, commands: &[Command]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for words in commands {
            bytes.extend(format!("*{}\r\n", words.len()).bytes());
            for word in words {
                bytes.extend(format!("${}\r\n", word.len()).bytes());
                bytes.extend(word);
                bytes.extend(b"\r\n");
            }
        }
        each!(self, socket => socket.write_all(&bytes))
    }

    fn set_read_timeout(&self, within: Option<Duration>) -> io::Result<()> {
        each!(self, socket => socket.set_read_timeout(within))
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        each!(self, socket => socket.read(buffer))
    }
}

/// A connection that is used by one thread at a time.
pub(crate) struct Connection {
    stream: BufReader<Socket>,
    pub(crate) at: usize, // of the addresses
    pub(crate) was_idle: bool,
}

fn unreachable(error: io::Error) -> Error {
    let text = match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_string(),
        io::ErrorKind::UnexpectedEof => "latchd closed the connection".to_string(),
        _ => error.to_string(),
    };
    Error::new(ErrorKind::Unreachable, &text)
}

impl Connection {
    pub(crate) fn open(address: &Address, at: usize, with_pushes: bool, within: Duration) -> Result<Connection> {
        let socket = Socket::connect(&address.place, within).map_err(unreachable)?;
        each!(&socket, socket => socket.set_write_timeout(Some(within))).map_err(unreachable)?;
        let mut connection = Connection { stream: BufReader::new(socket), at, was_idle: false };
        match connection.ask(&[address.greeting(with_pushes)], within)?.pop() {
            Some(Value::Error(error)) => Err(error),
            _ => Ok(connection),
        }
    }

    pub(crate) fn socket(&self) -> &Socket {
        self.stream.get_ref()
    }

    pub(crate) fn send(&mut self, commands: &[Command]) -> io::Result<()> {
        self.stream.get_mut().send(commands)
    }

    /// The answers to several commands, which are sent in one go.
    pub(crate) fn ask(&mut self, commands: &[Command], within: Duration) -> Result<Vec<Value>> {
        self.send(commands).map_err(unreachable)?;
        let end = Instant::now() + within;
        commands
            .iter()
            .map(|_| {
                let left = end.saturating_duration_since(Instant::now()).max(LEAST_TIMEOUT);
                self.receive(Some(left))
            })
            .collect()
    }

    pub(crate) fn receive(&mut self, within: Option<Duration>) -> Result<Value> {
        self.socket().set_read_timeout(within).and_then(|()| self.read()).map_err(unreachable)
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") || line.len() < 3 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        Ok(String::from_utf8_lossy(&line).into_owned())
    }

    fn read(&mut self) -> io::Result<Value> {
        let line = self.line()?;
        let (kind, rest) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        let number =
            || rest.parse::<i64>().map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not latchd's protocol"));
        Ok(match kind {
            "-" => Value::Error(Error::answered(rest)),
            ":" => Value::Int(number()?),
            "_" => Value::Nil,
            "$" | "*" | ">" | "%" if number()? < 0 => Value::Nil,
            "$" => Value::Text(self.bytes(number()? as u64)?),
            "*" => Value::List(self.list(number()?)?),
            ">" => Value::Push(self.list(number()?)?),
            "%" => Value::List(self.list(2 * number()?)?),
            "+" | "," | "#" | "(" => Value::Text(rest.into()),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidData, "not latchd's protocol")),
        })
    }

    fn bytes(&mut self, length: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.stream.by_ref().take(length + 2).read_to_end(&mut bytes)?;
        if (bytes.len() as u64) < length + 2 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(length as usize);
        Ok(bytes)
    }

    fn list(&mut self, length: i64) -> io::Result<Vec<Value>> {
        (0..length).map(|_| self.read()).collect()
    }

    /// Whether one that lay idle is still good: nothing came, and least of all its end.
    pub(crate) fn is_quiet(&mut self) -> bool {
        if !self.stream.buffer().is_empty() {
            return false;
        }
        let socket = self.stream.get_mut();
        let quiet = each!(&*socket, socket => socket.set_nonblocking(true)).is_ok()
            && matches!(socket.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock);
        quiet && each!(&*socket, socket => socket.set_nonblocking(false)).is_ok()
    }
}
