// latchd from rueidis, which sends everybody's commands over one connection, and those
// marked as blocking over one of a pool.
//
// rueidis HOST PORT PROTOCOL USER PASSWORD CA NAME SCENARIO..., see ../../../README.md
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

var (
	ctx    = context.Background()
	latchd rueidis.Client
	name   string
)

func connect(args []string) rueidis.Client {
	options := rueidis.ClientOption{InitAddress: []string{args[0] + ":" + args[1]}}
	if args[2] == "2" {
		options.AlwaysRESP2, options.DisableCache = true, true
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
		options.TLSConfig = &tls.Config{RootCAs: roots, ServerName: args[0]}
	}
	client, err := rueidis.NewClient(options)
	check(err == nil, err)
	return client
}

func check(good bool, got ...any) {
	if !good {
		panic(fmt.Sprint("unexpected: ", got))
	}
}

func command(words ...any) rueidis.Completed {
	var text []string
	for _, word := range words {
		text = append(text, fmt.Sprint(word))
	}
	return latchd.B().Arbitrary(text[0]).Args(text[1:]...).Build()
}

// What must be answered with a number.
func ask(words ...any) int64 {
	number, err := latchd.Do(ctx, command(words...)).AsInt64()
	check(err == nil, words, err)
	return number
}

// What must be answered with null.
func none(words ...any) {
	err := latchd.Do(ctx, command(words...)).Error()
	check(rueidis.IsRedisNil(err), words, err)
}

// What must be answered with an error.
func refused(word string, words ...any) {
	err := latchd.Do(ctx, command(words...)).Error()
	reply, ok := rueidis.IsRedisErr(err)
	check(ok && strings.HasPrefix(reply.Error(), word), words, err)
}

func version() {
	fmt.Println("version", rueidis.LibVer)
}

func hello() {
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
	check(ask("LOCK", name, "FAIR", "WAIT", 0) > token)
	check(ask("UNLOCK", name) == 0)
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
	refused("unknown option", "LOCK", name, "SOON") // it takes the ERR off
}

func share() {
	one, two := ask("LOCK", name, "READ"), ask("LOCK", name, "READ")
	none("LOCK", name, "WRITE", "WAIT", 0)
	check(ask("UNLOCK", name, "TOKEN", one)+ask("UNLOCK", name, "TOKEN", two) == 0)
	token := ask("LOCK", name, "WRITE", "WAIT", 0)
	check(ask("UNLOCK", name, "TOKEN", token) == 0)
}

func pipeline() {
	locks := latchd.DoMulti(ctx, command("LOCK", name+"1", "WAIT", 0),
		command("LOCK", name+"2", "WAIT", 0), command("LOCK", name+"1", "WAIT", 0))
	one, _ := locks[0].AsInt64()
	two, _ := locks[1].AsInt64()
	check(one > 0 && two > 0 && rueidis.IsRedisNil(locks[2].Error()), locks)
	for _, reply := range latchd.DoMulti(ctx, command("UNLOCK", name+"1", "TOKEN", one),
		command("UNLOCK", name+"2", "TOKEN", two)) {
		left, err := reply.AsInt64()
		check(left == 0 && err == nil, left, err)
	}
}

func multi() {
	replies := latchd.DoMulti(ctx, command("MULTI"), command("LOCK", name, "WAIT", 0),
		command("LOCK", name, "WAIT", 0), command("EXEC"))
	locked, err := replies[3].ToArray()
	check(err == nil && len(locked) == 2 && locked[1].IsNil(), locked, err)
	token, _ := locked[0].AsInt64()
	check(ask("UNLOCK", name, "TOKEN", token) == 0)
}

// Holds a lock for 50 ms, over that connection. With a context that can be cancelled, as
// that of a request: else rueidis sends nothing while it waits for its first reply.
func work(client rueidis.Client, lock, request string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request = name + "-" + request + "-in-turn"
	for {
		words := client.B().Arbitrary("LOCK", lock, "WAIT", "4000", "ID", request)
		token, err := client.Do(ctx, words.Build()).AsInt64()
		if err == nil {
			check(token > 0, token)
			break
		}
		check(rueidis.IsRedisNil(err), err)
	}
	time.Sleep(50 * time.Millisecond)
	words := client.B().Arbitrary("UNLOCK", lock, "ID", request)
	left, err := client.Do(ctx, words.Build()).AsInt64()
	check(left == 0 && err == nil, left, err)
}

// Three take turns, and one takes a lock that is free, behind those who wait.
func spent(kind string, clients []rueidis.Client) time.Duration {
	var all sync.WaitGroup
	began := time.Now()
	for i := 0; i < 4; i++ {
		lock, request := name, fmt.Sprint(kind, "-", i)
		if i == 3 {
			lock += "-free"
		}
		all.Add(1)
		go func(client rueidis.Client) {
			defer all.Done()
			work(client, lock, request)
		}(clients[i%len(clients)])
		time.Sleep(5 * time.Millisecond) // in this order
	}
	all.Wait()
	return time.Since(began)
}

// They need not twice the time over one connection that they need with one each.
func turns() {
	four := []rueidis.Client{}
	for len(four) < 4 {
		four = append(four, connect(os.Args[1:]))
	}
	many := spent("each", four)
	one := spent("one", []rueidis.Client{latchd})
	for _, client := range four {
		client.Close()
	}
	fmt.Println("turns of 3 x 50 ms, and one beside:", one, "over one connection,", many,
		"over four")
	check(one <= 2*many, one)
}

func hear(messages chan rueidis.PubSubMessage, channel string) string {
	for {
		select {
		case message := <-messages:
			if message.Channel == channel {
				return message.Message
			}
		case <-time.After(5 * time.Second):
			panic("nothing on " + channel)
		}
	}
}

func events() {
	messages := make(chan rueidis.PubSubMessage, 16)
	subscribed := make(chan bool, 2)
	subscriber, close := latchd.Dedicate()
	defer close()
	subscriber.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { messages <- m },
		OnSubscription: func(s rueidis.PubSubSubscription) { subscribed <- true },
	})
	subscriber.Do(ctx, latchd.B().Subscribe().Channel("lost:"+name).Build())
	subscriber.Do(ctx, latchd.B().Psubscribe().Pattern("g*:"+name).Build())
	<-subscribed
	<-subscribed
	payload := fmt.Sprint("joe ", ask("LOCK", name, "OWNER", "joe"))
	check(hear(messages, "granted:"+name) == payload)
	check(ask("FORCEUNLOCK", name, "OWNER", "joe") == 1)
	check(hear(messages, "lost:"+name) == payload)
}

// Asks until there is a token, over a connection where nobody else waits behind it.
func wait(request, patience string) {
	for asked := 1; ; asked++ {
		lock := latchd.B().Arbitrary("LOCK", name, "WAIT", patience, "ID", request).Blocking()
		token, err := latchd.Do(ctx, lock).AsInt64()
		if err == nil {
			fmt.Println("token", token, asked)
			break
		}
		_, reply := rueidis.IsRedisErr(err)
		check(rueidis.IsRedisNil(err) || !reply, err)
	}
	for {
		left, err := latchd.Do(ctx, command("UNLOCK", name, "ID", request)).AsInt64()
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
		"turns": turns,
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
