// goagent TIMEOUT_S PATIENCE_S URL...: takes locks as it is told, with the helper for Go.
// tests/clients/helpers/README.md says how it is told.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"latchd.example/latchd"
)

var (
	client  *latchd.Client
	mu      sync.Mutex
	unlocks = map[string]func() error{}
	quits   = map[string]context.CancelFunc{}
	out     = make(chan string)
)

func say(words ...any) { out <- fmt.Sprintln(words...) }

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func millis(text string) time.Duration { return time.Duration(number(text)) * time.Millisecond }

func sayError(key string, err error) {
	var typed *latchd.Error
	switch {
	case errors.Is(err, context.Canceled):
		say(key, "gave-up")
	case errors.Is(err, latchd.ErrTimeout):
		say(key, "null")
	case errors.As(err, &typed):
		fmt.Fprintln(os.Stderr, key, err) // for who reads the log
		say(key, "error", typed.Code)
	default:
		panic(err)
	}
}

func options(key, wait string, words []string) []latchd.Option {
	all := []latchd.Option{latchd.OnUncertain(func() { say(key, "uncertain") })}
	if wait != "-" {
		all = append(all, latchd.Wait(millis(wait)))
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "fair":
			all = append(all, latchd.Fair())
		case "read":
			all = append(all, latchd.Read())
		case "write":
			all = append(all, latchd.Write())
		case "permits":
			permits, _ := strconv.Atoi(value)
			all = append(all, latchd.Permits(permits, 3))
		case "priority":
			priority, _ := strconv.Atoi(value)
			all = append(all, latchd.Priority(priority))
		case "queue":
			queue, _ := strconv.Atoi(value)
			all = append(all, latchd.Queue(queue))
		case "owner":
			all = append(all, latchd.Owner(value))
		case "lease":
			all = append(all, latchd.Lease(millis(value)))
		case "grace":
			all = append(all, latchd.Grace(millis(value)))
		case "at_least":
			all = append(all, latchd.AtLeast(millis(value)))
		case "keep":
			all = append(all, latchd.Keep(millis(value)))
		case "data":
			all = append(all, latchd.Data(value))
		case "heartbeat":
			all = append(all, latchd.Heartbeat(millis(value)))
		}
	}
	return all
}

func lock(ctx context.Context, key, name string, options []latchd.Option) {
	held, tokens, unlock, err := client.LockAll(ctx, strings.Split(name, ","), options...)
	if err != nil {
		sayError(key, err)
		return
	}
	mu.Lock()
	unlocks[key] = unlock
	mu.Unlock()
	say(key, "token", strings.Trim(fmt.Sprint(tokens), "[]"))
	<-held.Done()
	if errors.Is(context.Cause(held), latchd.ErrLost) {
		say(key, "lost")
	}
}

func locked(key string, names []string) {
	is, err := client.Locked(context.Background(), names...)
	switch {
	case err != nil:
		sayError(key, err)
	case is:
		say(key, "answer", 1)
	default:
		say(key, "answer", 0)
	}
}

func follow(ctx context.Context, key, name string) {
	sayError(key, client.Follow(ctx, name, func(l latchd.Leader) {
		data := l.Data
		if data == "" {
			data = "-"
		}
		say(key, "leader", l.Token, data)
	}))
}

func crowd(key, name string, count, turns int) {
	var inside, overlaps atomic.Int32
	var all sync.WaitGroup
	for range count {
		all.Add(1)
		go func() {
			defer all.Done()
			for range turns {
				_, _, unlock, err := client.Lock(context.Background(), name)
				if err != nil {
					panic(err)
				}
				overlaps.Add(inside.Add(1) - 1)
				runtime.Gosched()
				inside.Add(-1)
				if err := unlock(); err != nil {
					panic(err)
				}
			}
		}()
	}
	all.Wait()
	say(key, "overlaps", overlaps.Load())
}

func latch(key, what, name string, words []string) {
	l, ctx, id := client.Latch(name), context.Background(), ""
	var answer int64
	var done bool
	var err error
	if what != "await" && len(words) > 0 {
		id = words[len(words)-1]
	}
	switch what {
	case "set":
		if len(words) == 1 {
			id = ""
		}
		done, err = l.Set(ctx, int64(number(words[0])), id)
	case "count":
		answer, err = l.Count(ctx, id)
	case "await":
		ctx, cancel := context.WithTimeout(ctx, millis(words[0]))
		defer cancel()
		err = l.Wait(ctx)
		done = err == nil
		if errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
	case "delete":
		done, err = l.Delete(ctx)
	}
	if err != nil {
		sayError(key, err)
		return
	}
	if done {
		answer = 1
	}
	say(key, "answer", answer)
}

func obey(what, key string, words []string) {
	switch what {
	case "lock":
		ctx, quit := context.WithCancel(context.Background())
		mu.Lock()
		quits[key] = quit
		mu.Unlock()
		go lock(ctx, key, words[0], options(key, words[1], words[2:]))
	case "follow":
		ctx, quit := context.WithCancel(context.Background())
		mu.Lock()
		quits[key] = quit
		mu.Unlock()
		go follow(ctx, key, words[0])
	case "give-up", "leave":
		mu.Lock()
		defer mu.Unlock()
		quits[key]()
	case "unlock":
		go func() {
			mu.Lock()
			unlock := unlocks[key]
			mu.Unlock()
			if err := unlock(); err != nil {
				sayError(key, err)
				return
			}
			say(key, "unlocked")
		}()
	case "locked":
		go locked(key, strings.Split(words[0], ","))
	case "latch":
		go latch(key, words[0], words[1], words[2:])
	case "child":
		child := exec.Command("sleep", "infinity")
		if err := child.Start(); err != nil {
			panic(err)
		}
		say(key, "pid", child.Process.Pid)
	case "crowd":
		go crowd(key, words[0], number(words[1]), number(words[2]))
	}
}

func main() {
	go func() {
		for line := range out {
			fmt.Print(line)
		}
	}()
	seconds := func(text string) time.Duration { return time.Duration(number(text)) * time.Second }
	var err error
	client, err = latchd.New(os.Args[3:], latchd.Timeout(seconds(os.Args[1])),
		latchd.Patience(seconds(os.Args[2])), latchd.Logger(slog.New(slog.NewTextHandler(os.Stderr, nil))))
	if err != nil {
		panic(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		obey(words[0], words[1], words[2:])
	}
}
