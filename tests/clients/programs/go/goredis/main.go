// latchd from go-redis.
//
// goredis HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../../../README.md
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	ctx    = context.Background()
	latchd *redis.Client
	name   string
)

func connect(args []string) *redis.Client {
	options := &redis.Options{Addr: args[0] + ":" + args[1]}
	if args[2] != "-" {
		options.Protocol, _ = strconv.Atoi(args[2])
	}
	if args[3] != "-" {
		options.Username = args[3]
	}
	if args[4] != "-" {
		options.Password = args[4]
	}
	if args[5] != "-" {
		pem, err := os.ReadFile(args[5])
		check(err == nil, err)
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		options.TLSConfig = &tls.Config{RootCAs: roots}
	}
	return redis.NewClient(options)
}

func check(good bool, got ...any) {
	if !good {
		panic(fmt.Sprint("unexpected: ", got))
	}
}

// What must be answered with a number.
func ask(words ...any) int64 {
	number, err := latchd.Do(ctx, words...).Int64()
	check(err == nil, words, err)
	return number
}

// What must be answered with null.
func none(words ...any) {
	_, err := latchd.Do(ctx, words...).Result()
	check(errors.Is(err, redis.Nil), words, err)
}

// What must be answered with an error of redis's own.
func refused(word string, words ...any) {
	var reply redis.Error
	_, err := latchd.Do(ctx, words...).Result()
	check(errors.As(err, &reply) && strings.HasPrefix(err.Error(), word), words, err)
}

func version() {
	fmt.Println("version", redis.Version())
}

func hello() {
	check(latchd.Ping(ctx).Val() == "PONG")
	token := ask("LOCK", name, "WAIT", 0)
	check(token > 1<<31, token)
	check(ask("UNLOCK", name, "TOKEN", token) == 0)
}

func busy() {
	token := ask("LOCK", name)
	none("LOCK", name, "WAIT", 0)
	none("LOCK", name, "WAIT", 50)
	check(ask("RENEW", name, "TOKEN", token) > 0)
	check(ask("UNLOCK", name, "TOKEN", token) == 0)
	fair := ask("LOCK", name, "FAIR", "WAIT", 0)
	check(fair > token, fair)
	check(ask("UNLOCK", name, "TOKEN", fair) == 0)
}

func reenter() {
	token := ask("LOCK", name, "OWNER", "ann")
	check(ask("LOCK", name, "OWNER", "ann") == token)
	check(ask("UNLOCK", name, "OWNER", "ann") == 1)
	check(ask("UNLOCK", name, "OWNER", "ann") == 0)
}

func lose() {
	token := ask("LOCK", name)
	check(ask("FORCEUNLOCK", name, "TOKEN", token) == 1)
	refused("NOTHELD ", "UNLOCK", name, "TOKEN", token)
	refused("NOTHELD ", "RENEW", name, "TOKEN", token)
	refused("ERR unknown option", "LOCK", name, "SOON")
}

func share() {
	one, two := ask("LOCK", name, "READ"), ask("LOCK", name, "READ")
	none("LOCK", name, "WRITE", "WAIT", 0)
	check(ask("UNLOCK", name, "TOKEN", one)+ask("UNLOCK", name, "TOKEN", two) == 0)
	token := ask("LOCK", name, "WRITE", "WAIT", 0)
	check(ask("UNLOCK", name, "TOKEN", token) == 0)
}

func both(send func() redis.Pipeliner) {
	locks := send()
	var replies []*redis.Cmd
	for _, which := range []string{"1", "2", "1"} {
		replies = append(replies, locks.Do(ctx, "LOCK", name+which, "WAIT", 0))
	}
	_, err := locks.Exec(ctx)
	check(errors.Is(err, redis.Nil), err)
	one, _ := replies[0].Int64()
	two, _ := replies[1].Int64()
	check(one > 0 && two > 0 && errors.Is(replies[2].Err(), redis.Nil), replies)
	unlocks := send()
	unlocks.Do(ctx, "UNLOCK", name+"1", "TOKEN", one)
	unlocks.Do(ctx, "UNLOCK", name+"2", "TOKEN", two)
	left, err := unlocks.Exec(ctx)
	check(err == nil && left[0].(*redis.Cmd).Val() == int64(0), left, err)
}

func pipeline() { both(latchd.Pipeline) }
func multi()    { both(latchd.TxPipeline) }

func hear(subscriber *redis.PubSub, channel string) string {
	for {
		message, err := subscriber.ReceiveTimeout(ctx, 5*time.Second)
		check(err == nil, channel, err)
		if m, ok := message.(*redis.Message); ok && m.Channel == channel {
			return m.Payload
		}
	}
}

func events() {
	subscriber := latchd.Subscribe(ctx, "lost:"+name)
	defer subscriber.Close()
	check(subscriber.PSubscribe(ctx, "g*:"+name) == nil)
	for range 2 {
		_, err := subscriber.ReceiveTimeout(ctx, 5*time.Second)
		check(err == nil, err)
	}
	payload := fmt.Sprint("joe ", ask("LOCK", name, "OWNER", "joe"))
	check(hear(subscriber, "granted:"+name) == payload)
	check(ask("FORCEUNLOCK", name, "OWNER", "joe") == 1)
	check(hear(subscriber, "lost:"+name) == payload)
}

// Asks until there is a token. go-redis sends a command again after 5 s without a reply,
// on another connection, three times; the ID makes that right, and keeps the place when
// it is at its end.
func wait(request, patience string) {
	for asked := 1; ; asked++ {
		token, err := latchd.Do(ctx, "LOCK", name, "WAIT", patience, "ID", request).Int64()
		if err == nil {
			fmt.Println("token", token, asked)
			break
		}
		var reply redis.Error
		check(errors.Is(err, redis.Nil) || !errors.As(err, &reply), err)
	}
	for {
		left, err := latchd.Do(ctx, "UNLOCK", name, "ID", request).Int64()
		if err == nil {
			fmt.Println("left", left)
			return
		}
	}
}

func main() {
	latchd = connect(os.Args[1:])
	defer latchd.Close()
	name = os.Args[7]
	scenarios := map[string]func(){
		"version": version, "hello": hello, "busy": busy, "reenter": reenter, "lose": lose,
		"share": share, "pipeline": pipeline, "multi": multi, "events": events,
	}
	if os.Args[8] == "wait" {
		wait(os.Args[9], os.Args[10])
		return
	}
	for _, scenario := range os.Args[8:] {
		scenarios[scenario]()
		fmt.Println("ok", scenario)
	}
}
