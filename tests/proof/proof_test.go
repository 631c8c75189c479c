package proof

import (
	"bufio"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// pair is a line of planted.jsonl: a history that is wrong in one way, and a right one near it.
// An event is [client, f, call, return, value, options]; times are ms.
type pair struct {
	Case         string
	Wrong, Right [][]json.RawMessage
}

func unpack(t *testing.T, events [][]json.RawMessage) []Op {
	var ops []Op
	for _, e := range events {
		op := Op{Name: "n", Daemon: "a", Kind: "plain"}
		for i, into := range []interface{}{&op.Who, &op.F, &op.Call, &op.Return, &op.Value, &op} {
			if i < len(e) {
				if err := json.Unmarshal(e[i], into); err != nil {
					t.Fatal(err)
				}
			}
		}
		op.Call *= ms
		if op.Return != nil {
			*op.Return *= ms
		}
		ops = append(ops, op)
	}
	return ops
}

func TestPlanted(t *testing.T) {
	file, err := os.Open("planted.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	count := 0
	for lines := bufio.NewScanner(file); lines.Scan(); count++ {
		var p pair
		if err := json.Unmarshal(lines.Bytes(), &p); err != nil {
			t.Fatal(err)
		}
		if got, _ := Judge(unpack(t, p.Wrong), time.Second); len(got) == 0 {
			t.Errorf("%s: the wrong one is accepted", p.Case)
		}
		if got, _ := Judge(unpack(t, p.Right), time.Minute); len(got) != 0 {
			t.Errorf("%s: the right one is refused: %v", p.Case, got)
		}
	}
	if count < 40 {
		t.Errorf("only %d pairs are planted", count)
	}
}

// TestHistory judges the file that LATCHD_HISTORY names.
func TestHistory(t *testing.T) {
	path := os.Getenv("LATCHD_HISTORY")
	if path == "" {
		t.Skip("LATCHD_HISTORY is not set")
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	ops, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range ops {
		if op.F == "fault" && op.Name == "clock" {
			t.Skip("the model has no clock that goes back")
		}
	}
	wrong, steps := Judge(ops, 5*time.Second)
	for _, w := range wrong {
		if w.Result == porcupine.Unknown {
			t.Log(w) // there were too many orders to try, which is no verdict
			continue
		}
		t.Error(w)
	}
	t.Logf("%d lines, %d steps", len(ops), steps)
}
