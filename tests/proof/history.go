package proof

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"runtime"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Op is a line of a history: a request and its answer, or an event. Times are ns.
type Op struct {
	Who      string      `json:"client"`
	Daemon   string      `json:"daemon"`
	F        string      `json:"f"` // lock unlock leave renew told closed write fault paused
	Name     string      `json:"name"`
	Call     int64       `json:"call"`
	Return   *int64      `json:"return"` // null: nobody knows the outcome
	Value    interface{} `json:"value"`  // a number, null, or the text of an error
	Kind     string      `json:"kind"`
	WaitMs   *int64      `json:"wait"`
	LeaseMs  *int64      `json:"lease"`
	Request  string      `json:"request"`
	Permits  int         `json:"permits"`
	Limit    int         `json:"limit"`
	Token    int64       `json:"token"`
	Accepted bool        `json:"accepted"`
	Rests    bool        `json:"rests"` // ATLEAST
}

const (
	ms      = int64(time.Millisecond)
	forever = math.MaxInt64 / 2
	// The manual: a lease counts less 1 % and 50 ms.
	marginMs, marginPart = 50, 100
	// How late two busy cores may read a push, or an answer; and a machine that was paused later.
	toldLate, answerLate = 150 * ms, 400 * ms
	// A null may rest on what Redis said within `recheck`, and the lease of a dead client.
	memory = 60_000 * ms
	// An expired lease is noticed by the next look.
	expiry = 1000 * ms
)

// Read reads a history, a JSON object a line.
func Read(from io.Reader) ([]Op, error) {
	var ops []Op
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var op Op
		if err := json.Unmarshal(lines.Bytes(), &op); err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	return ops, lines.Err()
}

func (o *Op) number() (int64, bool) {
	v, ok := o.Value.(float64)
	return int64(v), ok && o.Return != nil
}

func (o *Op) notHeld() bool {
	text, _ := o.Value.(string)
	return o.Return != nil && strings.HasPrefix(text, "NOTHELD")
}

func (o *Op) done() int64 {
	if o.Return == nil {
		return forever
	}
	return *o.Return
}

// loses are faults after which Redis may lack what it acknowledged: latchd-protocol(7),
// "Failover", says that exclusion may be violated then. With suspends a client may not hear in
// time that its daemon's word is worth nothing.
var (
	loses = map[string]bool{"flushall": true, "evict": true, "lost file": true,
		"kill master": true, "stop master": true, "lag": true, "partition with the master": true,
		"partition of a master": true}
	suspends = map[string]bool{"stop latchd": true, "partition with the master": true}
)

// hold is what a client makes of a grant.
type hold struct {
	Held
	daemon   string
	asked    int64
	granted  int64
	doubt    int64 // since when it is in doubt; forever: it is not
	lease    int64 // until when a fixed lease vouches for it; forever: renewed
	expires  int64 // when a fixed lease is over at the latest
	leaving  int64 // since when an UNLOCK is under way
	requests map[string]bool
	left     int // as its last UNLOCK was answered; -1: it was not
}

func (h *hold) counted() int64 { return min(h.doubt, min(h.lease, h.leaving)) }

func min(a, b int64) int64 {
	if a < b {
		return a
	}
	return b
}

func max(a, b int64) int64 {
	if a > b {
		return a
	}
	return b
}

// extend notes what an answered LOCK or RENEW says of the lease.
func (s *story) extend(h *hold, o *Op) {
	h.lease, h.expires = forever, forever
	if o.LeaseMs != nil {
		lease := *o.LeaseMs
		end := o.Call + lease*ms
		if o.F == "lock" { // at least half is left, also of one that waited
			end = max(end, *o.Return+lease/2*ms-s.late(answerLate, *o.Return))
		}
		h.lease = end - (lease/marginPart+marginMs)*ms
		h.expires = *o.Return + lease*ms + expiry
	}
	h.daemon = o.Daemon
	if o.Call > h.doubt {
		h.doubt = forever
	}
}

// story turns the requests about one name into steps.
type story struct {
	name    string
	faults  []Op
	pauses  []Op
	ops     []Op
	first   map[string]int64 // request: when it was first asked for
	live    map[string]*hold
	steps   []porcupine.Operation
	unknown []Op // LOCKs that may have left a hold that nobody knows of
	loose   bool // rests, loans and fair queues: null although nobody holds
}

func (s *story) add(call, done int64, in Input) {
	in.Name = s.name
	s.steps = append(s.steps, porcupine.Operation{Input: in, Call: call, Return: done})
}

// late adds to that what the whole machine stood still around a time.
func (s *story) late(usual, at int64) int64 {
	for _, p := range s.pauses {
		if p.Call <= at+usual && p.done() >= at-usual {
			usual += p.done() - p.Call
		}
	}
	return usual
}

func (s *story) troubled(from, to int64) bool {
	for _, f := range s.faults {
		if f.Call <= to && f.done() >= from-memory {
			return true
		}
	}
	return false
}

func (s *story) mayHaveExtras(who string, at int64) bool {
	for _, o := range s.unknown {
		if o.Who == who && o.Call <= at {
			return true
		}
	}
	return s.troubled(at, at)
}

// over ends a hold between two times; or as early as a fault may have ended it.
func (s *story) over(h *hold, from, to int64) {
	earliest := h.granted
	for _, f := range s.faults {
		if (loses[f.Name] || suspends[f.Name] && f.Who == h.daemon) && h.asked <= f.done() {
			from, earliest = min(from, f.Call), h.asked // Redis granted before it answered
		}
	}
	from = max(from, earliest)
	s.add(from, max(from, min(to, h.expires)), Input{Step: stepEnd, Hold: h.Held, Left: h.left,
		MayHaveExtras: s.mayHaveExtras(h.Who, from)})
	delete(s.live, h.Who)
}

func (s *story) locked(o *Op) {
	token, ok := o.number()
	h := s.live[o.Who]
	if !ok {
		if o.Return != nil && o.Value == nil && o.WaitMs != nil && *o.WaitMs == 0 {
			s.null(o)
		}
		return
	}
	if h != nil && h.Token == token {
		entries := 1
		if o.Request != "" && h.requests[o.Request] {
			entries = 0
		}
		h.requests[o.Request] = true
		s.extend(h, o)
		s.add(o.Call, *o.Return, Input{Step: stepEnter, Hold: Held{Token: token, Who: o.Who,
			Entries: entries}})
		return
	}
	if h != nil { // another grant: the client forgot the first
		s.over(h, min(h.counted(), o.Call), forever)
	}
	call := o.Call
	if o.Request != "" {
		call = s.first[o.Request]
	}
	h = &hold{Held: Held{token, o.Who, o.Kind, o.Permits, 1}, asked: call, granted: *o.Return,
		doubt: forever, leaving: forever, left: -1, requests: map[string]bool{o.Request: true}}
	s.extend(h, o)
	s.live[o.Who] = h
	s.add(call, *o.Return, Input{Step: stepGrant, Hold: h.Held, Limit: o.Limit})
}

func (s *story) null(o *Op) {
	for _, u := range s.unknown {
		if u.Call <= *o.Return && u.done() >= o.Call-memory && u.Call != o.Call {
			return
		}
	}
	if s.loose || s.troubled(o.Call, *o.Return) {
		return
	}
	s.add(max(0, o.Call-expiry), *o.Return, Input{Step: stepNull, Limit: o.Limit,
		Hold: Held{Kind: o.Kind, Permits: o.Permits, Token: -1}})
}

// ended is the answer of UNLOCK, or of RENEW that found nothing.
func (s *story) ended(o *Op) {
	h := s.live[o.Who]
	if h == nil {
		return
	}
	left, ok := o.number()
	sure := h.counted() >= o.Call && !s.troubled(h.granted, o.done())
	switch {
	case ok:
		h.left = int(left)
		s.over(h, h.counted(), *o.Return)
	case o.notHeld() && sure:
		s.add(o.Call, *o.Return, Input{Step: stepGone, Hold: h.Held})
		s.over(h, *o.Return+1, forever)
	case o.notHeld():
		s.over(h, min(h.counted(), o.Call), *o.Return)
	}
}

func (s *story) wrote(o *Op) {
	if o.Kind == "read" {
		return
	}
	for _, f := range s.faults {
		if f.Call <= o.Call && (loses[f.Name] || suspends[f.Name] && f.Who == o.Daemon) {
			return // by a hold that may have been lost
		}
	}
	for _, d := range s.ops { // the word of doubt is under way
		if (d.F == "told" || d.F == "closed") && d.Who == o.Who && d.Call >= o.Call &&
			d.Call <= o.Call+s.late(toldLate, o.Call) && o.Accepted {
			return
		}
	}
	step := stepWrite
	if !o.Accepted {
		step = stepDeny
	}
	s.add(o.Call, o.Call, Input{Step: step, Hold: Held{Token: o.Token}})
}

// happened handles one end of a request: its sending, or its answer.
func (s *story) happened(o *Op, answer bool) {
	h := s.live[o.Who]
	switch {
	case o.F == "write" && !answer:
		s.wrote(o)
	case o.F == "told" && !answer && h != nil:
		h.doubt = min(h.doubt, o.Call-s.late(toldLate, o.Call))
	case o.F == "closed" && !answer && h != nil && h.daemon == o.Daemon:
		h.doubt = min(h.doubt, o.Call)
	case o.F == "unlock" && !answer && h != nil:
		h.leaving = min(h.leaving, o.Call)
	case o.F == "unlock" && answer:
		s.ended(o)
	case o.F == "leave" && answer && h != nil:
		if left, ok := o.number(); ok {
			s.add(o.Call, *o.Return, Input{Step: stepLeave, Hold: h.Held, Left: int(left),
				MayHaveExtras: s.mayHaveExtras(o.Who, o.Call)})
		} else if o.notHeld() {
			s.ended(o)
		}
	case o.F == "renew" && answer && h != nil:
		if _, ok := o.number(); ok {
			s.extend(h, o)
			s.add(o.Call, *o.Return, Input{Step: stepAlive, Hold: h.Held})
		} else if o.notHeld() {
			s.ended(o)
		}
	case o.F == "lock" && answer:
		s.locked(o)
	}
}

// tell makes the steps.
func (s *story) tell() []porcupine.Operation {
	type end struct {
		at     int64
		op     *Op
		answer bool
	}
	var ends []end
	for i := range s.ops {
		o := &s.ops[i]
		ends = append(ends, end{o.Call, o, false})
		if o.Return != nil {
			ends = append(ends, end{*o.Return, o, true})
		}
		_, isNumber := o.number()
		if o.F == "lock" && !isNumber && (o.Return == nil || o.Value != nil || o.Request != "") {
			s.unknown = append(s.unknown, *o)
		}
		if o.F == "lock" && o.Request != "" {
			if at, ok := s.first[o.Request]; !ok || o.Call < at {
				s.first[o.Request] = o.Call
			}
		}
		s.loose = s.loose || o.Rests || o.Kind == "local" || o.Kind == "fair"
	}
	sort.SliceStable(ends, func(i, j int) bool {
		a, b := ends[i], ends[j]
		return a.at < b.at || (a.at == b.at && !a.answer && b.answer)
	})
	for _, e := range ends {
		s.happened(e.op, e.answer)
	}
	for _, h := range s.live { // what a fault may have taken ends as well
		s.over(h, h.counted(), forever)
	}
	for i := range s.steps {
		s.steps[i].ClientId = i
	}
	return s.steps
}

// Verdict of a name that is wrong, or was not judged in time.
type Verdict struct {
	Name   string
	Result porcupine.CheckResult
	Steps  int
}

func (v Verdict) String() string {
	return fmt.Sprintf("%s: %s (%d steps)", v.Name, v.Result, v.Steps)
}

// Judge checks each name on its own, and answers those that are not right, and the number of
// steps in all.
func Judge(ops []Op, limit time.Duration) ([]Verdict, int) {
	names := map[string]*story{}
	var faults, pauses, closed []Op
	for _, o := range ops {
		switch {
		case o.F == "fault":
			faults = append(faults, o)
		case o.F == "paused":
			pauses = append(pauses, o)
		case o.F == "closed":
			closed = append(closed, o)
		case names[o.Name] == nil:
			names[o.Name] = &story{name: o.Name, first: map[string]int64{},
				live: map[string]*hold{}}
			fallthrough
		default:
			names[o.Name].ops = append(names[o.Name].ops, o)
		}
	}
	var wrong []Verdict
	all := 0
	verdicts := make(chan Verdict)
	turn := make(chan struct{}, runtime.NumCPU())
	for name, s := range names {
		s.faults, s.pauses = faults, pauses
		s.ops = append(s.ops, closed...)
		go func(name string, s *story) {
			turn <- struct{}{}
			steps := s.tell()
			got := porcupine.CheckOperationsTimeout(FencedLock, steps, limit)
			<-turn
			verdicts <- Verdict{name, got, len(steps)}
		}(name, s)
	}
	for range names {
		v := <-verdicts
		all += v.Steps
		if v.Result != porcupine.Ok {
			wrong = append(wrong, v)
		}
	}
	sort.Slice(wrong, func(i, j int) bool { return wrong[i].Name < wrong[j].Name })
	return wrong, all
}
