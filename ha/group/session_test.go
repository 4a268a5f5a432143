package group

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var timing = Timing{Heartbeat: 5 * time.Second, Housekeeping: 20 * time.Second}

var log = LogBounds{Min: 1000, End: 9000, LastFile: 8000}

func started(t *testing.T, d Dialect, end int64) *Session {
	t.Helper()
	s := NewSession(2, d, timing, 0, 0)
	require.NoError(t, s.Start(0, end, false, log))
	return s
}

func TestWhereASessionStarts(t *testing.T) {
	for _, c := range []struct {
		name         string
		dialect      Dialect
		end          int64
		fromLastFile bool
		want         int64
		err          error
	}{
		{"empty RocketMQ replica: last file", Plain, 0, false, 8000, nil},
		{"empty AutoSwitch replica: first byte", Auto, 0, false, 1000, nil},
		{"empty AutoSwitch replica that wants the last file", Auto, 0, true, 8000, nil},
		{"empty replica of ours: first byte", Ours, 0, false, 1000, nil},
		{"in the middle", Plain, 5000, false, 5000, nil},
		{"at the end", Ours, 9000, false, 9000, nil},
		{"CASES 51, R5: ahead of the master", Plain, 9001, false, 0, ErrAhead},
		{"R8: below the first byte is an answer, not silence", Ours, 999, false, 0, ErrBelow},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := NewSession(2, c.dialect, timing, 0, 0)
			err := s.Start(0, c.end, c.fromLastFile, log)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.err == nil, s.Started())
			if c.err == nil {
				require.Equal(t, c.want, s.Next())
			}
		})
	}
}

// I9: an acknowledgement is evidence, or it ends the session and moves nothing.
func TestOnlyEvidenceMovesASession(t *testing.T) {
	s := started(t, Ours, 5000)
	s.Sent(0, 100)
	for _, c := range []struct {
		received, flushed int64
		err               error
	}{
		{5101, 5000, ErrUnsent},
		{1 << 62, 0, ErrUnsent},
		{4999, 0, ErrBackwards},
		{5100, 5101, ErrFlushAhead},
	} {
		progress, err := s.Report(1, c.received, c.flushed)
		require.ErrorIs(t, err, c.err)
		require.False(t, progress)
		require.Equal(t, int64(5000), s.Received())
		require.Equal(t, int64(0), s.Flushed())
	}
	progress, err := s.Report(1, 5100, 5000)
	require.NoError(t, err)
	require.True(t, progress)
	_, err = s.Report(1, 5100, 4999)
	require.ErrorIs(t, err, ErrBackwards)
	progress, err = s.Report(1, 5100, 5000)
	require.NoError(t, err)
	require.False(t, progress, "a heartbeat")
	progress, err = s.Report(1, 5100, 5100)
	require.NoError(t, err)
	require.True(t, progress)
}

func TestRocketMQReplicaProvesNothingAboutItsDisk(t *testing.T) {
	s := started(t, Plain, 5000)
	s.Sent(0, 10)
	_, err := s.Report(0, 5010, -1)
	require.NoError(t, err)
	require.Equal(t, int64(5010), s.Received())
	require.Equal(t, int64(-1), s.Flushed())
}

func TestNothingIsSentBeforeTheReplicaSaidWhereItStands(t *testing.T) {
	s := NewSession(2, Plain, timing, 0, 0)
	bytes, wait := s.Send(0, 100)
	require.Zero(t, bytes)
	require.Zero(t, wait)
}

func TestRateIsBytesPerSecond(t *testing.T) {
	s := NewSession(2, Plain, timing, 1000, 0)
	require.NoError(t, s.Start(0, 5000, false, log))
	bytes, _ := s.Send(0, 700)
	require.Equal(t, int64(700), bytes)
	s.Sent(0, bytes)
	bytes, _ = s.Send(0, 700)
	require.Equal(t, int64(300), bytes)
	s.Sent(0, bytes)
	bytes, wait := s.Send(400*time.Millisecond, 700)
	require.Zero(t, bytes)
	require.Equal(t, 600*time.Millisecond, wait)
	bytes, _ = s.Send(time.Second, 700)
	require.Equal(t, int64(700), bytes)
}

func TestSilence(t *testing.T) {
	s := started(t, Plain, 5000)
	due, in := s.HeartbeatDue(2 * time.Second)
	require.False(t, due)
	require.Equal(t, 3*time.Second, in)
	due, _ = s.HeartbeatDue(5 * time.Second)
	require.True(t, due)
	s.Sent(5*time.Second, 0)
	due, _ = s.HeartbeatDue(6 * time.Second)
	require.False(t, due)
	in, err := s.Expired(19 * time.Second)
	require.NoError(t, err)
	require.Equal(t, time.Second, in)
	_, err = s.Expired(20 * time.Second)
	require.ErrorIs(t, err, ErrSilent)

	f := NewFollower(Plain, timing, 10, 10, 0)
	f.Reported(0)
	require.NoError(t, f.Push(time.Second, 10, 0))
	_, err = f.Expired(20 * time.Second)
	require.NoError(t, err)
	_, err = f.Expired(21 * time.Second)
	require.ErrorIs(t, err, ErrSilent)
}

func TestFollowerTakesOnlyWhatContinuesItsLog(t *testing.T) {
	f := NewFollower(Plain, timing, 100, 100, 0)
	require.NoError(t, f.Push(0, 100, 5))
	require.ErrorIs(t, f.Push(0, 99, 5), ErrMismatch)
	require.ErrorIs(t, f.Push(0, 101, 5), ErrMismatch)
	require.ErrorIs(t, f.Push(0, 101, 0), ErrMismatch, "heartbeats too")
	require.NoError(t, NewFollower(Plain, timing, 0, 0, 0).Push(0, 8000, 5), "an empty log begins where the master says")
	require.NoError(t, NewFollower(Auto, timing, 5, 5, 0).Push(0, -1, 0))
}

func TestFollowerReportsAtOnceWhatTheMasterDoesNotKnow(t *testing.T) {
	f := NewFollower(Ours, timing, 100, 90, 0)
	due, _ := f.ReportDue(0)
	require.True(t, due, "the first one")
	f.Reported(0)
	due, in := f.ReportDue(time.Second)
	require.False(t, due)
	require.Equal(t, 4*time.Second, in)
	f.Appended(150)
	due, _ = f.ReportDue(time.Second)
	require.True(t, due)
	f.Reported(time.Second)
	f.Flushed(150)
	due, _ = f.ReportDue(time.Second)
	require.True(t, due, "a flush is news")
	received, flushed := f.Report()
	require.Equal(t, int64(150), received)
	require.Equal(t, int64(150), flushed)

	plain := NewFollower(Plain, timing, 100, 90, 0)
	plain.Reported(0)
	plain.Flushed(100)
	due, _ = plain.ReportDue(time.Second)
	require.False(t, due, "RocketMQ's report has no word for it")
}

func TestBackoffGrowsToFiveSeconds(t *testing.T) {
	require.Equal(t, 100*time.Millisecond, Backoff(0))
	require.Equal(t, 200*time.Millisecond, Backoff(1))
	require.Equal(t, 5*time.Second, Backoff(9))
	require.Equal(t, 5*time.Second, Backoff(1<<40))
}
