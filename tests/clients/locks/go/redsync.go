package main

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	pool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

type redsyncLibrary struct{ sync *redsync.Redsync }

type redsyncLock struct{ mutex *redsync.Mutex }

// HOST:PORT, or HOST:PORT,PORT... of masters.
func newRedsync(address string) library {
	host, ports, _ := strings.Cut(address, ":")
	var masters []pool.Pool
	for port := range strings.SplitSeq(ports, ",") {
		masters = append(masters, goredis.NewPool(
			redis.NewClient(&redis.Options{Addr: host + ":" + port})))
	}
	return redsyncLibrary{redsync.New(masters...)}
}

// What it says when somebody else has the lock, or when it was not held any more.
func redsyncRefuses(err error) bool {
	var taken *redsync.ErrTaken
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) ||
		errors.Is(err, redsync.ErrLockAlreadyExpired) || errors.Is(err, redsync.ErrExtendFailed)
}

func (r redsyncLibrary) acquire(name string, lease, wait time.Duration) (held, error) {
	mutex := r.sync.NewMutex(name, redsync.WithExpiry(lease), redsync.WithTries(math.MaxInt32))
	lock := mutex.TryLockContext
	if wait > 0 {
		lock = mutex.LockContext
	}
	ctx, cancel := context.WithTimeout(context.Background(), max(wait, lease))
	defer cancel()
	err := lock(ctx)
	if redsyncRefuses(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return redsyncLock{mutex}, nil
}

func (l redsyncLock) extend(lease time.Duration) (bool, error) {
	redsync.WithExpiry(lease).Apply(l.mutex)
	good, err := l.mutex.Extend()
	if redsyncRefuses(err) {
		return false, nil
	}
	return good, err
}

func (l redsyncLock) release() (bool, error) {
	good, err := l.mutex.Unlock()
	if redsyncRefuses(err) {
		return false, nil
	}
	return good, err
}
