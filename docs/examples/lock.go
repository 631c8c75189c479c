package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

var (
	latchd   = connect()
	renewals = connect() // no LOCK ever occupies one of its connections
	errLost  = errors.New("the lock is lost")
)

func connect() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: "127.0.0.1:5625", ContextTimeoutEnabled: true})
}

func lock(ctx context.Context, name, request string) (token int64, err error) {
	for err = redis.Nil; errors.Is(err, redis.Nil); {
		token, err = latchd.Do(ctx, "LOCK", name, "WAIT", 2000, "ID", request).Int64()
	}
	return token, err
}

// hold works under the lock. The context of the work is cancelled when the lock is lost.
func hold(parent context.Context, name string, work func(context.Context, int64) error) error {
	request := uuid.NewString()
	token, err := lock(parent, name, request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	over := time.AfterFunc(time.Hour, func() { cancel(errLost) })
	renew := func() (time.Duration, error) {
		sent := time.Now()
		left, err := renewals.Do(ctx, "RENEW", name, "ID", request).Int64()
		lease := time.Duration(left) * time.Millisecond
		if err == nil {
			over.Reset(time.Until(sent.Add(lease)))
		}
		return lease / 3, err
	}
	pause, err := renew()
	if err == nil {
		go keep(ctx, cancel, pause, renew)
		err = work(ctx, token)
	}
	over.Stop()
	_, failed := latchd.Do(context.WithoutCancel(parent), "UNLOCK", name, "ID", request).Result()
	return errors.Join(err, failed)
}

func keep(ctx context.Context, cancel context.CancelCauseFunc, pause time.Duration,
	renew func() (time.Duration, error)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		var err error
		if pause, err = renew(); err != nil {
			pause = 100 * time.Millisecond // latchd may be restarting
			if strings.HasPrefix(err.Error(), "NOTHELD") {
				cancel(errLost)
			}
		}
	}
}

func work(ctx context.Context, token int64) error {
	fmt.Println("working with fencing token", token)
	for range 20 {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	if err := hold(ctx, "job", work); err != nil {
		log.Fatal(err)
	}
}
