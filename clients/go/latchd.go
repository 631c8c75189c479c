// Package latchd takes locks of latchd, over go-redis.
//
//	client, err := latchd.New([]string{"redis://localhost:5625"})
//	ctx, token, unlock, err := client.Lock(ctx, "job", latchd.Wait(10*time.Second))
//	if err != nil { ... }
//	defer unlock()
//	work(ctx, token) // ctx is cancelled when the lock is lost
//
// Each wait has a connection of its own; all holds of a Client are renewed over one, by one
// goroutine, and another one hears at once what latchd learns of those that last. Every request has an ID and is repeated, through the next address if need be, until it
// is answered. How long a hold may be relied on is counted from before its last renewal was sent,
// on a clock that runs during suspend (on Linux).
//
// A hold is renewed until it is released, lost, or its process ends, and then lasts for the rest of its
// lease, or for Grace. The garbage collector releases none.
package latchd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	longestAsk = 10 * time.Second // a wait is made of LOCKs that are this long, to notice a dead host
	mostIdle   = 8                // connections that are kept for the next waits
	mostConns  = 1 << 14          // as many as may wait at once
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
	leastLease = 100 * time.Millisecond // what latchd takes
	heardAfter = 50 * time.Millisecond  // a shorter hold is not listened for
	// a hold with a heartbeat is lost after two thirds of it without a renewal
	heartbeatParts, heartbeatOf = 2, 3
	forever                     = time.Duration(math.MaxInt64)
)

// Error is what latchd answered, or why it did not. errors.Is compares codes.
type Error struct {
	Code string // the first word of latchd's answer
	Text string
}

func (e *Error) Error() string { return "latchd: " + e.Code + " " + e.Text }

// Is makes errors.Is(err, latchd.ErrLost) true for every error of that code.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Errors, for errors.Is.
var (
	// ErrTimeout: somebody else has the lock, and the wait is over.
	ErrTimeout = &Error{Code: "TIMEOUT"}
	// ErrLost: the lock was lost before it was released; somebody else may have had it since.
	ErrLost = &Error{Code: "NOTHELD"}
	// ErrUnreachable: no address of latchd answers.
	ErrUnreachable = &Error{Code: "UNREACHABLE"}
	// ErrBackend: latchd's Redis cannot be reached, or refuses to grant.
	ErrBackend = &Error{Code: "BACKEND"}
	// ErrNoReplicas: too few replicas acknowledge.
	ErrNoReplicas = &Error{Code: "NOREPLICAS"}
	// ErrDeadlock: owners would wait for each other.
	ErrDeadlock = &Error{Code: "DEADLOCK"}
	// ErrLimit: a limit of latchd's configuration is reached.
	ErrLimit = &Error{Code: "LIMIT"}
	// ErrNoPermission: the user may not do that.
	ErrNoPermission = &Error{Code: "NOPERM"}
	// ErrWrongType: the name belongs to other data, or to a lock of the other class.
	ErrWrongType = &Error{Code: "WRONGTYPE"}
	// ErrGone: there is no such latch; it was never set, or was deleted, evicted or lost.
	ErrGone = &Error{Code: "GONE"}

	errGoAway = &Error{Code: "GOAWAY"}
)

func toTyped(err error) error {
	var answer redis.Error
	var typed *Error
	switch {
	case err == nil, errors.As(err, &typed), errors.Is(err, redis.Nil):
		return err
	case errors.As(err, &answer):
		code, text, _ := strings.Cut(answer.Error(), " ")
		if code == "ERR" && (strings.HasPrefix(text, "gone") || strings.HasPrefix(text, "no such latch")) {
			code = ErrGone.Code
		}
		if code == "ERR" && strings.HasPrefix(text, "unknown command") {
			return &Error{Code: "NOTLATCHD", Text: "this is a Redis, not a latchd: " + answer.Error()}
		}
		return &Error{Code: code, Text: text}
	}
	return &Error{Code: "UNREACHABLE", Text: err.Error()}
}

func isBackend(err error) bool {
	return errors.Is(err, ErrBackend) || errors.Is(err, ErrNoReplicas)
}

// canPass says whether the request may succeed if it is sent again.
func canPass(err error) bool {
	return isBackend(err) || errors.Is(err, ErrUnreachable) || errors.Is(err, errGoAway)
}

type state int

const (
	waiting state = iota
	held
	lost
	released
)

// hold is one request for one lock, or several, and what it was granted. Client.mu guards what changes.
type hold struct {
	names       []string
	options     [][]any // each begins with its name
	kind        []any
	wait, lease time.Duration // lease 0: latchd renews it
	heartbeat   time.Duration // 0: none
	onUncertain func()
	log         *slog.Logger

	request         string
	asking          chan struct{} // closed when the last LOCK was answered
	tokens          []int64       // as the names
	state           state
	uncertain       bool
	noticed         bool          // latchd said something since the last renewal was sent
	since           time.Duration // on the clock of bootTime, as is what follows
	until, due, end time.Duration
	first           chan error // how the renewal that begins the hold ended
	lose            context.CancelCauseFunc
}

// Option is one of LOCK's, as latchd-protocol(7) has them.
type Option func(*hold)

func option(words ...any) Option {
	return func(h *hold) { h.options = append(h.options, words) }
}

func kind(word string) Option {
	return func(h *hold) { h.kind = []any{word}; option(word)(h) }
}

// Wait says for how long to wait; without it the wait has no end but that of the context.
func Wait(d time.Duration) Option { return func(h *hold) { h.wait = max(0, d) } }

// Fair keeps the order of arrival across all latchds.
func Fair() Option { return option("FAIR") }

// Read shares the lock with other readers.
func Read() Option { return kind("READ") }

// Write excludes readers and writers.
func Write() Option { return kind("WRITE") }

// Permits takes n permits of a semaphore; of is the limit with which it is made if there is none.
func Permits(n, of int) Option { return option("PERMITS", n, "OF", of) }

// Priority, 0 to 9, puts the lock's wait before those of less who came lately.
func Priority(n int) Option { return option("PRIORITY", n) }

// Queue gives ErrLimit, instead of waiting, where n wait already.
func Queue(n int) Option { return option("QUEUE", n) }

// Owner names an owner, who can enter again.
func Owner(name string) Option { return option("OWNER", name) }

// Grace says how long the hold outlives its last connection.
func Grace(d time.Duration) Option { return option("GRACE", toMillis(d)) }

// Keep says how long the place in the queue outlives the connection.
func Keep(d time.Duration) Option { return option("KEEP", toMillis(d)) }

// AtLeast keeps others out for so long, though the holder is done, or gone: it is not waited for.
func AtLeast(d time.Duration) Option {
	return func(h *hold) { h.wait = 0; option("ATLEAST", toMillis(d))(h) }
}

// Lease ends the hold by itself after that time: it is not renewed.
func Lease(d time.Duration) Option {
	return func(h *hold) { h.lease = d; option("LEASE", toMillis(d))(h) }
}

// Data is what Follow tells others of the holder.
func Data(data string) Option { return option("DATA", data) }

// Heartbeat frees the lock so soon after this process, or its machine, has vanished; with Grace(0).
func Heartbeat(d time.Duration) Option {
	return func(h *hold) { h.heartbeat = d; option("HEARTBEAT", toMillis(d))(h) }
}

// Other is an option that a later latchd has.
func Other(words ...any) Option { return option(words...) }

// OnUncertain is called, in a goroutine of its own, when latchd, or a renewal that failed, makes the
// hold uncertain.
func OnUncertain(call func()) Option { return func(h *hold) { h.onUncertain = call } }

func newRequest() string {
	id := make([]byte, 16)
	if _, err := rand.Read(id); err != nil {
		panic(err)
	}
	return hex.EncodeToString(id)
}

func toMillis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// peer is one address: connections for waits, and the one that renews.
type peer struct {
	waits, renewals *redis.Client
}

// Client is latchd; one serves a whole process.
type Client struct {
	peers             []peer
	timeout, patience time.Duration
	log               *slog.Logger

	mu      sync.Mutex
	at      int // of peers: the last one that answered
	holds   map[string]*hold
	keeping bool
	wake    chan struct{}
	unheard bool              // there are holds, or there is another latchd, to listen for
	said    map[notice]string // what latchd said of a hold
}

// notice names a hold as latchd does.
type notice struct{ name, token string }

// Setting changes a Client.
type Setting func(*Client, *redis.Options)

// Timeout: without an answer for so long (5 s), a connection is given up.
func Timeout(d time.Duration) Setting { return func(c *Client, _ *redis.Options) { c.timeout = d } }

// Patience: after so long (30 s) without latchd, or with its Redis out of reach, a wait fails.
func Patience(d time.Duration) Setting { return func(c *Client, _ *redis.Options) { c.patience = d } }

// Logger is warned when a hold becomes uncertain or is lost.
func Logger(log *slog.Logger) Setting { return func(c *Client, _ *redis.Options) { c.log = log } }

// Connection changes go-redis's options of all connections, such as TLSConfig.
func Connection(change func(*redis.Options)) Setting {
	return func(_ *Client, options *redis.Options) { change(options) }
}

// New makes a Client of latchds that share a Redis; the first that answers is used.
func New(addresses []string, settings ...Setting) (*Client, error) {
	c := &Client{timeout: 5 * time.Second, patience: 30 * time.Second, holds: map[string]*hold{},
		wake: make(chan struct{}, 1), said: map[notice]string{}}
	if len(addresses) == 0 {
		return nil, errors.New("latchd's address is missing")
	}
	for _, address := range addresses {
		options, err := redis.ParseURL(address)
		if err != nil {
			return nil, err
		}
		for _, set := range settings {
			set(c, options)
		}
		// What is sent again, and when, is decided here: deadlines are those of contexts.
		options.MaxRetries, options.ContextTimeoutEnabled = -1, true
		options.ReadTimeout, options.WriteTimeout, options.DialTimeout = -1, c.timeout, c.timeout
		one := *options
		options.PoolSize, options.MaxIdleConns = mostConns, mostIdle
		// Renewals come one after the other. A pool that failed to connect as often as it is large would
		// not try again for a second.
		one.PoolSize, one.MaxIdleConns = mostConns, 1
		c.peers = append(c.peers, peer{redis.NewClient(options), redis.NewClient(&one)})
	}
	return c, nil
}

// Close closes all connections: what is held then ends with its lease.
func (c *Client) Close() error {
	var errs []error
	for _, p := range c.peers {
		errs = append(errs, p.waits.Close(), p.renewals.Close())
	}
	return errors.Join(errs...)
}

// Lock waits for the lock. The context that it returns is cancelled, with ErrLost as its cause,
// when the lock is lost, and ends with unlock. token is the fencing token. unlock returns ErrLost
// if the lock was lost before; calling it again has no effect. When ctx ends, so does the wait.
func (c *Client) Lock(ctx context.Context, name string, options ...Option) (
	held context.Context, token int64, unlock func() error, err error) {
	held, tokens, unlock, err := c.LockAll(ctx, []string{name}, options...)
	if err != nil {
		return held, 0, unlock, err
	}
	return held, tokens[0], unlock, nil
}

// LockAll is Lock for several names, which are taken all or none. The tokens are in their order. A
// loss of one is a loss of all.
func (c *Client) LockAll(ctx context.Context, names []string, options ...Option) (
	held context.Context, tokens []int64, unlock func() error, err error) {
	if len(names) == 0 {
		err = errors.New("a lock has a name")
		return ctx, nil, func() error { return err }, err
	}
	h := &hold{names: slices.Clone(names), wait: forever, request: newRequest(), log: c.log}
	for _, set := range options {
		set(h)
	}
	inner, cancel := context.WithCancelCause(ctx)
	h.lose = cancel
	if err := c.acquire(ctx, h); err != nil {
		cancel(err)
		return ctx, nil, func() error { return err }, err
	}
	var once sync.Once
	var failure error
	unlock = func() error {
		once.Do(func() {
			failure = c.release(h)
			cancel(nil)
		})
		return failure
	}
	return &leased{inner, c, h}, slices.Clone(h.tokens), unlock, nil
}

// leased is a context that looks at the clock itself when it is asked.
type leased struct {
	context.Context
	client *Client
	hold   *hold
}

func (l *leased) Err() error {
	l.client.loseIfOver(l.hold)
	return l.Context.Err()
}

// Taking

func (c *Client) acquire(ctx context.Context, h *hold) error {
	began := time.Now()
	reached, pause := began, firstPause
	for tries := 1; ; tries++ {
		at, p := c.current()
		asked := time.Now()
		tokens, err := c.ask(ctx, p, h, began)
		if err == nil {
			err = c.begin(ctx, h, tokens)
		}
		now := time.Now()
		over := h.wait < forever && now.Sub(began) >= h.wait
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			go c.abandon(h)
			return context.Cause(ctx)
		case errors.Is(err, redis.Nil):
			reached, pause = now, firstPause
			if !over {
				continue
			}
			go c.abandon(h)
			return &Error{"TIMEOUT", "somebody else has " + h.name()}
		case errors.Is(err, ErrLost) && !over:
			if len(h.names) > 1 { // of several the others are there
				go func(commands [][]any) { _ = c.insistAll(h, commands) }(h.commands("UNLOCK"))
			}
			h.request = newRequest() // the old one is over: freed by force, or lost on its way
			continue
		case h.has("OWNER") && now.Sub(asked) >= longestAsk && errors.Is(err, ErrUnreachable) && c.isThere(ctx, p):
			// Its LOCK may take longer than the answer is waited for.
			reached, tries = time.Now(), 0
			continue
		case !canPass(err), now.Sub(reached) > c.patience, over && isBackend(err),
			over && tries > len(c.peers): // a connection that lay idle may have broken unnoticed
			go c.abandon(h)
			return err
		}
		if !isBackend(err) {
			c.leave(at)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

// Latch is set to a number, counted down, and opens at 0.
type Latch struct {
	client *Client
	name   string
}

// Latch returns the latch of that name, which others count down.
func (c *Client) Latch(name string) *Latch { return &Latch{c, name} }

// Set returns false if one is set already. An id can be repeated, and has the same answer; "" is a
// new one.
func (l *Latch) Set(ctx context.Context, count int64, id string) (bool, error) {
	set, err := l.client.latch(ctx, "SET", l.name, count, "ID", cmp.Or(id, newRequest()))
	return set == 1, err
}

// Count returns what is left. An id, of 16 to 64 characters, counts once, however often it is
// repeated; with "", each call counts.
func (l *Latch) Count(ctx context.Context, id string) (int64, error) {
	return l.client.latch(ctx, "COUNT", l.name, "ID", cmp.Or(id, newRequest()))
}

// Wait returns when the latch is open, or ctx ends. The error is ErrGone if it was deleted or lost.
func (l *Latch) Wait(ctx context.Context) error {
	_, err := l.client.latch(ctx, "AWAIT", l.name)
	return err
}

// Delete returns false if there was none.
func (l *Latch) Delete(ctx context.Context) (bool, error) {
	deleted, err := l.client.latch(ctx, "DELETE", l.name)
	return deleted == 1, err
}

func (c *Client) latch(ctx context.Context, words ...any) (int64, error) {
	command, within := append([]any{"LATCH"}, words...), c.timeout
	if words[0] == "AWAIT" {
		command = append(command, "WAIT", toMillis(longestAsk))
		within += longestAsk
	}
	answer, err := c.query(ctx, within, c.patience, command...)
	number, _ := answer.(int64)
	return number, err
}

// query asks until the answer is not null, or there has been none for as long as patience.
func (c *Client) query(ctx context.Context, within, patience time.Duration, command ...any) (any, error) {
	reached, pause := time.Now(), firstPause
	for tries := 1; ; tries++ {
		at, p := c.current()
		answers := make(chan *redis.Cmd, 1)
		go func() { answers <- do(p.waits, within, command) }()
		var answer any
		var err error
		select {
		case cmd := <-answers:
			answer, err = cmd.Result()
			err = toTyped(err)
		case <-ctx.Done():
			err = ctx.Err()
		}
		switch {
		case err == nil:
			return answer, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, redis.Nil):
			reached, pause = time.Now(), firstPause
			continue
		case !canPass(err), time.Since(reached) > patience && (isBackend(err) || tries > len(c.peers)):
			return nil, err
		}
		if !isBackend(err) {
			c.leave(at)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

// Locked says whether anybody holds the name now, or one of several. The error is ErrBackend if that
// cannot be known.
func (c *Client) Locked(ctx context.Context, names ...string) (bool, error) {
	for _, name := range names {
		if is, err := c.isHeld(ctx, name); is || err != nil {
			return is, err
		}
	}
	return false, nil
}

func (c *Client) isHeld(ctx context.Context, name string) (bool, error) {
	info, err := c.query(ctx, c.timeout, 0, "LOCKINFO", name)
	if err != nil {
		return false, err
	}
	switch state := fieldOf(info, "state"); state {
	case "withheld":
		return false, &Error{ErrBackend.Code,
			"latchd grants " + name + " to nobody for now, and a hold of it may come back"}
	case "lent": // and only the latchd that has it knows whether somebody holds it
		leader, err := c.query(ctx, c.timeout, 0, "LEADER", name)
		if err != nil {
			return false, err
		}
		parts, _ := leader.([]any)
		return len(parts) == 3 && parts[1] != "", nil
	default:
		return state != "free", nil
	}
}

// fieldOf takes a value out of a map, which is a flat list in RESP2.
func fieldOf(reply any, key string) any {
	if fields, ok := reply.(map[any]any); ok {
		return fields[key]
	}
	list, _ := reply.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		if list[i] == key {
			return list[i+1]
		}
	}
	return nil
}

func (c *Client) current() (int, peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at, c.peers[c.at]
}

// leave makes the next attempt begin with another address, if there is one.
func (c *Client) leave(at int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaveLocked(at)
}

func (c *Client) leaveLocked(at int) {
	if c.at == at {
		c.at, c.unheard = (at+1)%len(c.peers), true
	}
}

// do sends one command, for as long as within says, whatever becomes of its caller.
func do(client *redis.Client, within time.Duration, words []any) *redis.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	return client.Do(ctx, words...)
}

func (c *Client) isThere(ctx context.Context, p peer) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return p.waits.Ping(ctx).Err() == nil
}

func (h *hold) name() string { return strings.Join(h.names, " and ") }

// commands has one for each name.
func (h *hold) commands(word string, more ...any) [][]any {
	var all [][]any
	for _, name := range h.names {
		words := append([]any{word, name}, h.kind...)
		all = append(all, append(append(words, "ID", h.request), more...))
	}
	return all
}

// asks is the LOCK, or MLOCK, up to its wait.
func (h *hold) asks() []any {
	words := []any{"LOCK"}
	if len(h.names) > 1 {
		words = []any{"MLOCK", len(h.names)}
	}
	for _, name := range h.names {
		words = append(words, name)
	}
	return append(words, slices.Concat(h.options...)...)
}

func (h *hold) has(option string) bool {
	return slices.ContainsFunc(h.options, func(words []any) bool { return len(words) > 0 && words[0] == option })
}

// ask sends one LOCK. When ctx ends it returns at once, and the command goes on until CANCEL.
func (c *Client) ask(ctx context.Context, p peer, h *hold, began time.Time) ([]int64, error) {
	left := forever
	if h.wait < forever {
		left = max(0, h.wait-time.Since(began))
	}
	ask := min(left, longestAsk)
	wait := ask
	words := h.asks()
	if h.has("OWNER") {
		wait = left // latchd looks for a deadlock where it knows how long an owner would wait
	}
	if wait < forever {
		words = append(words, "WAIT", toMillis(wait))
	}
	if wait == 0 && !h.has("KEEP") {
		words = append(words, "KEEP", 0)
	}
	words = append(words, "ID", h.request)
	type answer struct {
		tokens []int64
		err    error
	}
	answers, asking := make(chan answer, 1), make(chan struct{})
	h.asking = asking
	go func() {
		defer close(asking)
		cmd := do(p.waits, ask+c.timeout, words)
		if len(h.names) > 1 {
			tokens, err := cmd.Int64Slice()
			answers <- answer{tokens, toTyped(err)}
			return
		}
		token, err := cmd.Int64()
		answers <- answer{[]int64{token}, toTyped(err)}
	}()
	select {
	case a := <-answers:
		return a.tokens, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// begin attaches the hold to the connection that renews, and learns how long its lease is.
func (c *Client) begin(ctx context.Context, h *hold, tokens []int64) error {
	c.mu.Lock()
	h.tokens, h.first = tokens, make(chan error, 1)
	h.until, h.due = forever, math.MinInt64
	c.holds[h.request] = h
	if !c.keeping {
		c.keeping = true
		go c.keep()
	}
	h.since, c.unheard = bootTime(), true
	c.mu.Unlock()
	c.nudge()
	select {
	case err := <-h.first:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// abandon ends the wait; and the hold, if it was granted in the same moment.
func (c *Client) abandon(h *hold) {
	c.mu.Lock()
	delete(c.holds, h.request)
	h.state = released
	c.mu.Unlock()
	for asking := true; asking; { // CANCEL may come before the LOCK, which is sent over another link
		_ = c.insist(h, []any{"CANCEL", h.names[0], "ID", h.request})
		select {
		case <-h.asking:
			asking = false
		case <-time.After(firstPause):
		}
	}
	_ = c.insistAll(h, h.commands("UNLOCK"))
}

// Keeping

func (c *Client) nudge() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// keep renews what is due, and says what is lost, as long as anything is held.
func (c *Client) keep() {
	pause := time.Duration(0)
	renewed, followed := make(chan bool, 1), make(chan bool, 1)
	renewing, following := false, false
	ears, hearAt := &listener{client: c}, time.Duration(math.MinInt64)
	for {
		c.mu.Lock()
		c.takeNoticeLocked()
		now, next := bootTime(), forever
		var due []*hold
		for _, h := range c.holds {
			if h.until <= now {
				c.loseLocked(h)
			} else if h.due <= now {
				due = append(due, h)
				next = min(next, h.until)
			} else {
				next = min(next, h.due, h.until)
			}
		}
		if len(c.holds) == 0 && !renewing {
			c.keeping = false
			c.mu.Unlock()
			go ears.close() // a connection that is being made may take its time
			return
		}
		if c.unheard && !following {
			if hearAt <= now {
				hearAt, following = now+heardAfter, true
				go func(at int, names map[string]bool) {
					ears.follow(at, names)
					followed <- true
				}(c.at, c.lastingLocked(now))
			}
			next = min(next, hearAt)
		}
		c.mu.Unlock()
		if len(due) > 0 && !renewing {
			renewing = true
			go func(pause time.Duration) {
				time.Sleep(pause)
				renewed <- c.renew(due)
			}(pause)
		}
		var timer <-chan time.Time
		if next < forever {
			timer = time.After(next - now)
		}
		select {
		case good := <-renewed:
			renewing = false
			// After a failure the next attempt is made soon, and as often as it takes.
			if good {
				pause = 0
			} else {
				pause = min(max(firstPause, 2*pause), lastPause)
			}
		case <-followed:
			following = false
		case <-c.wake:
		case <-timer:
		}
	}
}

// lastingLocked are the names to listen for; the other holds are too young.
func (c *Client) lastingLocked(now time.Duration) map[string]bool {
	names := map[string]bool{}
	c.unheard = false
	for _, h := range c.holds {
		if h.since+heardAfter <= now {
			for _, name := range h.names {
				names[name] = true
			}
		} else {
			c.unheard = true
		}
	}
	return names
}

// listener hears what the latchd that renews says of some names. What it misses shows at the next
// renewal.
type listener struct {
	client *Client
	mu     sync.Mutex
	at     int
	pubsub *redis.PubSub // go-redis connects it again
	heard  map[string]bool
	closed bool
}

func (l *listener) follow(at int, names map[string]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	if l.pubsub != nil && l.at != at {
		_ = l.pubsub.Close()
		l.pubsub = nil
	}
	if l.pubsub == nil {
		if len(names) == 0 {
			return
		}
		l.at, l.heard = at, nil
		l.pubsub = l.client.peers[at].renewals.Subscribe(context.Background())
		go l.listen(l.pubsub.ChannelWithSubscriptions())
	}
	var more, less []string
	for name := range names {
		if !l.heard[name] {
			more = append(more, "lost:"+name, "uncertain:"+name)
		}
	}
	for name := range l.heard {
		if !names[name] {
			less = append(less, "lost:"+name, "uncertain:"+name)
		}
	}
	l.heard = names
	if len(more) > 0 {
		_ = l.pubsub.Subscribe(context.Background(), more...)
	}
	if len(less) > 0 {
		_ = l.pubsub.Unsubscribe(context.Background(), less...)
	}
}

// listen notes what is said of a token. No token: what is said from now on is heard, and what was said
// before it was not.
func (l *listener) listen(messages <-chan any) {
	for message := range messages {
		channel, token := "", ""
		switch m := message.(type) {
		case *redis.Message:
			channel, token = m.Channel, m.Payload[strings.LastIndex(m.Payload, " ")+1:]
		case *redis.Subscription:
			if m.Kind != "subscribe" {
				continue
			}
			channel = m.Channel
		}
		what, name, _ := strings.Cut(channel, ":")
		l.client.mu.Lock()
		l.client.said[notice{name, token}] = what
		l.client.mu.Unlock()
		l.client.nudge()
	}
}

func (l *listener) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.pubsub != nil {
		_ = l.pubsub.Close()
	}
}

// takeNoticeLocked has renewals tell whether it is so: a latchd that the hold has left knows no better.
func (c *Client) takeNoticeLocked() {
	if len(c.said) == 0 {
		return
	}
	for _, h := range c.holds {
		for i, name := range h.names {
			what, ok := c.said[notice{name, strconv.FormatInt(h.tokens[i], 10)}]
			if _, unheard := c.said[notice{name, ""}]; ok || unheard {
				h.noticed, h.due = true, math.MinInt64
			}
			if what == "uncertain" {
				h.doubt()
			}
		}
	}
	clear(c.said)
}

func (c *Client) loseLocked(h *hold) {
	delete(c.holds, h.request)
	if h.state == held { // so it is told once, and never after the release
		h.state = lost
		h.until = math.MinInt64
		h.warn(" is lost")
		h.lose(&Error{"NOTHELD", h.name() + " was lost"})
	}
}

func (c *Client) loseIfOver(h *hold) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.state == held && h.until <= bootTime() {
		c.loseLocked(h)
	}
}

// renewal has the commands; a hold with a lease is only confirmed, for what is left of it.
func (h *hold) renewal(now time.Duration) [][]any {
	h.noticed = false
	if h.lease == 0 {
		return h.commands("RENEW")
	}
	if h.state == waiting {
		h.end = now + h.lease
	}
	return h.commands("RENEW", "LEASE", int64(max(leastLease, h.end-now)/time.Millisecond))
}

// renew sends all of these in one go. Those that were released meanwhile are left out of it.
func (c *Client) renew(due []*hold) bool {
	at, p := c.current()
	c.mu.Lock()
	due = slices.DeleteFunc(due, func(h *hold) bool { return c.holds[h.request] != h })
	sent, left := bootTime(), c.timeout
	commands := make([][][]any, len(due))
	for i, h := range due {
		commands[i] = h.renewal(sent)
		if h.state == held {
			left = min(left, max(time.Second, (h.until-sent)/3))
		}
	}
	c.mu.Unlock()
	if len(due) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), left)
	defer cancel()
	answers := make([][]*redis.Cmd, len(due))
	_, failure := p.renewals.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for i, all := range commands {
			for _, words := range all {
				answers[i] = append(answers[i], pipe.Do(ctx, words...))
			}
		}
		return nil
	})
	good, unreachable := true, false
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, h := range due {
		left, err := leastOf(answers[i], failure)
		good = good && (err == nil || errors.Is(err, ErrLost))
		unreachable = unreachable || errors.Is(err, ErrUnreachable)
		c.settleLocked(h, sent, left, err)
	}
	if unreachable {
		c.leaveLocked(at)
		for _, h := range c.holds {
			h.due = math.MinInt64 // they were attached to the connection that broke
		}
	}
	return good
}

// leastOf is what is left of all; of errors, a loss comes before others. failure is that of the pipeline,
// of which the answers need not know.
func leastOf(answers []*redis.Cmd, failure error) (int64, error) {
	least, trouble := int64(math.MaxInt64), error(nil)
	for _, answer := range answers {
		left, err := answer.Int64()
		if answer.Err() == nil && answer.Val() == nil {
			err = failure
		}
		least = min(least, left)
		if err = toTyped(err); trouble == nil || errors.Is(err, ErrLost) {
			trouble = err
		}
	}
	return least, trouble
}

// settleLocked notes what became of one renewal.
func (c *Client) settleLocked(h *hold, sent time.Duration, left int64, err error) {
	if c.holds[h.request] != h {
		return // released, or given up, while the renewal was under way
	}
	if err == nil {
		h.until = sent + time.Duration(left)*time.Millisecond
		if h.lease != 0 {
			h.until = min(h.until, h.end)
		} else if h.heartbeat != 0 { // over before latchd gives it on
			h.until = min(h.until, sent+h.heartbeat*heartbeatParts/heartbeatOf)
		}
		h.due, h.uncertain = sent+(h.until-sent)/3, false
		if h.noticed {
			h.due = math.MinInt64
		}
	}
	switch {
	case h.state == waiting:
		if err == nil {
			h.state = held
		} else {
			delete(c.holds, h.request)
		}
		h.first <- err
	case errors.Is(err, ErrLost):
		c.loseLocked(h)
	case err != nil:
		h.doubt()
	}
}

// warn does not wait for the logger, as its callers hold Client.mu.
func (h *hold) warn(what string) {
	if h.log != nil {
		go h.log.Warn("latchd: " + h.name() + what)
	}
}

func (h *hold) doubt() {
	if h.state == held && !h.uncertain {
		h.uncertain = true
		h.warn(" is uncertain: no renewal is confirmed")
		if h.onUncertain != nil {
			go h.onUncertain()
		}
	}
}

// Giving back

func (c *Client) release(h *hold) error {
	c.loseIfOver(h)
	c.mu.Lock()
	gone := h.state == lost
	h.state = released // from now on no renewal counts, and no loss is told
	delete(c.holds, h.request)
	c.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- c.insistAll(h, h.commands("UNLOCK")) }()
	var err error
	select {
	case err = <-done:
	case <-time.After(c.timeout): // it goes on in the background: the work is done
	}
	if gone || errors.Is(err, ErrLost) {
		return &Error{"NOTHELD", fmt.Sprintf("%s was lost before it was released", h.name())}
	}
	return nil
}

// insistAll sends all; of errors, a loss comes before others.
func (c *Client) insistAll(h *hold, commands [][]any) error {
	var trouble error
	for _, words := range commands {
		if err := c.insist(h, words); trouble == nil || errors.Is(err, ErrLost) {
			trouble = err
		}
	}
	return trouble
}

// insist sends a command, through restarts, for as long as the hold can be there.
func (c *Client) insist(h *hold, words []any) error {
	end, pause := time.Now().Add(max(c.patience, h.lease)), firstPause
	for {
		at, p := c.current()
		err := toTyped(do(p.waits, c.timeout, words).Err())
		if !errors.Is(err, ErrUnreachable) || time.Now().After(end) {
			return err
		}
		c.leave(at)
		time.Sleep(pause)
		pause = min(2*pause, lastPause)
	}
}

// Following

// Leader is who holds a name alone. Nobody: 0 and empty.
type Leader struct {
	Token int64  // the fencing token
	Owner string // as latchd names it
	Data  string // of the lock, see Data
}

// Follow tells who leads, now, and each time that it changes, until ctx ends, whose error it returns.
// A leader who is followed by another one at once may be skipped.
func (c *Client) Follow(ctx context.Context, name string, tell func(Leader)) error {
	var last *Leader
	pause := firstPause
	for {
		at, p := c.current()
		next, err := askLeader(ctx, p, name, last, c.timeout)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			if last == nil || *last != next {
				tell(next)
			}
			last, pause = &next, firstPause
			continue
		case !canPass(err):
			return err
		case !isBackend(err):
			c.leave(at)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, lastPause)
	}
}

// askLeader waits for another leader than the last one; nil: there has been none.
func askLeader(ctx context.Context, p peer, name string, last *Leader, within time.Duration) (Leader, error) {
	words := []any{"LEADER", name}
	if last != nil {
		words = append(words, "AFTER", last.Token, "WAIT", toMillis(longestAsk))
		within += longestAsk
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	answer, err := p.waits.Do(ctx, words...).Slice()
	if err != nil {
		return Leader{}, toTyped(err)
	}
	if len(answer) != 3 {
		return Leader{}, &Error{"ERR", "LEADER was answered otherwise"}
	}
	token, _ := answer[0].(int64)
	owner, _ := answer[1].(string)
	data, _ := answer[2].(string)
	return Leader{token, owner, data}, nil
}
