package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

const redislockPoll = 100 * time.Millisecond // it leaves that to its user

type redislockLibrary struct{ client *redislock.Client }

type redislockLock struct{ lock *redislock.Lock }

func newRedislock(address string) library {
	return redislockLibrary{redislock.New(redis.NewClient(&redis.Options{Addr: address}))}
}

func redislockRefuses(err error) bool {
	return errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld)
}

func (r redislockLibrary) acquire(name string, lease, wait time.Duration) (held, error) {
	options := &redislock.Options{}
	if wait > 0 {
		options.RetryStrategy = redislock.LimitRetry(
			redislock.LinearBackoff(redislockPoll), int(wait/redislockPoll))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*max(wait, lease))
	defer cancel()
	lock, err := r.client.Obtain(ctx, name, lease, options)
	if redislockRefuses(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return redislockLock{lock}, nil
}

func (l redislockLock) extend(lease time.Duration) (bool, error) {
	err := l.lock.Refresh(context.Background(), lease, nil)
	if redislockRefuses(err) {
		return false, nil
	}
	return err == nil, err
}

func (l redislockLock) release() (bool, error) {
	err := l.lock.Release(context.Background())
	if redislockRefuses(err) {
		return false, nil
	}
	return err == nil, err
}
