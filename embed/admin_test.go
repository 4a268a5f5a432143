package embed_test

import (
	"log/slog"
	"testing"

	"github.com/quorate/quorate/admin"
	"github.com/quorate/quorate/embed"
	"github.com/quorate/quorate/remoting"
)

func adminOf(t *testing.T, n *embed.Node) *admin.Client {
	t.Helper()
	rc := remoting.NewClient(remoting.ClientConfig{Dial: n.Dial}, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := rc.Close(); err != nil {
			t.Error(err)
		}
	})
	return admin.New(rc, n.NameServers())
}
