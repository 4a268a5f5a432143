package group

import (
	"errors"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/internal/fastjson"
)

func open(t testing.TB, files Files, live Reloadable) *Table {
	t.Helper()
	table, err := Open(live, files, time.Now, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	return table
}

func TestReadsWhatRocketMQWroteAndWritesItBack(t *testing.T) {
	for _, version := range []string{"java-5.5.0", "java-4.9.7"} {
		content, err := os.ReadFile("testdata/" + version + "/subscriptionGroup.json")
		require.NoError(t, err)
		files := memlog.New()
		require.NoError(t, files.WriteConfigFile(fileName, content))
		table := open(t, files, DefaultReloadable())
		c := table.Lookup([]byte("fixture-consumer"))
		require.NotNil(t, c)
		require.Equal(t, []any{int32(16), int32(1), true, int32(15), true}, []any{c.RetryMaxTimes, c.RetryQueueNums, c.NotifyIDsChangedEnable, c.ConsumeTimeoutMinute, c.ConsumeEnable})
		if version != "java-5.5.0" {
			continue // an older broker leaves out what has its default here
		}
		require.NoError(t, save(files, table.Snapshot()))
		written, err := files.ReadConfigFile(fileName)
		require.NoError(t, err)
		var want, got map[string]any
		require.NoError(t, fastjson.Unmarshal(content, &want))
		require.NoError(t, fastjson.Unmarshal(written, &got))
		require.Equal(t, want, got)
	}
}

func TestUnknownGroupIsMadeOnlyWhenAllowed(t *testing.T) {
	files := memlog.New()
	table := open(t, files, DefaultReloadable())
	c := table.Find("g")
	require.NotNil(t, c)
	require.Equal(t, Default("g").RetryMaxTimes, c.RetryMaxTimes)
	require.Same(t, c, table.Find("g"))
	require.NotNil(t, open(t, files, DefaultReloadable()).Lookup([]byte("g")), "it is on disk")
	for _, name := range []string{"", "a b", "a@b"} {
		require.Nil(t, table.Find(name), name)
	}
	files.Refuse(errors.New("disk full"))
	require.Nil(t, table.Find("h"), "not on disk is not there")
	files.Refuse(nil)
	table.Reload(Reloadable{AutoCreate: false})
	require.Nil(t, table.Find("i"))
	require.NotNil(t, table.Find("CID_RMQ_SYS_REVIVE_GROUP"), "the broker's own always")
	require.NotNil(t, table.Find("g"), "what is there stays")
}

func TestForbiddenTopicsSurviveAndGoWithTheirGroup(t *testing.T) {
	files := memlog.New()
	table := open(t, files, DefaultReloadable())
	require.NoError(t, table.Put(Default("g")))
	require.NoError(t, table.SetReadForbidden("g", "T", true))
	table = open(t, files, DefaultReloadable())
	require.True(t, table.ReadForbidden([]byte("g"), []byte("T")))
	require.False(t, table.ReadForbidden([]byte("g"), []byte("U")))
	require.NoError(t, table.SetReadForbidden("g", "T", false))
	require.False(t, table.ReadForbidden([]byte("g"), []byte("T")))
	require.NoError(t, table.SetReadForbidden("g", "T", true))
	require.NoError(t, table.Delete("g"))
	require.False(t, table.ReadForbidden([]byte("g"), []byte("T")))
	require.Nil(t, table.Lookup([]byte("g")))
}

func TestAttributesStayAndUnknownOnesAreRefused(t *testing.T) {
	table := open(t, memlog.New(), DefaultReloadable())
	c := Default("g")
	c.Attributes = map[string]string{"+colour": "red"}
	require.ErrorContains(t, table.Put(c), "colour")
	require.Nil(t, table.Lookup([]byte("g")))
}

func TestLookupAllocatesNothing(t *testing.T) {
	table := open(t, memlog.New(), DefaultReloadable())
	name, topic := []byte("TOOLS_CONSUMER"), []byte("T")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if table.Lookup(name) == nil || table.ReadForbidden(name, topic) {
			panic("not found")
		}
	}))
}

func FuzzCheckName(f *testing.F) {
	f.Add("CID_ONS-HTTP-PROXY")
	f.Fuzz(func(t *testing.T, name string) {
		if CheckName(name) == nil {
			require.LessOrEqual(t, len(name), NameBytesMax)
			require.NotContains(t, name, "@")
			require.NotContains(t, name, "/")
		}
	})
}
