package advice

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func keys(change func(*Keys)) Keys {
	k := Defaults()
	if change != nil {
		change(&k)
	}
	return k
}

// specification is the broker.conf of the specification's own example.
func specification(k *Keys) {
	k.TotalReplicas, k.InSyncReplicas, k.MinInSyncReplicas = 3, 2, 1
	k.AutoInSyncReplicas, k.SlaveActingMaster, k.GapSet = true, true, true
}

func TestLint(t *testing.T) {
	for _, c := range []struct {
		name string
		keys Keys
		key  string
		want Severity
		text string
	}{
		{"the specification's example lacks the role", keys(specification), "brokerRole", Warning, "inSyncReplicas=2 has no effect"},
		{"83 a 4.x pair", keys(func(k *Keys) { k.BrokerRole = "SYNC_MASTER" }), "inSyncReplicas", Warning, "waits for no replica"},
		{"76 auto without acting master", keys(func(k *Keys) { k.AutoInSyncReplicas = true }), "enableAutoInSyncReplicas", Error, "has no effect"},
		{"85 inSync above total", keys(func(k *Keys) { k.InSyncReplicas = 3; k.TotalReplicas = 2 }), "inSyncReplicas", Error, "more than totalReplicas=2"},
		{"85 min above inSync", keys(func(k *Keys) { k.MinInSyncReplicas = 2 }), "minInSyncReplicas", Error, "no effect here"},
		{"min above inSync under auto", keys(func(k *Keys) { specification(k); k.MinInSyncReplicas = 3 }), "minInSyncReplicas", Error, "needs 3 copies, not 2"},
		{"80 all-ack outside Controller mode", keys(func(k *Keys) { k.AllAckInSyncStateSet = true }), "allAckInSyncStateSet", Warning, "no effect"},
		{"retired key", keys(func(k *Keys) { k.HaSlaveFallbehindMaxSet = true }), "haSlaveFallbehindMax", Warning, "haMaxGapNotInSync replaces it"},
		{"the documented gap", keys(func(k *Keys) { k.GapSet, k.MaxGapNotInSync = true, 262144 }), "haMaxGapNotInSync", Note, "its source has 268435456"},
		{"a client never sees it", keys(func(k *Keys) { k.SlaveTimeoutMillis = 3000 }), "slaveTimeout", Warning, "gives up after 3000 ms"},
		{"DLedger", keys(func(k *Keys) { k.DLedger = true }), "enableDLegerCommitLog", Error, "Controller mode"},
		{"received acks under a Controller", keys(func(k *Keys) { k.ControllerMode = true }), "replicaAck", Error, "refuses to start"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, f := range Lint(c.keys) {
				if f.Key == c.key && f.Severity == c.want {
					require.Contains(t, f.Text, c.text)
					return
				}
			}
			t.Fatalf("nothing said about %s: %+v", c.key, Lint(c.keys))
		})
	}
}

func TestDefaultsAreWorthNoWarning(t *testing.T) {
	for _, f := range Lint(Defaults()) {
		require.Equal(t, Note, f.Severity, "%+v", f)
	}
}

func TestEffectiveSaysWhatAnOKMeans(t *testing.T) {
	for want, k := range map[string]Keys{
		"effective: an OK means the master's memory":         Defaults(),
		"effective: an OK means the master's disk":           keys(func(k *Keys) { k.FlushDiskType = "SYNC_FLUSH" }),
		"effective: master + any 1; may fall to master only": keys(func(k *Keys) { specification(k); k.BrokerRole = "SYNC_MASTER" }),
		"effective: master + any 2; may fall to master + any 1": keys(func(k *Keys) {
			specification(k)
			k.BrokerRole = "SYNC_MASTER"
			k.InSyncReplicas, k.MinInSyncReplicas = 3, 2
		}),
		"effective: master + any 1; sends are refused when fewer are in sync":    keys(func(k *Keys) { specification(k); k.BrokerRole = "SYNC_MASTER"; k.AutoInSyncReplicas = false }),
		"effective: master + any 1; sends time out when fewer follow":            keys(func(k *Keys) { k.BrokerRole = "SYNC_MASTER"; k.InSyncReplicas = 2 }),
		"effective: every member of the sync-state set; refused below 2 members": keys(func(k *Keys) { k.ControllerMode, k.AllAckInSyncStateSet, k.MinInSyncReplicas = true, true, 2 }),
	} {
		require.Equal(t, want, Effective(k))
	}
}

func TestUpgradeAdvice(t *testing.T) {
	pair := keys(func(k *Keys) { k.BrokerRole = "SYNC_MASTER" })
	found := Upgrade(pair, true)
	require.Len(t, found, 1)
	require.Contains(t, found[0].Remedy, "totalReplicas=2\ninSyncReplicas=2")
	require.Contains(t, found[0].Remedy, "totalReplicas=3  inSyncReplicas=2")
	require.Contains(t, found[0].Remedy, "totalReplicas=3  inSyncReplicas=3")
	require.Empty(t, Upgrade(pair, false))
	require.Empty(t, Upgrade(Defaults(), true), "ASYNC_MASTER waited for nobody before")
	pair.InSyncReplicas = 2
	require.Empty(t, Upgrade(pair, true))
}
