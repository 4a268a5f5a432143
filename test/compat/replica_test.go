package compat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/test/javapeer"
)

// sendRaw sends one message to a broker and returns the response code.
func sendRaw(t *testing.T, broker, body string) int {
	t.Helper()
	head, _, err := exchange(t.Context(), broker, 10, map[string]string{
		"producerGroup": "pg", "topic": "Replicated", "defaultTopic": "TBW102", "defaultTopicQueueNums": "1", "queueId": "0",
		"sysFlag": "0", "bornTimestamp": fmt.Sprint(time.Now().UnixMilli()), "flag": "0", "properties": "KEYS\x01" + body + "\x02",
	}, []byte(body))
	require.NoError(t, err)
	return codeOf(t, head)
}

// codeOf is the response code in a JSON header.
func codeOf(t *testing.T, head []byte) int {
	t.Helper()
	var h struct{ Code int }
	require.NoError(t, json.Unmarshal(head, &h), "%q", head)
	return h.Code
}

// sameLogs waits until replica has the bytes of every file of master.
func sameLogs(t *testing.T, master, replica *cluster) {
	t.Helper()
	files, err := os.ReadDir(filepath.Join(master.store, "commitlog"))
	require.NoError(t, err)
	require.Greater(t, len(files), 1, "the log rolled")
	written := 0
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(master.store, "commitlog", f.Name()))
		require.NoError(t, err)
		want = bytes.TrimRight(want, "\x00")
		if len(want) == 0 {
			continue // made ahead
		}
		written++
		eventually(t, 20*time.Second, "file "+f.Name()+" is the same on both", func() bool {
			got, err := os.ReadFile(filepath.Join(replica.store, "commitlog", f.Name()))
			return err == nil && bytes.Equal(want, bytes.TrimRight(got, "\x00"))
		})
	}
	require.Greater(t, written, 1)
}

const (
	ok                = 0
	flushSlaveTimeout = 12
)

// replicated sends until the master has its replica, and then enough to roll the log: each is acknowledged by both.
func replicated(t *testing.T, master *cluster) {
	t.Helper()
	eventually(t, 60*time.Second, "the master has a replica that acknowledges", func() bool { return sendRaw(t, master.broker, "first") == ok })
	for i := range 60 {
		require.Equal(t, ok, sendRaw(t, master.broker, fmt.Sprintf("%d-%s", i, bytes.Repeat([]byte{'x'}, 700))))
	}
}

func syncMaster() map[string]string {
	return map[string]string{"brokerRole": "SYNC_MASTER", "totalReplicas": "2", "inSyncReplicas": "2", "slaveTimeout": "1500"}
}

func slave() map[string]string {
	return map[string]string{"brokerRole": "SLAVE", "brokerId": "1", "slaveReadEnable": "true"}
}

// A Java replica follows our master: it sees DefaultHA to the byte, or it would not follow.
func TestJavaReplicaFollowsOurMaster(t *testing.T) {
	needsProduct(t)
	peer := openJava(t, javapeer.V5)
	ns := startNameServer(t)
	master := startOurBroker(t, ns.nameServer, filepath.Join(t.TempDir(), "master"), syncMaster())
	require.Equal(t, flushSlaveTimeout, sendRaw(t, master.broker, "alone"))
	replica := startJavaBroker(t, peer, ns.nameServer, filepath.Join(t.TempDir(), "replica"), slave())
	replicated(t, master)
	sameLogs(t, master, replica)
	replica.kill()
	eventually(t, 30*time.Second, "without its replica a send is not acknowledged", func() bool {
		return sendRaw(t, master.broker, "alone again") == flushSlaveTimeout
	})
	replica.start(t.Context())
	replicated(t, master)
	sameLogs(t, master, replica)
}

// Our replica follows a Java master.
func TestOurReplicaFollowsAJavaMaster(t *testing.T) {
	needsProduct(t)
	peer := openJava(t, javapeer.V5)
	ns := startNameServer(t)
	master := startJavaBroker(t, peer, ns.nameServer, filepath.Join(t.TempDir(), "master"), syncMaster())
	replica := startOurBroker(t, ns.nameServer, filepath.Join(t.TempDir(), "replica"), slave())
	replicated(t, master)
	sameLogs(t, master, replica)
	replica.stop()
	eventually(t, 30*time.Second, "without its replica a send is not acknowledged", func() bool {
		return sendRaw(t, master.broker, "alone") == flushSlaveTimeout
	})
	replica.start(t.Context())
	replicated(t, master)
	sameLogs(t, master, replica)
	head, _, err := exchange(t.Context(), replica.broker, 11, map[string]string{
		"consumerGroup": "cg", "topic": "Replicated", "queueId": "0", "queueOffset": "0", "maxMsgNums": "32", "sysFlag": "4", "commitOffset": "0",
		"suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "0", "expressionType": "TAG",
	}, nil)
	require.NoError(t, err)
	require.Equal(t, ok, codeOf(t, head), "topics came from the master, and the replica serves what it holds")
}
