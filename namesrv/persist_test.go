package namesrv_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/internal/vfs"
	"github.com/quorate/quorate/namesrv"
	"github.com/quorate/quorate/protocol"
)

// TestAcknowledgedSettingsSurvivePowerLossAtEveryStep cuts the power before each operation on the disk, with every
// extreme and some random choices of what was not yet durable, and starts again from what is left.
func TestAcknowledgedSettingsSurvivePowerLossAtEveryStep(t *testing.T) {
	disk := vfs.NewCrashable()
	keep := func(fs vfs.FS) func(*namesrv.Config) {
		return func(c *namesrv.Config) { c.FS, c.KVConfigPath = fs, "/data/ns/kvConfig.json" }
	}
	var acked []int // operations recorded when the n-th put was answered
	synctest.Test(t, func(t *testing.T) {
		w := start(t, keep(disk))
		defer w.end()
		p := w.peer("admin")
		defer p.close()
		for i := range 4 {
			p.ok(&protocol.PutKVConfigRequest{Namespace: "n", Key: fmt.Sprint(i), Value: "v"}, nil, nil)
			acked = append(acked, disk.Ops())
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	choices := map[string]func() bool{
		"all": func() bool { return true }, "nothing": func() bool { return false },
		"some": func() bool { return random.IntN(2) == 0 }, "others": func() bool { return random.IntN(4) == 0 },
	}
	require.Greater(t, disk.Ops(), 12)
	for at := range disk.Ops() + 1 {
		for name, choice := range choices {
			left := disk.Crash(at, choice)
			synctest.Test(t, func(t *testing.T) {
				w := start(t, keep(left))
				defer w.end()
				p := w.peer("admin")
				defer p.close()
				for i, ops := range acked {
					code := protocol.ResponseCode(p.call(&protocol.GetKVConfigRequest{Namespace: "n", Key: fmt.Sprint(i)}, nil).Code)
					if ops <= at {
						require.Equal(t, protocol.Success, code, "entry %d, crash at %d, %s kept", i, at, name)
					}
				}
				p.ok(&protocol.PutKVConfigRequest{Namespace: "n", Key: "after", Value: "v"}, nil, nil)
			})
		}
	}
}

func TestSettingThatCannotBeWrittenIsRefusedAndNotTaken(t *testing.T) {
	for _, kind := range []string{"create", "write", "sync", "rename", "syncdir"} {
		synctest.Test(t, func(t *testing.T) {
			disk := vfs.NewCrashable()
			w := start(t, func(c *namesrv.Config) {
				c.FS, c.KVConfigPath, c.ConfigStorePath = disk, "/ns/kv.json", "/ns/ns.properties"
			})
			defer w.end()
			p := w.peer("admin")
			defer p.close()
			p.ok(&protocol.PutKVConfigRequest{Namespace: "n", Key: "k", Value: "old"}, nil, nil)
			disk.SetFault(func(k, _ string) error {
				if k == kind {
					return errors.New("injected")
				}
				return nil
			})
			answer := p.call(&protocol.PutKVConfigRequest{Namespace: "n", Key: "k", Value: "new"}, nil)
			require.Equal(t, protocol.SystemError, protocol.ResponseCode(answer.Code), kind)
			require.Equal(t, "internal error", string(answer.Remark))
			require.Equal(t, "old", p.ok(&protocol.GetKVConfigRequest{Namespace: "n", Key: "k"}, nil, nil).Ext.Get("value"), kind)
			answer = p.call(&protocol.UpdateNameServerConfigRequest{}, []byte("enableTopicList=false"))
			require.Equal(t, protocol.SystemError, protocol.ResponseCode(answer.Code), kind)
			p.ok(&protocol.GetTopicsByClusterRequest{Cluster: "c"}, nil, nil)

			disk.SetFault(nil)
			p.ok(&protocol.PutKVConfigRequest{Namespace: "n", Key: "k", Value: "new"}, nil, nil)
			require.Equal(t, "new", p.ok(&protocol.GetKVConfigRequest{Namespace: "n", Key: "k"}, nil, nil).Ext.Get("value"), kind)
		})
	}
}
