// A program that takes locks as it is told (README.md): locks LIBRARY HOST PORT.
package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	lease = 10 * time.Second
	wait  = time.Minute
)

// A lock that was acquired; false: it was not held any more.
type held interface {
	extend(lease time.Duration) (bool, error)
	release() (bool, error)
}

// A lock of a server that has fencing tokens and sessions (tests/torture/agents/go/etcd.go).
type fenced interface {
	token() int64
	lost() <-chan struct{}
}

// A library, with a connection of its own. A wait of 0 is one try; nil: refused.
type library interface {
	acquire(name string, lease, wait time.Duration) (held, error)
}

var libraries = map[string]func(address string) library{
	"redsync":   newRedsync,
	"redislock": newRedislock,
}

var (
	speaking sync.Mutex
	locks    sync.Map
)

func say(key, what string) {
	speaking.Lock()
	defer speaking.Unlock()
	fmt.Println(key, what)
}

func ms(word string) time.Duration {
	number, err := strconv.Atoi(word)
	if err != nil {
		panic(err)
	}
	return time.Duration(number) * time.Millisecond
}

func choose(good bool, yes string) string {
	if good {
		return yes
	}
	return "refused"
}

func obey(connect func() library, one library, words []string) (string, error) {
	what, key := words[0], words[1]
	switch what {
	case "acquire":
		lock, err := one.acquire(words[2], ms(words[3]), ms(words[4]))
		if lock != nil {
			locks.Store(key, lock)
		}
		if lock, good := lock.(fenced); good {
			go func() {
				<-lock.lost()
				say(key, "lost")
			}()
			return fmt.Sprint("acquired ", lock.token()), err
		}
		return choose(lock != nil, "acquired"), err
	case "contend":
		return contend(connect, words[2:])
	}
	found, _ := locks.Load(key)
	lock := found.(held)
	if what == "extend" {
		good, err := lock.extend(ms(words[2]))
		return choose(good, "extended"), err
	}
	good, err := lock.release()
	return choose(good, "released"), err
}

func main() {
	make, address := libraries[os.Args[1]], os.Args[2]+":"+os.Args[3]
	connect := func() library { return make(address) }
	one := connect()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		words := strings.Fields(lines.Text())
		go func() {
			said, err := obey(connect, one, words)
			if err != nil {
				said = "error " + err.Error()
			}
			say(words[1], said)
		}()
	}
}
