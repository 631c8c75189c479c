// Package proof judges histories of latchd's clients by the manual pages latchd-protocol(7)
// and latchd-promises(7), and by nothing else. It shares no code with tests/torture.
//
// Each name is a state machine for porcupine: who holds it, the highest token that was given,
// and the highest token that the guarded register has seen. A grant takes effect at one moment
// of its LOCK. A hold may end as soon as its client stops counting on it, and not before.
package proof

import (
	"sort"

	"github.com/anishathalye/porcupine"
)

// Held is one hold, with the number of its entries.
type Held struct {
	Token   int64
	Who     string
	Kind    string
	Permits int
	Entries int
}

// State of a name. Holds are in the order of their tokens, and never changed in place.
type State struct {
	Max, Guard int64
	Holds      []Held
}

// Step kinds.
const (
	stepGrant = iota // LOCK answered a new token
	stepEnter        // LOCK answered the token of its own hold
	stepLeave        // UNLOCK ended one entry of several
	stepEnd          // the hold is over
	stepAlive        // RENEW answered a number
	stepGone         // UNLOCK or RENEW answered NOTHELD
	stepNull         // LOCK with WAIT 0 answered null
	stepWrite        // the guarded register took a write
	stepDeny         // the guarded register refused a write
)

// Input of one step.
type Input struct {
	Step          int
	Name          string
	Hold          Held
	Limit, Left   int
	MayHaveExtras bool // an entry may exist that nobody was told of
}

func shared(kind string) bool { return kind == "read" || kind == "permits" }

func (s State) find(token int64) int {
	for i, h := range s.Holds {
		if h.Token == token {
			return i
		}
	}
	return -1
}

// room says if a hold may join those that are there.
func (s State) room(in Input) bool {
	sum := in.Hold.Permits
	for _, h := range s.Holds {
		if !shared(h.Kind) || h.Kind != in.Hold.Kind {
			return false
		}
		sum += h.Permits
	}
	return in.Hold.Kind != "permits" || sum <= in.Limit
}

// with returns the state with one hold replaced, or removed if it has no entry.
func (s State) with(at int, h Held) State {
	holds := append([]Held{}, s.Holds[:at]...)
	if h.Entries > 0 {
		holds = append(holds, h)
	}
	if at < len(s.Holds) {
		holds = append(holds, s.Holds[at+1:]...)
	}
	sort.Slice(holds, func(i, j int) bool { return holds[i].Token < holds[j].Token })
	s.Holds = holds
	return s
}

func step(state, input, _ interface{}) (bool, interface{}) {
	s, in := state.(State), input.(Input)
	at := s.find(in.Hold.Token)
	switch in.Step {
	case stepGrant:
		if in.Hold.Token <= s.Max || !s.room(in) {
			return false, s
		}
		s = s.with(len(s.Holds), in.Hold)
		s.Max = in.Hold.Token
	case stepEnter:
		if at < 0 || s.Holds[at].Who != in.Hold.Who {
			return false, s
		}
		h := s.Holds[at]
		h.Entries += in.Hold.Entries
		s = s.with(at, h)
	case stepLeave:
		if at < 0 {
			return false, s
		}
		h := s.Holds[at]
		h.Entries--
		if in.Left < 1 || (in.Left != h.Entries && !in.MayHaveExtras) {
			return false, s
		}
		if h.Entries > 0 {
			s = s.with(at, h)
		}
	case stepEnd:
		if at >= 0 {
			if in.Left >= 0 && !in.MayHaveExtras && in.Left != s.Holds[at].Entries-1 {
				return false, s
			}
			s = s.with(at, Held{})
		}
		return at >= 0, s
	case stepAlive:
		return at >= 0, s
	case stepGone:
		return at < 0, s
	case stepNull:
		return len(s.Holds) > 0 && !(in.Hold.Kind == "permits" && s.room(in)), s
	case stepWrite:
		if in.Hold.Token < s.Guard {
			return false, s
		}
		s.Guard = in.Hold.Token
	case stepDeny:
		return in.Hold.Token < s.Guard, s
	}
	return true, s
}

func equal(a, b interface{}) bool {
	x, y := a.(State), b.(State)
	if x.Max != y.Max || x.Guard != y.Guard || len(x.Holds) != len(y.Holds) {
		return false
	}
	for i := range x.Holds {
		if x.Holds[i] != y.Holds[i] {
			return false
		}
	}
	return true
}

// FencedLock is the model of one name.
var FencedLock = porcupine.Model{
	Init:  func() interface{} { return State{} },
	Step:  step,
	Equal: equal,
}
