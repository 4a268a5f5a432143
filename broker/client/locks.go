package client

import (
	"sync"
	"time"
)

// lockLife is how long a queue stays locked after its owner last asked for it (RebalanceLockManager). Both clients ask
// again every 20 s.
const lockLife = 60 * time.Second

// Queue names a message queue.
type Queue struct {
	Topic  string
	Broker string
	ID     int32
}

// locks says which client of an orderly group owns a queue.
type locks struct {
	mu     sync.Mutex
	queues map[string]map[Queue]lock // by group
}

type lock struct {
	clientID string
	at       time.Time
}

// take locks the queues that are free, or the client's already, and returns those it now owns.
func (l *locks) take(group, clientID string, queues []Queue, now time.Time) []Queue {
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.queues[group]
	if held == nil {
		held = map[Queue]lock{}
		l.queues[group] = held
	}
	var owned []Queue
	for _, q := range queues {
		if have, ok := held[q]; ok && have.clientID != clientID && now.Sub(have.at) <= lockLife {
			continue
		}
		held[q] = lock{clientID, now}
		owned = append(owned, q)
	}
	return owned
}

// give unlocks the queues that the client owns.
func (l *locks) give(group, clientID string, queues []Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range queues {
		if l.queues[group][q].clientID == clientID {
			delete(l.queues[group], q)
		}
	}
	l.trim(group)
}

// release unlocks all queues of a client in a group.
func (l *locks) release(group, clientID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for q, have := range l.queues[group] {
		if have.clientID == clientID {
			delete(l.queues[group], q)
		}
	}
	l.trim(group)
}

func (l *locks) expire(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for g, held := range l.queues {
		for q, have := range held {
			if now.Sub(have.at) > lockLife {
				delete(held, q)
			}
		}
		l.trim(g)
	}
}

func (l *locks) trim(group string) {
	if len(l.queues[group]) == 0 {
		delete(l.queues, group)
	}
}

// live reports whether a group owns any queue now.
func (l *locks) live(group string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, have := range l.queues[group] {
		if now.Sub(have.at) <= lockLife {
			return true
		}
	}
	return false
}

// OrderLocked reports whether the group holds a live queue lock (PROTOCOL §3.1, retry row).
func (r *Registry) OrderLocked(group string) bool { return r.locks.live(group, time.Now()) }
