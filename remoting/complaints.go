package remoting

import (
	"net/netip"
	"sync"
	"time"
)

const (
	complaintsPeriod = time.Minute
	complaintsMax    = 1024 // addresses remembered; above, nobody is logged until the period ends
)

// complaints lets each address be complained about once a period, so that a scanner cannot fill the log.
type complaints struct {
	mu    sync.Mutex
	since time.Time
	seen  map[netip.Addr]struct{}
}

func (c *complaints) may(a netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.seen == nil || now.Sub(c.since) >= complaintsPeriod {
		c.since, c.seen = now, map[netip.Addr]struct{}{}
	}
	if _, again := c.seen[a]; again || len(c.seen) >= complaintsMax {
		return false
	}
	c.seen[a] = struct{}{}
	return true
}
