package delay

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/quorate/quorate/broker/internal/memlog"
	"github.com/quorate/quorate/internal/fastjson"
	"github.com/quorate/quorate/message"
)

func start(t *testing.T, log *memlog.Log, levels string) (s *Schedule, stop func()) {
	t.Helper()
	cfg := DefaultConfig()
	cfg.Levels = levels
	s, err := New(cfg, Deps{Log: log, Durability: log, Files: log, Writer: log, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	synctest.Wait()
	return s, func() {
		cancel()
		require.NoError(t, <-done)
	}
}

func park(t *testing.T, log *memlog.Log, l Levels, level int, body string) {
	t.Helper()
	m := message.Message{Topic: "T", QueueID: 2, Body: []byte(body), Flag: 7, ReconsumeTimes: 1, BornTimestamp: 5, Properties: message.MakeProperties(
		map[string]string{message.DelayTimeLevel: strconv.Itoa(level), message.Tags: "TagA"})}
	require.True(t, l.Park(&m, time.Now()))
	log.Append(&m)
}

func bodies(log *memlog.Log) (out []string) {
	for _, r := range log.Messages("T", 2) {
		out = append(out, string(r.Body))
	}
	return out
}

func TestEachLevelDeliversExactlyWhenDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		s, stop := start(t, log, "1s 5s 1h")
		defer stop()
		park(t, log, s.Levels(), 2, "five")
		park(t, log, s.Levels(), 1, "one")
		park(t, log, s.Levels(), 99, "hour")
		for _, step := range []struct {
			wait time.Duration
			want []string
		}{
			{time.Second - time.Millisecond, nil},
			{time.Millisecond, []string{"one"}},
			{4*time.Second - time.Millisecond, []string{"one"}},
			{time.Millisecond, []string{"one", "five"}},
			{time.Hour - 5*time.Second - time.Millisecond, []string{"one", "five"}},
			{time.Millisecond, []string{"one", "five", "hour"}},
		} {
			time.Sleep(step.wait)
			synctest.Wait()
			require.Equal(t, step.want, bodies(log))
		}
		r := log.Messages("T", 2)[0]
		require.Equal(t, "1", r.Properties.Get(message.DelayTimeLevel), "the property string stays as stored")
		require.Equal(t, "T", r.Properties.Get(message.RealTopic))
		require.Equal(t, "2", r.Properties.Get(message.RealQueueID))
		require.Equal(t, []any{int32(7), int32(1), int64(5)}, []any{r.Flag, r.ReconsumeTimes, r.BornTimestamp})
	})
}

func TestRefusedDeliveryIsTriedAgainAndNeverSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		s, stop := start(t, log, "1s")
		defer stop()
		for i := range 5 {
			park(t, log, s.Levels(), 1, strconv.Itoa(i))
		}
		log.Refuse(errors.New("disk full"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		require.Empty(t, bodies(log))
		log.Refuse(nil)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"0", "1", "2", "3", "4"}, bodies(log))
	})
}

func TestResumesByOffsetAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		s, stop := start(t, log, "1s 1m")
		park(t, log, s.Levels(), 1, "a")
		park(t, log, s.Levels(), 2, "late")
		time.Sleep(2 * time.Second)
		stop()
		park(t, log, s.Levels(), 1, "b")
		time.Sleep(time.Hour)
		s, stop = start(t, log, "1s 1m")
		synctest.Wait()
		require.ElementsMatch(t, []string{"a", "b", "late"}, bodies(log), "what fell due while stopped goes at once")
		next, end := s.Progress(1)
		require.Equal(t, []int64{2, 2}, []int64{next, end})
		stop()
		_, stop = start(t, log, "1s 1m")
		time.Sleep(time.Hour)
		stop()
		require.Len(t, bodies(log), 3, "nothing twice")
	})
}

func TestProgressIsNeverWrittenAheadOfTheDurableLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		log.ManualFlush.Store(true)
		s, stop := start(t, log, "1s")
		park(t, log, s.Levels(), 1, "a")
		time.Sleep(25 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{"a"}, bodies(log))
		_, err := log.ReadConfigFile("delayOffset.json")
		require.Error(t, err, "a power loss now loses the delivery: it must be repeated")
		log.Flush()
		synctest.Wait()
		content, err := log.ReadConfigFile("delayOffset.json")
		require.NoError(t, err)
		require.Contains(t, string(content), "1:1")
		stop()
	})
}

func TestRetentionAndLossAreSkippedAndCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		s, stop := start(t, log, "1m")
		defer stop()
		park(t, log, s.Levels(), 1, "a")
		first := log.Appended().Load()
		park(t, log, s.Levels(), 1, "b")
		park(t, log, s.Levels(), 1, "c")
		log.Lose(first)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Equal(t, []string{"a", "c"}, bodies(log))
		require.Equal(t, int64(1), s.Skipped())
	})
}

func TestATimeBeyondTheLevelIsDueAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		s, stop := start(t, log, "1s")
		defer stop()
		m := message.Message{Topic: "T", QueueID: 2, Body: []byte("skewed"), Properties: message.MakeProperties(map[string]string{message.DelayTimeLevel: "1"})}
		require.True(t, s.Levels().Park(&m, time.Now().Add(24*time.Hour)))
		log.Append(&m)
		synctest.Wait()
		require.Equal(t, []string{"skewed"}, bodies(log))
	})
}

func TestLevelsOfTheConfiguration(t *testing.T) {
	for text, want := range map[string]int{DefaultLevels: 18, "1s": 1, "0s  2d": 2} {
		l, err := ParseLevels(text)
		require.NoError(t, err, text)
		require.Len(t, l, want)
	}
	l, _ := ParseLevels(DefaultLevels)
	require.Equal(t, 2*time.Hour, l.Of(99))
	require.Zero(t, l.Of(0))
	for _, text := range []string{"", "1", "s", "-1s", "1w", "99999999999999d", "1s 2"} {
		_, err := ParseLevels(text)
		require.Error(t, err, text)
	}
}

func FuzzParseLevels(f *testing.F) {
	f.Add(DefaultLevels)
	f.Add("9223372036854775807d")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLevels(text)
		if err != nil {
			return
		}
		for i := range l {
			require.GreaterOrEqual(t, l.Of(i+1), time.Duration(0))
		}
	})
}

func TestOnlyDelayedMessagesAreParked(t *testing.T) {
	l, _ := ParseLevels(DefaultLevels)
	for _, p := range []map[string]string{{}, {message.DelayTimeLevel: "0"}, {message.DelayTimeLevel: "-1"}, {message.DelayTimeLevel: "x"}} {
		m := message.Message{Topic: "T", Properties: message.MakeProperties(p)}
		require.False(t, l.Park(&m, time.Now()), p)
		require.Equal(t, "T", m.Topic)
	}
}

func TestReadsTheProgressThatRocketMQWrote(t *testing.T) {
	content, err := os.ReadFile("testdata/delayOffset.json")
	require.NoError(t, err)
	log := memlog.New()
	require.NoError(t, log.WriteConfigFile(fileName, content))
	s, err := New(DefaultConfig(), Deps{Log: log, Durability: log, Files: log, Writer: log, Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	for level, want := range map[int]int64{1: 1, 2: 0, 3: 1, 18: 0} {
		next, _ := s.Progress(level)
		require.Equal(t, want, next, level)
	}
	s.progress.changed = true
	require.NoError(t, s.persist(t.Context()))
	written, err := log.ReadConfigFile(fileName)
	require.NoError(t, err)
	var want, got document
	require.NoError(t, fastjson.Unmarshal(content, &want))
	require.NoError(t, fastjson.Unmarshal(written, &got))
	require.Equal(t, want.Offsets, got.Offsets)
	require.Equal(t, want.DataVersion.Counter+1, got.DataVersion.Counter)
}
