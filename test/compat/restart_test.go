package compat

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Clients that were connected go on by themselves after the broker and its NameServer come back, and nothing that was
// acknowledged before is gone: after a clean stop as after kill -9 (the process dies, the kernel does not).
func TestClientsGoOnAfterARestart(t *testing.T) {
	for name, end := range map[string]func(*cluster){
		"SIGTERM": func(c *cluster) { c.stop() },
		"SIGKILL": func(c *cluster) { c.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			c := startCluster(t, map[string]string{"flushDiskType": "SYNC_FLUSH"})
			createTopic(t, c, "Restarted", 2)
			var in inbox
			startConsumer(t, c, "Restarted", "*", collect(&in))
			p := newProducer(t, c)
			var want []string
			for i := range 20 {
				want = append(want, fmt.Sprint("before-", i))
				send(t, p, newMessage("Restarted", want[i]))
			}
			eventually(t, 30*time.Second, "those before come", func() bool { return in.len() >= 20 })
			end(c)
			ctx, cancel := context.WithTimeout(t.Context(), bootTimeout)
			defer cancel()
			c.start(ctx)
			for i := range 20 {
				body := fmt.Sprint("after-", i)
				eventually(t, 60*time.Second, "a send succeeds", func() bool {
					_, err := p.SendSync(ctx, newMessage("Restarted", body))
					return err == nil
				})
				want = append(want, body)
			}
			eventually(t, 60*time.Second, "those after come", func() bool {
				return containsAll(in.bodies(), want)
			})
			stored := map[string]int{}
			for _, m := range drainTopic(t, c, "Restarted") {
				stored[string(m.Body)]++
			}
			for _, body := range want[:20] {
				require.Equal(t, 1, stored[body], body)
			}
		})
	}
}

func containsAll(got, want []string) bool {
	seen := map[string]bool{}
	for _, g := range got {
		seen[g] = true
	}
	for _, w := range want {
		if !seen[w] {
			return false
		}
	}
	return true
}
