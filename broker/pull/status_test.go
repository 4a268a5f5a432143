package pull_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/rig"
	"github.com/quorate/quorate/broker/pull"
	"github.com/quorate/quorate/protocol"
	"github.com/quorate/quorate/store"
)

// scripted answers every Get with one result.
type scripted struct {
	pull.Queues
	result store.GetResult
}

func (s *scripted) Get(_ string, _ int32, _ int64, _, _ int, _ store.Filter, into *store.GetResult) error {
	*into = s.result
	return nil
}

// Every status of the store becomes the code that both clients act upon (PROTOCOL §3.7). OFFSET_TOO_SMALL is 21 also where
// nothing is left: the Go client ignores the next offset of 19, and would never move (CASES 96, 97).
func TestEveryStatusHasItsCode(t *testing.T) {
	queues := &scripted{}
	r := start(t, rig.Options{Queues: func(q pull.Queues) pull.Queues { queues.Queues = q; return queues }})
	for _, c := range []struct {
		status store.GetStatus
		offset int64
		code   protocol.ResponseCode
		remark string
	}{
		{store.NoMatchedMessage, 5, 20, "NO_MATCHED_MESSAGE"},
		{store.MessageWasRemoving, 5, 20, "MESSAGE_WAS_REMOVING"},
		{store.OffsetFoundNull, 5, 19, "OFFSET_FOUND_NULL"},
		{store.OffsetOverflowOne, 5, 19, "OFFSET_OVERFLOW_ONE"},
		{store.OffsetOverflowBadly, 5, 21, "OFFSET_OVERFLOW_BADLY"},
		{store.OffsetTooSmall, 0, 21, "OFFSET_TOO_SMALL"},
		{store.NoMatchedLogicQueue, 0, 19, "NO_MATCHED_LOGIC_QUEUE"},
		{store.NoMatchedLogicQueue, 5, 21, "NO_MATCHED_LOGIC_QUEUE"},
		{store.NoMessageInQueue, 0, 19, "NO_MESSAGE_IN_QUEUE"},
		{store.NoMessageInQueue, 5, 21, "NO_MESSAGE_IN_QUEUE"},
	} {
		queues.result = store.GetResult{Status: c.status, NextBegin: 2020, MinOffset: 2020, MaxOffset: 2020}
		a := r.Invoke(t, from(c.offset), nil)
		require.Equal(t, c.code, protocol.ResponseCode(a.Code), c.remark)
		require.Equal(t, c.remark, string(a.Remark))
		require.Equal(t, [3]int64{2020, 2020, 2020}, offsets(t, a))
	}
}

func TestTheReplicaIsSuggestedOnlyWhereItMayBeRead(t *testing.T) {
	queues := &scripted{result: store.GetResult{Status: store.OffsetOverflowOne, SuggestFromReplica: true}}
	r := start(t, rig.Options{Queues: func(q pull.Queues) pull.Queues { queues.Queues = q; return queues }})
	require.Equal(t, "0", r.Invoke(t, from(0), nil).Ext.Get("suggestWhichBrokerId"))
	live := pull.DefaultReloadable()
	live.SlaveRead = true
	r.Pull.Reload(live)
	require.Equal(t, "1", r.Invoke(t, from(0), nil).Ext.Get("suggestWhichBrokerId"))
	queues.result.SuggestFromReplica = false
	require.Equal(t, "0", r.Invoke(t, from(0), nil).Ext.Get("suggestWhichBrokerId"))
}
