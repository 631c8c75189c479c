//! What all locks of a client share: taking, keeping and giving back.
//!
//! One thread, the keeper, renews what is due and says what is lost. Another one connects the link, over
//! which holds are renewed, and reads what comes over it: answers in the order of the questions, and
//! notices that nobody asked for. All that changes is guarded by one mutex.
use crate::wire::{command, Address, Command, Connection, Socket, Value};
use crate::{clock, millis, Error, ErrorKind, Result, Stop, FIRST_PAUSE, LAST_PAUSE, LONGEST_ASK};
use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher, Hasher};
use std::net::Shutdown;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

pub(crate) const NEVER: Duration = Duration::MAX;
const AT_ONCE: Duration = Duration::ZERO;
const MOST_IDLE: usize = 8; // connections that are kept for the next waits
const LEAST_LEASE: Duration = Duration::from_millis(100); // what latchd takes
const LEAST_PATIENCE: Duration = Duration::from_secs(1); // for a renewal, while there is time
const HEARD_AFTER: Duration = Duration::from_millis(50); // a shorter hold is not listened for

type Call = Arc<dyn Fn() + Send + Sync>;
pub(crate) type Log = Arc<dyn Fn(&str) + Send + Sync>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>, until: Duration) -> MutexGuard<'a, T> {
    if until == NEVER {
        return changed.wait(guard).unwrap_or_else(PoisonError::into_inner);
    }
    let left = until.saturating_sub(clock::now());
    changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
}

/// The error is one that passes: there are too many threads.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.into()).spawn(work);
    thread.map(drop).map_err(|error| Error::new(ErrorKind::Unreachable, &error.to_string()))
}

/// 32 characters that nobody else has: hashes, with keys from the system, of what differs between calls.
pub(crate) fn new_request() -> String {
    let part = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.write_u128(clock::now().as_nanos());
        hasher.finish()
    };
    format!("{:016x}{:016x}", part(), part())
}

/// What is wanted.
pub(crate) struct Terms {
    pub(crate) names: Vec<String>,
    pub(crate) options: Command,
    pub(crate) kind: Option<&'static str>,
    pub(crate) wait: Duration,
    pub(crate) lease: Option<Duration>,
    pub(crate) heartbeat: Option<Duration>,
    pub(crate) has_owner: bool,
    pub(crate) has_keep: bool,
    pub(crate) on_lost: Option<Call>,
    pub(crate) on_uncertain: Option<Call>,
}

impl Default for Terms {
    fn default() -> Terms {
        Terms {
            names: Vec::new(),
            options: Vec::new(),
            kind: None,
            wait: NEVER,
            lease: None,
            heartbeat: None,
            has_owner: false,
            has_keep: false,
            on_lost: None,
            on_uncertain: None,
        }
    }
}

impl Terms {
    fn name(&self) -> String {
        self.names.join(" and ")
    }

    /// The LOCK, or MLOCK, that waits for so long at most.
    fn asks(&self, request: &str, wait: Duration) -> Command {
        let mut words = match self.names.len() {
            1 => command!["LOCK"],
            several => command!["MLOCK", several],
        };
        words.extend(self.names.iter().map(|name| name.clone().into_bytes()));
        words.extend(self.kind.map(|kind| kind.into()));
        words.extend(self.options.iter().cloned());
        if wait < NEVER {
            words.extend(command!["WAIT", millis(wait)]);
        }
        if wait.is_zero() && !self.has_keep {
            words.extend(command!["KEEP", 0]);
        }
        words.extend(command!["ID", request]);
        words
    }

    /// One command for each name.
    fn commands(&self, word: &str, request: &str, more: &[Vec<u8>]) -> Vec<Command> {
        let command = |name: &String| {
            let mut words = command![word, name];
            words.extend(self.kind.map(|kind| kind.into()));
            words.extend(command!["ID", request]);
            words.extend_from_slice(more);
            words
        };
        self.names.iter().map(command).collect()
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    Granted, // and not renewed for the first time
    Held,
    Lost,
}

/// One request for one lock, or several, and what it was granted.
pub(crate) struct Hold {
    terms: Arc<Terms>,
    request: String,
    pub(crate) tokens: Vec<i64>,
    changed: Condvar, // of what is kept of it
}

/// What changes of a hold, until it is released. Times are those of this crate's clock.
struct Keeping {
    hold: Arc<Hold>,
    phase: Phase,
    uncertain: bool,
    noticed: bool, // latchd said something since the last renewal was sent
    since: Duration,
    until: Duration,
    due: Duration, // never, while a renewal is under way
    end: Duration, // of a lease that is not renewed
    sent: Duration,
    answers: usize, // that the renewal waits for
    least: i64,
    trouble: Option<Error>, // of the renewal
}

impl Keeping {
    fn begin(hold: Arc<Hold>) -> Keeping {
        Keeping {
            hold,
            phase: Phase::Granted,
            uncertain: false,
            noticed: false,
            since: clock::now(),
            until: NEVER,
            due: AT_ONCE,
            end: NEVER,
            sent: AT_ONCE,
            answers: 0,
            least: 0,
            trouble: None,
        }
    }

    /// The commands of a renewal, which is under way from now on.
    fn renewal(&mut self, now: Duration) -> Vec<Command> {
        let terms = &self.hold.terms;
        let mut more = command![];
        if let Some(lease) = terms.lease {
            if self.phase == Phase::Granted {
                self.end = now + lease;
            }
            // A hold with a lease is only confirmed, for what is left of it.
            more = command!["LEASE", self.end.saturating_sub(now).max(LEAST_LEASE).as_millis()];
        }
        self.noticed = false;
        self.due = NEVER;
        self.sent = now;
        self.answers = terms.names.len();
        self.least = i64::MAX;
        self.trouble = None;
        terms.commands("RENEW", &self.hold.request, &more)
    }

    fn renewed(&mut self) {
        self.until = self.sent + Duration::from_millis(self.least.max(0) as u64);
        if self.hold.terms.lease.is_some() {
            self.until = self.until.min(self.end);
        } else if let Some(heartbeat) = self.hold.terms.heartbeat {
            self.until = self.until.min(self.sent + heartbeat * 2 / 3); // over before latchd gives it on
        }
        self.due = if self.noticed { AT_ONCE } else { self.sent + self.until.saturating_sub(self.sent) / 3 };
        self.uncertain = false;
        self.phase = Phase::Held;
    }

    /// Something was said of the hold: the renewal tells whether it is so.
    fn notice(&mut self) {
        self.noticed = true;
        if self.answers == 0 {
            self.due = AT_ONCE;
        }
    }

    fn is_over(&self, now: Duration) -> bool {
        self.phase == Phase::Held && self.until <= now
    }
}

/// What an answer on the link is of, and until when it is waited for.
enum Expected {
    Renewal(Arc<Hold>, Duration),
    Listening(String, Duration),
}

/// The connection over which holds are renewed, and notices come.
struct Link {
    socket: Socket,
    at: usize,
    number: u64, // of all links
    expected: VecDeque<Expected>,
    heard: HashSet<String>, // names
    is_deaf: bool,          // the user may not listen
}

impl Link {
    fn deadline(&self) -> Duration {
        match self.expected.front() {
            Some(Expected::Renewal(_, end)) | Some(Expected::Listening(_, end)) => *end,
            None => NEVER,
        }
    }
}

struct State {
    at: usize, // of the addresses: the last one that answered
    idle: Vec<Connection>,
    holds: HashMap<String, Keeping>, // by request
    link: Option<Link>,
    links: u64, // so far
    is_connecting: bool,
    pause: Duration, // before the next attempt, growing
    retry_at: Duration,
    hear_at: Duration,         // when to look for names to listen for
    wake_at: Option<Duration>, // while the keeper sleeps
    is_closed: bool,
}

pub(crate) struct Shared {
    addresses: Vec<Address>,
    timeout: Duration,
    pub(crate) patience: Duration,
    log: Option<Log>,
    state: Mutex<State>,
    work: Condvar, // the keeper waits for it
}

impl Shared {
    pub(crate) fn start(
        addresses: Vec<Address>,
        timeout: Duration,
        patience: Duration,
        log: Option<Log>,
    ) -> Result<Arc<Shared>> {
        let state = State {
            at: 0,
            idle: Vec::new(),
            holds: HashMap::new(),
            link: None,
            links: 0,
            is_connecting: false,
            pause: FIRST_PAUSE,
            retry_at: AT_ONCE,
            hear_at: NEVER,
            wake_at: None,
            is_closed: false,
        };
        let shared = Shared { addresses, timeout, patience, log, state: Mutex::new(state), work: Condvar::new() };
        let shared = Arc::new(shared);
        let keeper = shared.clone();
        spawn("latchd keeper", move || keeper.keep())?;
        Ok(shared)
    }

    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.idle.clear();
        self.wake(&mut state, AT_ONCE);
    }

    /// Has the keeper look at that time, at the latest. While it is awake it looks anyway.
    fn wake(&self, state: &mut State, time: Duration) {
        if state.wake_at.map_or(false, |planned| time < planned) {
            state.wake_at = None;
            self.work.notify_one();
        }
    }

    // Connections

    /// Through the first address that answers, beginning with the last one that did.
    fn connect(&self, with_pushes: bool) -> Result<Connection> {
        let mut trouble = None;
        for _ in &self.addresses {
            let at = lock(&self.state).at;
            match Connection::open(&self.addresses[at], at, with_pushes, self.timeout) {
                Err(error) if matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::GoAway) => {
                    self.leave(at);
                    trouble = Some(error);
                }
                done => return done,
            }
        }
        Err(trouble.expect("there is an address"))
    }

    /// The next attempt begins with another address, if there is one.
    fn leave(&self, at: usize) {
        lock(&self.state).leave(at, self.addresses.len());
    }

    fn take_connection(&self) -> Result<Connection> {
        loop {
            let idle = lock(&self.state).idle.pop();
            match idle {
                Some(mut connection) => {
                    if connection.is_quiet() {
                        connection.was_idle = true;
                        return Ok(connection);
                    }
                }
                None => return self.connect(false),
            }
        }
    }

    fn give_back(&self, connection: Connection) {
        let mut state = lock(&self.state);
        if state.idle.len() < MOST_IDLE && state.at == connection.at && !state.is_closed {
            state.idle.push(connection);
        }
    }

    /// Sends commands in one go, over a connection of their own. An idle one that turns out to be broken
    /// is replaced. When it is stopped, `undo` is sent behind them.
    fn ask(&self, commands: &[Command], within: Duration, stop: Option<&Stop>, undo: &[Command]) -> Result<Vec<Value>> {
        let began = clock::now();
        loop {
            if stop.map_or(false, Stop::is_stopped) {
                return Err(gave_up());
            }
            let mut connection = self.take_connection()?;
            let waker = stop.and_then(|stop| Some((stop, connection.socket().try_clone().ok()?)));
            let waker = waker.map(|(stop, socket)| stop.0.call(move || socket.shut(Shutdown::Read)));
            let answers = connection.ask(commands, within);
            drop(waker);
            let is_stopped = stop.map_or(false, Stop::is_stopped);
            match answers {
                _ if is_stopped => {
                    let _ = connection.send(undo); // as it stands behind them, it undoes them
                    return Err(gave_up());
                }
                Ok(answers) => {
                    self.give_back(connection);
                    return Ok(answers);
                }
                Err(error) => {
                    self.leave(connection.at);
                    if !connection.was_idle || clock::now() - began >= LONGEST_ASK {
                        return Err(error);
                    }
                }
            }
        }
    }

    // Taking

    pub(crate) fn acquire(self: &Arc<Self>, terms: Arc<Terms>, stop: Option<&Stop>) -> Result<Arc<Hold>> {
        let (began, mut request) = (clock::now(), new_request());
        let (mut reached, mut pause, mut tries) = (began, FIRST_PAUSE, 0);
        loop {
            let asked = clock::now();
            let left = match terms.wait {
                NEVER => NEVER,
                wait => wait.saturating_sub(asked - began),
            };
            let granted = self.ask_for(&terms, &request, left, stop);
            let taken =
                granted.and_then(|tokens| tokens.map(|tokens| self.begin(&terms, &request, tokens, stop)).transpose());
            let now = clock::now();
            let is_over = now - began >= terms.wait;
            tries += 1;
            let error = match taken {
                Ok(Some(hold)) => return Ok(hold),
                Ok(None) if !is_over => {
                    reached = now;
                    pause = FIRST_PAUSE;
                    continue;
                }
                Ok(None) => Error::new(ErrorKind::Timeout, &format!("somebody else has {}", terms.name())),
                Err(error) => error,
            };
            let is_backend = error.kind() == ErrorKind::Backend;
            if error.kind() == ErrorKind::Lost && !is_over {
                // The request is over: freed by force, or lost on its way. Of several names the others are there.
                self.insist_behind(terms.commands("UNLOCK", &request, &[]), self.patience);
                request = new_request();
                continue;
            }
            if terms.has_owner && error.can_pass() && now - asked >= LONGEST_ASK && self.connect(false).is_ok() {
                // The LOCK of an owner waits for longer than its answer is waited for.
                reached = now;
                tries = 0;
            }
            if !error.can_pass()
                || now - reached > self.patience
                || is_over && (is_backend || tries > self.addresses.len())
            {
                if error.kind() != ErrorKind::Timeout || !left.is_zero() || terms.has_keep {
                    self.insist_behind(undo(&terms, &request), self.patience.max(terms.lease.unwrap_or(AT_ONCE)));
                }
                return Err(error);
            }
            pause = rest(pause, stop);
        }
    }

    /// Sends one LOCK.
    fn ask_for(&self, terms: &Terms, request: &str, left: Duration, stop: Option<&Stop>) -> Result<Option<Vec<i64>>> {
        let ask = left.min(LONGEST_ASK);
        // latchd looks for a deadlock where it knows how long an owner would wait in all.
        let wait = if terms.has_owner { left } else { ask };
        let answers = self.ask(&[terms.asks(request, wait)], ask + self.timeout, stop, &undo(terms, request))?;
        match &answers[0] {
            Value::Nil => Ok(None),
            Value::List(tokens) => tokens.iter().map(Value::int).collect::<Result<_>>().map(Some),
            token => Ok(Some(vec![token.int()?])),
        }
    }

    /// Attaches the hold to the link, and learns how long its lease is.
    fn begin(
        self: &Arc<Self>,
        terms: &Arc<Terms>,
        request: &str,
        tokens: Vec<i64>,
        stop: Option<&Stop>,
    ) -> Result<Arc<Hold>> {
        let hold = Arc::new(Hold { terms: terms.clone(), request: request.into(), tokens, changed: Condvar::new() });
        let (shared, stopped) = (self.clone(), hold.clone());
        let _waker = stop.map(|stop| {
            stop.0.call(move || {
                let _state = lock(&shared.state); // so that a thread that is about to wait does not miss it
                stopped.changed.notify_all();
            })
        });
        let mut state = lock(&self.state);
        state.holds.insert(request.into(), Keeping::begin(hold.clone()));
        state.hear_at = state.hear_at.min(clock::now() + HEARD_AFTER);
        self.wake(&mut state, AT_ONCE);
        loop {
            let keeping = state.holds.get_mut(request).expect("only a release takes it out");
            let trouble = match keeping.phase {
                Phase::Granted if stop.map_or(false, Stop::is_stopped) => Some(gave_up()),
                Phase::Granted if keeping.answers == 0 => keeping.trouble.take(),
                Phase::Granted => None,
                _ => return Ok(hold),
            };
            if let Some(error) = trouble {
                state.holds.remove(request);
                return Err(error);
            }
            state = wait(&hold.changed, state, NEVER);
        }
    }

    // Keeping

    /// Renews what is due, and says what is lost, until the client is closed and nothing is held.
    fn keep(self: Arc<Self>) {
        let mut state = lock(&self.state);
        loop {
            let now = clock::now();
            let over: Vec<_> =
                state.holds.values().filter(|k| k.is_over(now)).map(|k| k.hold.request.clone()).collect();
            over.iter().for_each(|request| self.lose(&mut state, request));
            if state.link.as_ref().map_or(false, |link| link.deadline() <= now) {
                self.cut(&mut state, &Error::new(ErrorKind::Unreachable, "no answer in time"));
            }
            if state.is_closed && state.holds.is_empty() {
                if let Some(link) = state.link.take() {
                    link.socket.shut(Shutdown::Both);
                }
                return;
            }
            let next = if state.link.is_some() {
                self.renew(&mut state, now);
                self.listen(&mut state, now);
                state.next()
            } else if state.is_connecting || state.holds.values().all(|k| k.phase == Phase::Lost) {
                NEVER
            } else if state.retry_at <= now {
                state.is_connecting = true;
                let shared = self.clone();
                match spawn("latchd link", move || shared.run_link()) {
                    Ok(()) => NEVER,
                    Err(error) => self.refuse_link(&mut state, &error),
                }
            } else {
                state.retry_at
            };
            let until = state.holds.values().filter(|k| k.phase == Phase::Held).map(|k| k.until).min();
            let next = next.min(until.unwrap_or(NEVER));
            state.wake_at = Some(next);
            state = wait(&self.work, state, next);
            state.wake_at = None;
        }
    }

    /// Sends the renewals that are due in one go.
    fn renew(&self, state: &mut State, now: Duration) {
        let (mut commands, mut expected) = (Vec::new(), Vec::new());
        for keeping in state.holds.values_mut().filter(|k| k.due <= now && k.phase != Phase::Lost) {
            let left = match keeping.phase {
                Phase::Held => (keeping.until.saturating_sub(now) / 3).max(LEAST_PATIENCE),
                _ => NEVER,
            };
            commands.extend(keeping.renewal(now));
            for _ in 0..keeping.answers {
                expected.push(Expected::Renewal(keeping.hold.clone(), now + left.min(self.timeout)));
            }
        }
        self.send(state, &commands, expected);
    }

    /// Listens for the names of the holds that last, and for no others. A notice that is missed shows at
    /// the next renewal.
    fn listen(&self, state: &mut State, now: Duration) {
        if state.hear_at > now || state.link.is_none() {
            return; // a renewal that cannot be sent cuts the link
        }
        state.hear_at = NEVER;
        let mut wanted = HashSet::new();
        for keeping in state.holds.values().filter(|k| k.phase != Phase::Lost) {
            if keeping.since + HEARD_AFTER <= now {
                wanted.extend(keeping.hold.terms.names.iter().cloned());
            } else {
                state.hear_at = state.hear_at.min(keeping.since + HEARD_AFTER);
            }
        }
        let link = state.link.as_mut().expect("it is there");
        let (mut commands, mut expected) = (Vec::new(), Vec::new());
        if link.is_deaf {
            return;
        }
        for (word, from, to) in [("SUBSCRIBE", &wanted, &link.heard), ("UNSUBSCRIBE", &link.heard, &wanted)] {
            for name in from.difference(to) {
                commands.push(command![word, format!("lost:{}", name), format!("uncertain:{}", name)]);
                expected.push(Expected::Listening(format!("{} {}", word.to_lowercase(), name), now + self.timeout));
            }
        }
        link.heard = wanted;
        self.send(state, &commands, expected);
    }

    fn send(&self, state: &mut State, commands: &[Command], expected: Vec<Expected>) {
        if let (Some(link), false) = (&mut state.link, commands.is_empty()) {
            link.expected.extend(expected);
            if let Err(error) = link.socket.send(commands) {
                self.cut(state, &Error::new(ErrorKind::Unreachable, &error.to_string()));
            }
        }
    }

    /// Gives the link up. All holds are attached to the next one at once.
    fn cut(&self, state: &mut State, error: &Error) {
        let link = match state.link.take() {
            Some(link) => link,
            None => return,
        };
        link.socket.shut(Shutdown::Both);
        state.leave(link.at, self.addresses.len());
        for keeping in state.holds.values_mut() {
            keeping.due = AT_ONCE;
            if keeping.answers > 0 {
                keeping.answers = 0;
                self.fail(keeping, error);
            }
        }
        self.wake(state, AT_ONCE);
    }

    /// Connects, and reads until the link breaks or another one is there.
    fn run_link(self: Arc<Self>) {
        let connected = self.connect(true).and_then(|connection| {
            let socket = connection.socket().try_clone();
            socket.map(|socket| (connection, socket)).map_err(|e| Error::new(ErrorKind::Unreachable, &e.to_string()))
        });
        let mut state = lock(&self.state);
        state.is_connecting = false;
        self.wake(&mut state, AT_ONCE);
        let (mut connection, socket) = match connected {
            Ok(connected) => connected,
            Err(error) => {
                self.refuse_link(&mut state, &error);
                return self.wake(&mut state, AT_ONCE);
            }
        };
        if state.is_closed && state.holds.is_empty() {
            return; // the keeper has ended
        }
        state.links += 1;
        state.hear_at = AT_ONCE;
        let number = state.links;
        let (expected, heard) = (VecDeque::new(), HashSet::new());
        state.link = Some(Link { socket, at: connection.at, number, expected, heard, is_deaf: false });
        for keeping in state.holds.values_mut() {
            keeping.due = AT_ONCE;
        }
        loop {
            drop(state);
            let said = connection.receive(None);
            state = lock(&self.state);
            if state.link.as_ref().map_or(true, |link| link.number != number) {
                return;
            }
            match said {
                Ok(Value::Push(words)) => self.hear(&mut state, &words),
                Ok(answer) => self.settle(&mut state, answer),
                Err(error) => return self.cut(&mut state, &error),
            }
        }
    }

    /// Gives the time of the next attempt.
    fn refuse_link(&self, state: &mut State, error: &Error) -> Duration {
        state.is_connecting = false;
        state.retry_at = clock::now() + state.grow_pause();
        for keeping in state.holds.values_mut() {
            self.fail(keeping, error);
        }
        state.retry_at
    }

    /// A notice ends with the token of a hold. That latchd begins to listen is one too: what is said from now
    /// on is heard, and what was said before was not.
    fn hear(&self, state: &mut State, words: &[Value]) {
        let words: Vec<_> = words.iter().map(Value::text).collect();
        let (what, channel) = match &words[..] {
            [what, channel, ..] => (what.as_str(), channel.as_str()),
            _ => return,
        };
        let (topic, name) = channel.split_once(':').unwrap_or((channel, ""));
        let token = words.get(2).and_then(|text| text.rsplit(' ').next()).and_then(|token| token.parse().ok());
        if what != "message" {
            if topic != "uncertain" {
                return; // the second of two
            }
            let done = format!("{} {}", what, name);
            let link = state.link.as_mut().expect("it said so");
            link.expected.retain(|e| !matches!(e, Expected::Listening(what, _) if *what == done));
        }
        for keeping in state.holds.values_mut().filter(|k| k.phase != Phase::Lost) {
            let names = keeping.hold.terms.names.iter().zip(&keeping.hold.tokens);
            let is_meant = names.clone().any(|(n, t)| n == name && (what == "subscribe" || Some(*t) == token));
            if is_meant && what != "unsubscribe" {
                keeping.notice();
            }
            if is_meant && what == "message" && topic == "uncertain" {
                self.doubt(keeping);
            }
        }
        self.wake(state, AT_ONCE);
    }

    /// Takes one answer.
    fn settle(&self, state: &mut State, answer: Value) {
        let link = state.link.as_mut().expect("it answered");
        let hold = match link.expected.pop_front() {
            Some(Expected::Renewal(hold, _)) => hold,
            Some(Expected::Listening(..)) => {
                link.is_deaf = true;
                return;
            }
            None => return self.cut(state, &Error::new(ErrorKind::Unreachable, "an answer to nothing")),
        };
        let keeping = match state.holds.get_mut(&hold.request) {
            Some(keeping) if keeping.phase != Phase::Lost && keeping.answers > 0 => keeping,
            _ => return, // released, or given up, while the renewal was under way
        };
        keeping.answers -= 1;
        match answer.int() {
            Ok(left) => keeping.least = keeping.least.min(left),
            // Of errors, a loss comes before others.
            Err(error) if keeping.trouble.is_none() || error.kind() == ErrorKind::Lost => keeping.trouble = Some(error),
            Err(_) => {}
        }
        if keeping.answers > 0 {
            return;
        }
        match keeping.trouble.take() {
            None => {
                keeping.renewed();
                state.pause = FIRST_PAUSE;
            }
            Some(error) if error.kind() == ErrorKind::Lost && keeping.phase == Phase::Held => {
                self.lose(state, &hold.request);
            }
            Some(error) => {
                self.fail(keeping, &error);
                let pause = state.grow_pause();
                state.holds.get_mut(&hold.request).expect("it is there").due = clock::now() + pause;
            }
        }
        hold.changed.notify_all();
        let next = state.holds.get(&hold.request).map_or(NEVER, |k| k.due.min(k.until));
        self.wake(state, next);
    }

    /// A renewal failed, or could not be sent.
    fn fail(&self, keeping: &mut Keeping, error: &Error) {
        match keeping.phase {
            Phase::Granted => {
                keeping.trouble = Some(error.clone());
                keeping.hold.changed.notify_all();
            }
            Phase::Held => self.doubt(keeping),
            Phase::Lost => {}
        }
    }

    fn doubt(&self, keeping: &mut Keeping) {
        if keeping.phase == Phase::Held && !keeping.uncertain {
            keeping.uncertain = true;
            self.tell(&keeping.hold, "is uncertain: no renewal is confirmed", &keeping.hold.terms.on_uncertain);
        }
    }

    fn lose(&self, state: &mut State, request: &str) {
        if let Some(keeping) = state.holds.get_mut(request).filter(|k| k.phase == Phase::Held) {
            keeping.phase = Phase::Lost;
            self.tell(&keeping.hold, "is lost", &keeping.hold.terms.on_lost);
            keeping.hold.changed.notify_all();
            state.hear_at = state.hear_at.min(clock::now() + HEARD_AFTER);
            self.wake(state, state.hear_at);
        }
    }

    /// In a thread of its own, as the caller has the mutex.
    fn tell(&self, hold: &Hold, what: &str, call: &Option<Call>) {
        let (log, call, line) = (self.log.clone(), call.clone(), format!("{} {}", hold.terms.name(), what));
        if log.is_some() || call.is_some() {
            let told = spawn("latchd call", move || {
                if let Some(log) = log {
                    log(&line);
                }
                if let Some(call) = call {
                    call();
                }
            });
            drop(told); // without a thread the guard still says it
        }
    }

    fn lose_if_over(&self, state: &mut State, hold: &Hold) {
        if state.holds.get(&hold.request).map_or(false, |k| k.is_over(clock::now())) {
            self.lose(state, &hold.request);
        }
    }

    pub(crate) fn is_lost(&self, hold: &Hold) -> bool {
        let mut state = lock(&self.state);
        self.lose_if_over(&mut state, hold);
        state.holds.get(&hold.request).map_or(true, |k| k.phase == Phase::Lost)
    }

    pub(crate) fn is_uncertain(&self, hold: &Hold) -> bool {
        lock(&self.state).holds.get(&hold.request).map_or(false, |k| k.uncertain)
    }

    pub(crate) fn wait_lost(&self, hold: &Hold, timeout: Duration) -> bool {
        let end = clock::now().saturating_add(timeout);
        while !self.is_lost(hold) {
            if clock::now() >= end {
                return false;
            }
            let state = lock(&self.state);
            if state.holds.get(&hold.request).map_or(false, |k| k.phase == Phase::Held) {
                drop(wait(&hold.changed, state, end)); // the keeper says when the lease is over
            }
        }
        true
    }

    // Giving back

    pub(crate) fn release(self: &Arc<Self>, hold: &Hold) -> Result<()> {
        let mut state = lock(&self.state);
        self.lose_if_over(&mut state, hold);
        // From now on no renewal counts, and no loss is told.
        let is_lost = state.holds.remove(&hold.request).map_or(true, |k| k.phase == Phase::Lost);
        state.hear_at = state.hear_at.min(clock::now() + HEARD_AFTER);
        let next = if state.is_closed { AT_ONCE } else { state.hear_at };
        self.wake(&mut state, next);
        drop(state);
        let commands = hold.terms.commands("UNLOCK", &hold.request, &[]);
        let released = self.insist(&commands, self.timeout);
        if matches!(&released, Err(error) if error.kind() == ErrorKind::Unreachable) {
            // It goes on in the background: the work is done.
            self.insist_behind(commands, self.patience.max(hold.terms.lease.unwrap_or(AT_ONCE)));
        }
        if is_lost || matches!(&released, Err(error) if error.kind() == ErrorKind::Lost) {
            return Err(Error::new(ErrorKind::Lost, &format!("{} was lost before it was released", hold.terms.name())));
        }
        Ok(())
    }

    /// Sends commands, through restarts, for so long. Of errors, a loss comes before others.
    fn insist(&self, commands: &[Command], patience: Duration) -> Result<()> {
        let (end, mut pause) = (clock::now().saturating_add(patience), FIRST_PAUSE);
        loop {
            match self.ask(commands, self.timeout, None, &[]) {
                Err(error) if error.kind() == ErrorKind::Unreachable && clock::now() < end => {}
                Err(error) => return Err(error),
                Ok(answers) => {
                    let errors = answers.into_iter().filter_map(|answer| answer.int().err());
                    return errors.min_by_key(|e| e.kind() != ErrorKind::Lost).map_or(Ok(()), Err);
                }
            }
            pause = rest(pause, None);
        }
    }

    fn insist_behind(self: &Arc<Self>, commands: Vec<Command>, patience: Duration) {
        let shared = self.clone();
        let work = move || drop(shared.insist(&commands, patience));
        drop(spawn("latchd insists", work)); // without a thread the lease ends it
    }

    // Asking

    /// Asks until there is an answer, which may take so long, or there has been none for as long as `patience`.
    pub(crate) fn query(
        &self,
        words: &Command,
        takes: Duration,
        patience: Duration,
        stop: Option<&Stop>,
    ) -> Result<Value> {
        let (began, mut pause, mut tries) = (clock::now(), FIRST_PAUSE, 0);
        loop {
            let answer = self
                .ask(std::slice::from_ref(words), takes + self.timeout, stop, &[])
                .map(|mut answers| answers.remove(0));
            let error = match answer {
                Ok(Value::Error(error)) | Err(error) => error,
                Ok(answer) => return Ok(answer),
            };
            tries += 1;
            let is_over = clock::now() - began >= patience;
            if !error.can_pass() || is_over && (error.kind() == ErrorKind::Backend || tries > self.addresses.len()) {
                return Err(error);
            }
            pause = rest(pause, stop);
        }
    }
}

/// Ends a request: its wait, and its hold, if it was granted in the same moment.
fn undo(terms: &Terms, request: &str) -> Vec<Command> {
    let mut commands = vec![command!["CANCEL", terms.names[0], "ID", request]];
    commands.extend(terms.commands("UNLOCK", request, &[]));
    commands
}

fn gave_up() -> Error {
    Error::new(ErrorKind::Stopped, "the program gave up")
}

/// Between two attempts; gives the next pause.
fn rest(pause: Duration, stop: Option<&Stop>) -> Duration {
    match stop {
        Some(stop) => stop.0.wait(pause),
        None => thread::sleep(pause),
    }
    (2 * pause).min(LAST_PAUSE)
}

impl State {
    fn leave(&mut self, at: usize, addresses: usize) {
        if self.at == at {
            self.at = (at + 1) % addresses;
            self.idle.clear();
        }
    }

    fn grow_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (2 * pause).min(LAST_PAUSE);
        pause
    }

    /// When something is to be sent over the link, or comes too late.
    fn next(&self) -> Duration {
        let due = self.holds.values().filter(|k| k.phase != Phase::Lost).map(|k| k.due).min();
        let link = self.link.as_ref().map_or(NEVER, |link| {
            if link.is_deaf {
                link.deadline()
            } else {
                link.deadline().min(self.hear_at)
            }
        });
        due.unwrap_or(NEVER).min(link)
    }
}

/// What [`Stop`] is made of.
#[derive(Clone, Default)]
pub(crate) struct StopState(Arc<(Mutex<Calls>, Condvar)>);

#[derive(Default)]
struct Calls {
    is_stopped: bool,
    last: u64,
    calls: HashMap<u64, Box<dyn Fn() + Send>>,
}

impl StopState {
    pub(crate) fn is_stopped(&self) -> bool {
        lock(&self.0 .0).is_stopped
    }

    pub(crate) fn stop(&self) {
        let mut calls = lock(&self.0 .0);
        calls.is_stopped = true;
        self.0 .1.notify_all();
        let all: Vec<_> = calls.calls.drain().collect();
        drop(calls);
        all.iter().for_each(|(_, call)| call());
    }

    /// Calls this when it is stopped; at once, if it was; and not once what it returns is dropped.
    fn call(&self, call: impl Fn() + Send + 'static) -> impl Drop {
        let mut calls = lock(&self.0 .0);
        calls.last += 1;
        let number = calls.last;
        if calls.is_stopped {
            drop(calls);
            call();
        } else {
            calls.calls.insert(number, Box::new(call));
        }
        Registered(self.clone(), number)
    }

    /// For so long at most.
    fn wait(&self, time: Duration) {
        let calls = lock(&self.0 .0);
        if !calls.is_stopped {
            drop(self.0 .1.wait_timeout(calls, time));
        }
    }
}

struct Registered(StopState, u64);

impl Drop for Registered {
    fn drop(&mut self) {
        lock(&self.0 .0 .0).calls.remove(&self.1);
    }
}
