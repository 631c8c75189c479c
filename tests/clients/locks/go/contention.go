package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Who had the lock last, and how long everybody waited.
type contention struct {
	sync.Mutex
	end                 time.Time
	hold, pause         time.Duration
	guard               string
	last                int
	handovers, overlaps int
	waits               []string
	err                 error
}

// Whether it came before the end.
func (c *contention) enter(me int, began time.Time) bool {
	c.Lock()
	defer c.Unlock()
	waited, inTime := time.Since(began).Microseconds(), time.Now().Before(c.end)
	if !inTime {
		waited = -waited
	}
	c.waits = append(c.waits, strconv.FormatInt(waited, 10))
	file, err := os.OpenFile(c.guard, os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		c.overlaps++
	} else {
		file.Close()
	}
	if inTime && c.last >= 0 && c.last != me {
		c.handovers++
	}
	c.last = me
	return inTime
}

func (c *contention) leave() {
	c.Lock()
	defer c.Unlock()
	if os.Remove(c.guard) != nil {
		c.overlaps++
	}
}

func (c *contention) takeTurns(one library, me int, name string) error {
	for time.Now().Before(c.end) {
		began := time.Now()
		lock, err := one.acquire(name, lease, wait)
		if err != nil {
			return err
		}
		if lock == nil {
			return fmt.Errorf("not acquired in %v", wait)
		}
		if c.enter(me, began) {
			time.Sleep(c.hold)
		}
		c.leave()
		if _, err := lock.release(); err != nil {
			return err
		}
		time.Sleep(time.Duration(rand.Float64() * 2 * float64(c.pause)))
	}
	return nil
}

func micros(word string) time.Duration {
	return ms(word) / 1000
}

// NAME CLIENTS SECONDS HOLD_US PAUSE_US GUARD
func contend(connect func() library, words []string) (string, error) {
	count, err := strconv.Atoi(words[1])
	seconds, wrong := strconv.ParseFloat(words[2], 64)
	if err = errors.Join(err, wrong); err != nil {
		return "", err
	}
	c := &contention{
		end:  time.Now().Add(time.Duration(seconds * float64(time.Second))),
		hold: micros(words[3]), pause: micros(words[4]), guard: words[5], last: -1,
	}
	var group sync.WaitGroup
	for me := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			if err := c.takeTurns(connect(), me, words[0]); err != nil {
				c.Lock()
				c.err = errors.Join(c.err, err)
				c.Unlock()
			}
		}()
	}
	group.Wait()
	return fmt.Sprintf("contended %d %d %s", c.handovers, c.overlaps,
		strings.Join(c.waits, " ")), c.err
}
