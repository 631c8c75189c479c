//! Locks of latchd, with nothing but the standard library.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! # fn work(_: i64) {}
//! # fn main() -> latchd::Result<()> {
//! let client = latchd::Client::new("redis://localhost:5625")?; // one for the process
//! let guard = client.lock("job").wait(Duration::from_secs(10)).acquire()?;
//! work(guard.token()); // until guard.is_lost()
//! guard.release()?; // or drop it
//! # Ok(())
//! # }
//! ```
//!
//! Each wait has a connection of its own. All holds of a [`Client`] are renewed over one, which also
//! hears at once what latchd learns of those that last. Every request has an ID and is repeated, through
//! the next address if need be, until it is answered. How long a hold may be relied on is counted from
//! before its last renewal was sent, on a clock that runs during suspend (on 64-bit Linux).
//!
//! A hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of its
//! lease, or for [`Lock::grace`].
#![warn(missing_docs)]

mod clock;
mod keeper;
mod wire;

use keeper::{Hold, Log, Shared, Terms, NEVER};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use wire::{command, Address, Command, Value};

const LONGEST_ASK: Duration = Duration::from_secs(10); // a wait is made of LOCKs that are this long
const LEAST_TIMEOUT: Duration = Duration::from_millis(1); // for a socket zero is no timeout at all
const MOST_TIMEOUT: Duration = Duration::from_secs(86_400);
const FIRST_PAUSE: Duration = Duration::from_millis(50); // between attempts, growing
const LAST_PAUSE: Duration = Duration::from_secs(1);

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Somebody else has the lock, and the wait is over.
    Timeout,
    /// The lock was lost before it was released; somebody else may have had it since.
    Lost,
    /// The program gave up by [`Stop`].
    Stopped,
    /// No address of latchd answers.
    Unreachable,
    /// latchd's Redis cannot be reached, or refuses to grant.
    Backend,
    /// Owners would wait for each other.
    Deadlock,
    /// A limit of latchd's configuration is reached.
    Limit,
    /// The user may not do that, or did not log in.
    NoPermission,
    /// The name belongs to other data, or to a lock of the other class.
    WrongType,
    /// There is no such latch: it was never set, or was deleted, evicted or lost.
    Gone,
    /// The address is a plain Redis.
    NotLatchd,
    /// latchd is about to end, and another connection finds the next one.
    #[doc(hidden)]
    GoAway,
    /// Anything else; the text says it.
    Other,
}

/// What latchd answered, or why it did not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    code: String,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, text: &str) -> Error {
        let code = match kind {
            ErrorKind::Timeout => "TIMEOUT",
            ErrorKind::Lost => "NOTHELD",
            ErrorKind::Stopped => "STOPPED",
            ErrorKind::Unreachable => "UNREACHABLE",
            ErrorKind::Backend => "BACKEND",
            ErrorKind::Gone => "GONE",
            ErrorKind::NotLatchd => "NOTLATCHD",
            _ => "ERR",
        };
        Error { kind, code: code.into(), text: text.into() }
    }

    /// Of an error that latchd answered: its code, and a text.
    pub(crate) fn answered(said: &str) -> Error {
        let (code, text) = said.split_once(' ').unwrap_or((said, ""));
        let kind = match code {
            "ERR" if text.starts_with("gone") || text.starts_with("no such latch") => ErrorKind::Gone,
            "ERR" if text.starts_with("unknown command") => ErrorKind::NotLatchd,
            "NOTHELD" => ErrorKind::Lost,
            "BACKEND" | "NOREPLICAS" => ErrorKind::Backend,
            "DEADLOCK" => ErrorKind::Deadlock,
            "LIMIT" => ErrorKind::Limit,
            "NOPERM" | "NOAUTH" | "WRONGPASS" | "DENIED" => ErrorKind::NoPermission,
            "WRONGTYPE" => ErrorKind::WrongType,
            "GOAWAY" => ErrorKind::GoAway,
            _ => ErrorKind::Other,
        };
        match kind {
            ErrorKind::Gone => Error::new(kind, text),
            ErrorKind::NotLatchd => Error::new(kind, &format!("this is a Redis, not a latchd: {}", said)),
            _ => Error { kind, code: code.into(), text: text.into() },
        }
    }

    /// Why.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The first word of latchd's answer, as latchd-protocol(7) has it, or one like it.
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Whether the request may succeed if it is sent again.
    pub(crate) fn can_pass(&self) -> bool {
        matches!(self.kind, ErrorKind::Unreachable | ErrorKind::Backend | ErrorKind::GoAway)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "latchd: {} {}", self.code, self.text)
    }
}

impl std::error::Error for Error {}

/// Makes a [`Client`].
pub struct Builder {
    urls: Vec<String>,
    timeout: Duration,
    patience: Duration,
    log: Option<Log>,
}

impl Builder {
    /// One more address of latchds that share a Redis; the first that answers is used.
    pub fn address(mut self, url: impl Into<String>) -> Builder {
        self.urls.push(url.into());
        self
    }

    /// Without an answer for so long (5 s), a connection is given up.
    pub fn timeout(mut self, timeout: Duration) -> Builder {
        self.timeout = timeout;
        self
    }

    /// After so long (30 s) without latchd, or with its Redis out of reach, a wait fails.
    pub fn patience(mut self, patience: Duration) -> Builder {
        self.patience = patience;
        self
    }

    /// Is told, in a thread of its own, when a hold becomes uncertain or is lost.
    pub fn log(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        self.log = Some(Arc::new(log));
        self
    }

    /// Connects to nothing yet.
    pub fn build(self) -> Result<Client> {
        let addresses = self.urls.iter().map(|url| Address::parse(url)).collect::<Result<Vec<_>>>()?;
        if addresses.is_empty() {
            return Err(Error::new(ErrorKind::Other, "latchd's address is missing"));
        }
        let timeout = self.timeout.clamp(LEAST_TIMEOUT, MOST_TIMEOUT);
        let shared = Shared::start(addresses, timeout, self.patience, self.log)?;
        Ok(Client { handle: Arc::new(Handle { shared }) })
    }
}

/// latchd; one serves all threads of a process, and its clones are the same.
///
/// When the last clone is dropped, connections are closed as soon as no guard needs them.
#[derive(Clone)]
pub struct Client {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close();
    }
}

impl Client {
    /// `redis://[[user]:password@]host[:port]`, or `unix:///path`.
    pub fn new(url: impl Into<String>) -> Result<Client> {
        Client::builder().address(url).build()
    }

    /// For several addresses, and other times.
    pub fn builder() -> Builder {
        let (timeout, patience) = (Duration::from_secs(5), Duration::from_secs(30));
        Builder { urls: Vec::new(), timeout, patience, log: None }
    }

    /// A lock, to be [acquired](Lock::acquire).
    pub fn lock(&self, name: impl Into<String>) -> Lock {
        Lock { client: self.clone(), terms: Terms { names: vec![name.into()], ..Terms::default() }, stop: None }
    }

    /// Several names, which are taken all or none; a loss of one is a loss of all.
    pub fn lock_all<N: Into<String>>(&self, names: impl IntoIterator<Item = N>) -> Lock {
        let names = names.into_iter().map(Into::into).collect();
        Lock { client: self.clone(), terms: Terms { names, ..Terms::default() }, stop: None }
    }

    /// Whether anybody holds the name now. The error is [`ErrorKind::Backend`] if that cannot be known.
    pub fn is_locked(&self, name: &str) -> Result<bool> {
        let info = self.query(command!["LOCKINFO", name], Duration::ZERO, None)?;
        match field(&info, "state").as_str() {
            "free" => Ok(false),
            "withheld" => {
                let why = format!("latchd grants {} to nobody for now, and a hold of it may come back", name);
                Err(Error::new(ErrorKind::Backend, &why))
            }
            // Only the latchd that has it on loan knows whether somebody holds it.
            "lent" => Ok(!Leader::of(&self.query(command!["LEADER", name], Duration::ZERO, None)?)?.owner.is_empty()),
            _ => Ok(true),
        }
    }

    /// A latch, which others count down.
    pub fn latch(&self, name: impl Into<String>) -> Latch {
        Latch { client: self.clone(), name: name.into() }
    }

    /// Iterates over the leaders of a name: who holds it alone, now, and each time that it changes.
    ///
    /// A leader that is followed by another one at once may be skipped.
    pub fn follow(&self, name: impl Into<String>) -> Follower {
        Follower { client: self.clone(), name: name.into(), last: None, stop: None, failed: false }
    }

    fn query(&self, words: Command, patience: Duration, stop: Option<&Stop>) -> Result<Value> {
        self.handle.shared.query(&words, Duration::ZERO, patience, stop)
    }
}

fn field(map: &Value, key: &str) -> String {
    match map {
        Value::List(fields) => fields.chunks(2).find(|pair| pair[0].text() == key).map(|pair| pair[1].text()),
        _ => None,
    }
    .unwrap_or_default()
}

pub(crate) fn millis(time: Duration) -> u128 {
    (time.as_nanos() + 999_999) / 1_000_000
}

/// What is wanted of a name, or of several; [`Lock::acquire`] takes it.
///
/// Options are those of `LOCK`, as latchd-protocol(7) has them.
#[must_use = "a lock is taken by acquire()"]
pub struct Lock {
    client: Client,
    terms: Terms,
    stop: Option<Stop>,
}

impl Lock {
    fn option(mut self, word: &str, values: Command) -> Lock {
        self.terms.options.push(word.into());
        self.terms.options.extend(values);
        self
    }

    /// For how long to wait; without it the wait has no end.
    pub fn wait(mut self, wait: Duration) -> Lock {
        self.terms.wait = wait;
        self
    }

    /// Keeps the order of arrival across all latchds.
    pub fn fair(self) -> Lock {
        self.option("FAIR", command![])
    }

    /// Shares the lock with other readers.
    pub fn read(mut self) -> Lock {
        self.terms.kind = Some("READ");
        self
    }

    /// Excludes readers and writers.
    pub fn write(mut self) -> Lock {
        self.terms.kind = Some("WRITE");
        self
    }

    /// Takes so many permits of a semaphore; `of` is the limit with which it is made if there is none.
    pub fn permits(self, permits: u32, of: u32) -> Lock {
        self.option("PERMITS", command![permits, "OF", of])
    }

    /// Names an owner, who can enter again.
    pub fn owner(mut self, owner: &str) -> Lock {
        self.terms.has_owner = true;
        self.option("OWNER", command![owner])
    }

    /// What [`Client::follow`] tells others of the holder.
    pub fn data(self, data: impl Into<Vec<u8>>) -> Lock {
        self.option("DATA", vec![data.into()])
    }

    /// 0 to 9; puts the wait ahead of those with less that arrived recently.
    pub fn priority(self, priority: u8) -> Lock {
        self.option("PRIORITY", command![priority])
    }

    /// Is refused with [`ErrorKind::Limit`], instead of waiting, where so many wait already.
    pub fn queue(self, most: u32) -> Lock {
        self.option("QUEUE", command![most])
    }

    /// The hold ends by itself after that time: it is not renewed.
    pub fn lease(mut self, lease: Duration) -> Lock {
        self.terms.lease = Some(lease);
        self.option("LEASE", command![millis(lease)])
    }

    /// How long the hold outlives its last connection.
    pub fn grace(self, grace: Duration) -> Lock {
        self.option("GRACE", command![millis(grace)])
    }

    /// How long the place in the queue outlives the connection.
    pub fn keep(mut self, keep: Duration) -> Lock {
        self.terms.has_keep = true;
        self.option("KEEP", command![millis(keep)])
    }

    /// Frees the lock so soon after this process, or its machine, has vanished; with [`Lock::grace`] zero.
    pub fn heartbeat(mut self, heartbeat: Duration) -> Lock {
        self.terms.heartbeat = Some(heartbeat);
        self.option("HEARTBEAT", command![millis(heartbeat)])
    }

    /// Keeps others out for so long, though the holder is done, or gone: it is not waited for.
    pub fn at_least(mut self, time: Duration) -> Lock {
        self.terms.wait = Duration::ZERO;
        self.option("ATLEAST", command![millis(time)])
    }

    /// An option that a later latchd has.
    pub fn other(self, word: &str, value: impl ToString) -> Lock {
        self.option(word, command![value])
    }

    /// Is called once, in a thread of its own, when the lock is lost before it is released.
    pub fn on_lost(mut self, call: impl Fn() + Send + Sync + 'static) -> Lock {
        self.terms.on_lost = Some(Arc::new(call));
        self
    }

    /// Is called, in a thread of its own, when latchd, or a renewal that failed, makes the hold uncertain.
    pub fn on_uncertain(mut self, call: impl Fn() + Send + Sync + 'static) -> Lock {
        self.terms.on_uncertain = Some(Arc::new(call));
        self
    }

    /// Ends the wait when the program gives up.
    pub fn stop(mut self, stop: &Stop) -> Lock {
        self.stop = Some(stop.clone());
        self
    }

    /// Waits for the lock, which is held until the guard is released or dropped. The error is
    /// [`ErrorKind::Timeout`] if somebody else has it after the wait.
    pub fn acquire(self) -> Result<Guard> {
        if self.terms.names.is_empty() {
            return Err(Error::new(ErrorKind::Other, "a lock has a name"));
        }
        let shared = self.client.handle.shared.clone();
        let hold = shared.acquire(Arc::new(self.terms), self.stop.as_ref())?;
        Ok(Guard { shared, hold: Some(hold) })
    }
}

/// A hold; it ends with [`Guard::release`], or when it is dropped.
#[must_use = "a guard that is dropped releases its lock"]
pub struct Guard {
    shared: Arc<Shared>,
    hold: Option<Arc<Hold>>,
}

impl Guard {
    fn hold(&self) -> &Hold {
        self.hold.as_ref().expect("only release() and drop() take it")
    }

    /// The fencing token, of the first of several names.
    pub fn token(&self) -> i64 {
        self.hold().tokens[0]
    }

    /// The fencing tokens, in the order of the names.
    pub fn tokens(&self) -> &[i64] {
        &self.hold().tokens
    }

    /// Whether somebody else may have the lock, by the clock of this moment.
    pub fn is_lost(&self) -> bool {
        self.shared.is_lost(self.hold())
    }

    /// The last renewal failed, and the lease is not over yet.
    pub fn is_uncertain(&self) -> bool {
        !self.is_lost() && self.shared.is_uncertain(self.hold())
    }

    /// Waits until the lock is lost. False: it is not, after so long.
    pub fn wait_lost(&self, timeout: Duration) -> bool {
        self.shared.wait_lost(self.hold(), timeout)
    }

    /// The error is [`ErrorKind::Lost`] if the lock was lost before.
    ///
    /// It does not wait for a latchd that is out of reach for longer than the timeout, but goes on in
    /// the background.
    pub fn release(mut self) -> Result<()> {
        let hold = self.hold.take().expect("it is taken here only");
        self.shared.release(&hold)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(hold) = self.hold.take() {
            let _ = self.shared.release(&hold); // nobody is left to be told
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Guard").field("tokens", &self.tokens()).field("is_lost", &self.is_lost()).finish()
    }
}

/// Ends waits that it was given to. Clones are the same.
#[derive(Clone, Default)]
pub struct Stop(keeper::StopState);

impl Stop {
    /// Nothing is stopped yet.
    pub fn new() -> Stop {
        Stop::default()
    }

    /// From now on.
    pub fn stop(&self) {
        self.0.stop();
    }

    /// Whether it was.
    pub fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// A latch: it is set to a number, counted down, and opens at 0.
pub struct Latch {
    client: Client,
    name: String,
}

impl Latch {
    fn ask(&self, words: Command) -> Result<i64> {
        self.client.query(words, self.client.handle.shared.patience, None)?.int()
    }

    /// False: one is set already. An ID can be repeated, and has the same answer; `None` is a new one.
    pub fn set(&self, count: u64, id: Option<&str>) -> Result<bool> {
        let id = id.map_or_else(keeper::new_request, str::to_string);
        Ok(self.ask(command!["LATCH", "SET", self.name, count, "ID", id])? == 1)
    }

    /// What is left. An ID, of 16 to 64 characters, counts once, however often it is repeated; with
    /// `None`, each call counts.
    pub fn count(&self, id: Option<&str>) -> Result<i64> {
        let id = id.map_or_else(keeper::new_request, str::to_string);
        self.ask(command!["LATCH", "COUNT", self.name, "ID", id])
    }

    /// True: it is open. False: the time is over. The error is [`ErrorKind::Gone`] if it was deleted or lost.
    pub fn wait(&self, timeout: Duration) -> Result<bool> {
        let shared = &self.client.handle.shared;
        let end = clock::now().saturating_add(timeout);
        loop {
            let ask = end.saturating_sub(clock::now()).min(LONGEST_ASK);
            let words = command!["LATCH", "AWAIT", self.name, "WAIT", millis(ask)];
            match shared.query(&words, ask, shared.patience, None)? {
                Value::Nil if clock::now() < end => continue,
                answer => return Ok(!matches!(answer, Value::Nil)),
            }
        }
    }

    /// False: there was none.
    pub fn delete(&self) -> Result<bool> {
        Ok(self.ask(command!["LATCH", "DELETE", self.name])? == 1)
    }
}

/// Who holds a name alone. Nobody: 0 and empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leader {
    /// The fencing token.
    pub token: i64,
    /// As latchd names it.
    pub owner: String,
    /// Of the lock, see [`Lock::data`].
    pub data: Vec<u8>,
}

impl Leader {
    fn of(answer: &Value) -> Result<Leader> {
        match answer {
            Value::List(parts) if parts.len() == 3 => Ok(Leader {
                token: parts[0].int()?,
                owner: parts[1].text(),
                data: if let Value::Text(data) = &parts[2] { data.clone() } else { Vec::new() },
            }),
            _ => Err(Error::new(ErrorKind::Other, "LEADER was answered otherwise")),
        }
    }

    /// The data as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.data).into_owned()
    }
}

/// The leaders of a name, one after the other, through restarts and other addresses; ends with an error
/// that does not pass, or with its [`Stop`].
pub struct Follower {
    client: Client,
    name: String,
    last: Option<Leader>,
    stop: Option<Stop>,
    failed: bool,
}

impl Follower {
    /// Ends the iteration when the program gives up.
    pub fn stop(mut self, stop: &Stop) -> Follower {
        self.stop = Some(stop.clone());
        self
    }

    fn ask(&self) -> Result<Leader> {
        let (mut words, mut ask) = (command!["LEADER", self.name], Duration::ZERO);
        if let Some(last) = &self.last {
            ask = LONGEST_ASK;
            words.extend(command!["AFTER", last.token, "WAIT", millis(ask)]);
        }
        Leader::of(&self.client.handle.shared.query(&words, ask, NEVER, self.stop.as_ref())?)
    }
}

impl Iterator for Follower {
    type Item = Result<Leader>;

    fn next(&mut self) -> Option<Result<Leader>> {
        while !self.failed {
            match self.ask() {
                Ok(leader) if self.last.as_ref() == Some(&leader) => continue,
                Ok(leader) => {
                    self.last = Some(leader.clone());
                    return Some(Ok(leader));
                }
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error)).filter(|_| !self.stop.as_ref().map_or(false, Stop::is_stopped));
                }
            }
        }
        None
    }
}
