package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// etcd's package concurrency, as its documentation shows it: a session, and a mutex of it. A session
// holds a name once, so that each acquire has its own. Its connection is made with the first, and
// is kept alive as etcdctl's is.
type etcdLibrary func() (*clientv3.Client, error)

type etcdLock struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func init() {
	libraries["etcd"] = func(address string) library {
		host, ports, _ := strings.Cut(address, ":")
		var places []string
		for port := range strings.SplitSeq(ports, ",") {
			places = append(places, host+":"+port)
		}
		return etcdLibrary(sync.OnceValues(func() (*clientv3.Client, error) {
			return clientv3.New(clientv3.Config{Endpoints: places, DialTimeout: 5 * time.Second,
				DialKeepAliveTime: 2 * time.Second, DialKeepAliveTimeout: 6 * time.Second})
		}))
	}
}

func (connect etcdLibrary) acquire(name string, lease, wait time.Duration) (held, error) {
	client, err := connect()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	grant, err := client.Grant(ctx, int64(lease.Seconds()))
	if err != nil {
		return nil, err
	}
	session, err := concurrency.NewSession(client, concurrency.WithLease(grant.ID),
		concurrency.WithTTL(int(lease.Seconds())))
	if err != nil {
		return nil, err
	}
	mutex := concurrency.NewMutex(session, "/locks/"+name)
	if err = mutex.Lock(ctx); err != nil {
		go session.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, nil
		}
		return nil, err
	}
	return etcdLock{session, mutex}, nil
}

func (l etcdLock) token() int64 {
	return l.mutex.Header().Revision
}

func (l etcdLock) lost() <-chan struct{} {
	return l.session.Done()
}

func (l etcdLock) extend(time.Duration) (bool, error) {
	return false, errors.ErrUnsupported
}

func (l etcdLock) release() (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	err := l.mutex.Unlock(ctx)
	return err == nil, errors.Join(err, l.session.Close())
}
